// SPDX-License-Identifier: Apache-2.0
#include "ebpf/aggregate.h"

#include <array>

namespace berth::ebpf {

namespace {

using model::CgroupCounters;

// A row is written by its CPU at any time, so every word of it is read once, and as one.
template <typename T>
T read_once(const T& from) {
  return __atomic_load_n(&from, __ATOMIC_RELAXED);
}

// What a row grew by between two readings. Its figures wrap where they are narrow.
struct Growth {
  std::uint64_t run_ns = 0;
  std::uint64_t delay_ns = 0;
  std::uint64_t dispatches = 0;
  std::array<std::uint32_t, model::kDelayBuckets> delay{};
  std::array<double, BERTH_HARDWARE_COUNTERS> counts{};
  bool counted = false;
};

void add_to(CgroupCounters& sum, const Growth& growth) {
  sum.run_ns += growth.run_ns;
  sum.run_delay_ns += growth.delay_ns;
  sum.dispatches += growth.dispatches;
  for (std::size_t bucket = 0; bucket < model::kDelayBuckets; ++bucket) {
    sum.delay[bucket] += growth.delay[bucket];
  }
  if (!growth.counted) return;
  if (!sum.hardware) sum.hardware.emplace();
  sum.hardware->instructions += growth.counts[0];
  sum.hardware->cycles += growth.counts[1];
  sum.hardware->llc_references += growth.counts[2];
  sum.hardware->llc_misses += growth.counts[3];
}

Growth growth_of(const berth_row& row, berth_row& before) {
  static_assert(BERTH_DELAY_BUCKETS == model::kDelayBuckets);
  const auto step = [](const auto& now, auto& then) {
    const auto value = read_once(now);
    const auto grown = value - then;
    then = value;
    return grown;
  };
  Growth growth;
  growth.run_ns = step(row.run_ns, before.run_ns);
  growth.delay_ns = step(row.delay_ns, before.delay_ns);
  growth.dispatches = step(row.dispatches, before.dispatches);
  for (std::size_t bucket = 0; bucket < model::kDelayBuckets; ++bucket) {
    growth.delay[bucket] = step(row.delay[bucket], before.delay[bucket]);
  }
  return growth;
}

// Cgroups whose last threads may still be ending keep their rows that many collections.
constexpr std::uint32_t kGrace = 2;

}  // namespace

std::uint32_t Aggregate::add(std::uint64_t id, std::uint64_t parent) {
  std::uint32_t at = 0;
  if (vacant_.empty()) {
    at = static_cast<std::uint32_t>(nodes_.size());
    nodes_.emplace_back();
  } else {
    at = vacant_.back();
    vacant_.pop_back();
    nodes_[at] = {};
  }
  nodes_[at].reading.id = id;
  by_id_[id] = at;
  adopt(at, parent);
  return at;
}

void Aggregate::adopt(std::uint32_t node, std::uint64_t parent) {
  nodes_[node].reading.parent = parent;
  const auto found = by_id_.find(parent);
  if (found == by_id_.end() || nodes_[node].parent != kNone) return;
  nodes_[node].parent = found->second;
  ++nodes_[found->second].children;
}

void Aggregate::learn(std::uint64_t id, std::uint64_t parent) {
  std::uint32_t hint = kNone;
  learn(id, parent, hint);
}

model::CgroupReading& Aggregate::learn(std::uint64_t id, std::uint64_t parent, std::uint32_t& hint) {
  if (hint >= nodes_.size() || nodes_[hint].reading.id != id) {
    const auto found = by_id_.find(id);
    hint = found != by_id_.end() ? found->second : add(id, parent);
  }
  Node& node = nodes_[hint];
  if (node.parent == kNone && parent != 0) adopt(hint, parent);
  if (node.scan != scan_ && !node.forgotten) ++scanned_;
  node.scan = scan_;
  return node.reading;
}

void Aggregate::forget(std::uint64_t id) {
  const auto found = by_id_.find(id);
  if (found == by_id_.end() || nodes_[found->second].forgotten) return;
  nodes_[found->second].forgotten = true;
  leaving_.push_back({id, collection_});
}

void Aggregate::begin_scan() {
  ++scan_;
  scanned_ = 0;
}

void Aggregate::end_scan() {
  if (scanned_ == by_id_.size() - leaving_.size()) return;  // as on most days
  for (const Node& node : nodes_) {
    if (node.reading.id != 0 && !node.forgotten && node.scan != scan_) forget(node.reading.id);
  }
}

void Aggregate::reset() {
  known_.clear();
  copies_.clear();
  vacant_copies_.clear();
}

// Those that are still the same cgroup's keep what was read of them.
void Aggregate::look_for_rows(const Table& table, Known& known) {
  std::vector<Taken> now;
  auto before = known.taken.begin();
  for (std::uint32_t row = 0; row < table.rows.size(); ++row) {
    // Pairs with the exchange by which the CPU takes a row: its figures were zeroed before.
    const std::uint64_t id = __atomic_load_n(&table.rows[row].id, __ATOMIC_ACQUIRE);
    for (; before != known.taken.end() && before->row < row; ++before) vacant_copies_.push_back(before->copy);
    if (id == BERTH_FREE || id == BERTH_REMOVED) continue;
    if (before != known.taken.end() && before->row == row && before->id == id) {
      now.push_back(*before++);
      continue;
    }
    Taken fresh{.row = row, .id = id, .touches = read_once(table.rows[row].touches) - 1};
    if (vacant_copies_.empty()) {
      fresh.copy = static_cast<std::uint32_t>(copies_.size());
      copies_.emplace_back();
    } else {
      fresh.copy = vacant_copies_.back();
      vacant_copies_.pop_back();
      copies_[fresh.copy] = {};
    }
    now.push_back(fresh);
  }
  for (; before != known.taken.end(); ++before) vacant_copies_.push_back(before->copy);
  known.taken = std::move(now);
}

// False where nobody knows the row's cgroup; after a while, the row is then given back.
bool Aggregate::find_node(Taken& taken, berth_row& row) {
  const auto found = by_id_.find(taken.id);
  if (found != by_id_.end()) {
    taken.node = found->second;
    taken.unknown_in = 0;
    return true;
  }
  ++unknown_;
  taken.node = kNone;
  if (taken.unknown_in == 0) taken.unknown_in = collection_;
  if (collection_ - taken.unknown_in >= kGrace) {
    __atomic_store_n(&row.id, BERTH_REMOVED, __ATOMIC_RELEASE);
    taken.id = BERTH_REMOVED;
  }
  return false;
}

void Aggregate::collect_row(const Table& table, Taken& taken) {
  berth_row& row = table.rows[taken.row];
  const std::uint32_t touches = read_once(row.touches);
  const bool known = taken.node != kNone && (!dropped_ || nodes_[taken.node].reading.id == taken.id);
  if (known && taken.touches == touches) return;
  if (!known && !find_node(taken, row)) return;
  taken.touches = touches;
  Copy& before = copies_[taken.copy];
  Growth growth = growth_of(row, before.row);
  if (!table.counts.empty()) {
    growth.counted = true;
    for (std::size_t which = 0; which < BERTH_HARDWARE_COUNTERS; ++which) {
      const std::uint64_t now = read_once(table.counts[taken.row].count[which]);
      growth.counts[which] = static_cast<double>(now - before.counts.count[which]) * table.scale[which];
      before.counts.count[which] = now;
    }
  }
  add_to(nodes_[taken.node].reading.own, growth);
  for (std::uint32_t up = taken.node; up != kNone; up = nodes_[up].parent) {
    add_to(nodes_[up].reading.subtree, growth);
  }
}

void Aggregate::collect(std::span<const Table> tables) {
  ++collection_;
  unknown_ = 0;
  known_.resize(tables.size());
  for (std::size_t which = 0; which < tables.size(); ++which) {
    const Table& table = tables[which];
    Known& known = known_[which];
    if (!known.complete || known.count != table.taken) look_for_rows(table, known);
    known.complete = true;
    known.count = table.taken;
    std::size_t left = 0;
    for (Taken& taken : known.taken) {
      collect_row(table, taken);
      if (taken.id == BERTH_REMOVED) {
        vacant_copies_.push_back(taken.copy);
      } else {
        known.taken[left++] = taken;
      }
    }
    known.taken.resize(left);
  }
  dropped_ = false;
  drop_left();
}

// Children first, as the kernel removes them; a parent with a child left waits for another collection.
void Aggregate::drop_left() {
  std::deque<Leaving> later;
  for (const Leaving& leaving : leaving_) {
    const auto found = by_id_.find(leaving.id);
    if (found == by_id_.end()) continue;
    const std::uint32_t at = found->second;
    Node& node = nodes_[at];
    if (collection_ - leaving.since < kGrace || node.children != 0) {
      later.push_back(leaving);
      continue;
    }
    if (node.parent != kNone) --nodes_[node.parent].children;
    node = {};
    vacant_.push_back(at);
    by_id_.erase(found);
    dropped_ = true;
  }
  leaving_ = std::move(later);
}

const model::CgroupReading* Aggregate::find(std::uint64_t id) const {
  const auto found = by_id_.find(id);
  if (found == by_id_.end() || nodes_[found->second].forgotten) return nullptr;
  return &nodes_[found->second].reading;
}

}  // namespace berth::ebpf
