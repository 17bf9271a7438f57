// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ebpf/abi.h"
#include "model/cgroup_counters.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace berth::ebpf {

// Adds up the CPUs' counts, by subtree.
//
// The tables of the CPUs only grow, and wrap. The growth since the last collect() is credited to the cgroup
// and to all its present ancestors. So a subtree's figures stay when a cgroup in it is removed, as those of
// the kernel's own cpu.stat do. This class touches no kernel interface: the caller gives it the tables as
// memory.
class Aggregate {
 public:
  // One CPU's table. collect() writes to `rows`: it marks those of removed cgroups BERTH_REMOVED. `counts` is
  // as long, or empty. `taken` grows with every row that is taken. `scale` is time enabled / time running of
  // each counter since the last collection, 1 where nothing was multiplexed.
  struct Table {
    std::span<berth_row> rows;
    std::span<const berth_counts> counts;
    std::uint32_t taken = 0;
    std::array<double, BERTH_HARDWARE_COUNTERS> scale{1, 1, 1, 1};
  };

  // Adds a cgroup. Parents come before their children. A cgroup with an unknown parent has no parent until it
  // is learned again. Does nothing where the cgroup is known with this parent.
  void learn(std::uint64_t id, std::uint64_t parent);
  // The cgroup's directory is gone. Its last threads' usage is credited for two more collections.
  void forget(std::uint64_t id);
  // end_scan() forgets every cgroup that was not learned since begin_scan().
  void begin_scan();
  void end_scan();
  // As learn(), but faster where `hint` (a counter of the caller's, kept between scans) still names it.
  model::CgroupReading& learn(std::uint64_t id, std::uint64_t parent, std::uint32_t& hint);

  // The rows of these cgroups count for all groups below them, too. So none of those has figures of its own;
  // collect() gives back the rows that they have.
  void keep_together(std::set<std::uint64_t> cgroups) {
    keepers_ = std::move(cgroups);
    gives_back_ = kGivesBack;
  }

  // Adds up the tables. They always come in the same order and of the same sizes. After a change, call
  // reset() first.
  void collect(std::span<const Table> tables);
  // The tables were made anew: they count from zero again.
  void reset();

  // nullptr for an unknown cgroup, for one forgotten, and for one without figures of its own. Valid until a
  // cgroup is learned or anything collected.
  const model::CgroupReading* find(std::uint64_t id) const;
  // Number of known cgroups, including forgotten ones that still get credit.
  std::size_t size() const { return by_id_.size(); }
  // Cgroups of the last collection that are not known; their figures wait in the tables.
  std::size_t unknown() const { return unknown_; }
  // Calls `visit` for every cgroup that was not forgotten, in no order.
  template <typename Visit>
  void for_each(Visit visit) const {
    for (const Node& node : nodes_) {
      if (node.reading.id != 0 && !node.forgotten) visit(node.reading);
    }
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  // The first may come before a group is known that has a row.
  static constexpr std::uint32_t kGivesBack = 3;

  // Crediting a leaf with run time and short waits touches the first two cache lines.
  struct alignas(64) Node {
    std::uint32_t parent = kNone;
    std::uint32_t children = 0;
    std::uint32_t scan = 0;  // the last one that saw it
    bool forgotten = false;
    model::CgroupReading reading;
  };
  // A row that is taken, and its last reading.
  struct Taken {
    std::uint32_t row = 0;
    std::uint32_t node = kNone;
    std::uint64_t id = 0;
    std::uint32_t touches = 0;
    std::uint32_t unknown_in = 0;  // the collection that first found no cgroup of this id
    std::uint32_t copy = 0;        // of `copies_`
  };
  struct alignas(64) Copy : berth_row {};
  struct Known {
    std::vector<Taken> taken;  // ascending by row
    std::uint32_t count = 0;   // Table::taken when they were looked for
    bool complete = false;
  };
  struct Leaving {
    std::uint64_t id = 0;
    std::uint32_t since = 0;
  };

  std::uint32_t add(std::uint64_t id, std::uint64_t parent);
  void adopt(std::uint32_t node, std::uint64_t parent);
  void look_for_rows(const Table& table, Known& known);
  bool find_node(Taken& taken, berth_row& row);
  bool moved(const Table& table, Taken& taken);
  bool is_kept_with_others(std::uint32_t node) const;
  void collect_row(const Table& table, const Taken& taken);
  void collect_table(const Table& table, Known& known);
  void drop_left();

  std::vector<Node> nodes_;
  std::vector<std::uint32_t> vacant_;
  std::unordered_map<std::uint64_t, std::uint32_t> by_id_;
  std::vector<Known> known_;          // by table
  std::vector<std::uint32_t> moved_;  // rows of the table under way
  std::vector<std::uint32_t> given_back_;
  std::vector<Copy> copies_;
  std::vector<berth_counts> counts_;  // copies likewise; empty without counters
  std::vector<std::uint32_t> vacant_copies_;
  std::deque<Leaving> leaving_;
  std::set<std::uint64_t> keepers_;
  std::uint32_t gives_back_ = 0;  // collections that look for rows to give back
  std::uint32_t collection_ = 0;
  std::uint32_t scan_ = 0;
  std::size_t scanned_ = 0;  // cgroups seen in that scan that are not forgotten
  // Since the last collection: rows may name a node that now belongs to another cgroup.
  bool dropped_ = false;
  std::size_t unknown_ = 0;
};

}  // namespace berth::ebpf
