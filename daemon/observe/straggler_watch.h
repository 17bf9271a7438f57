// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/ledger/views.h"
#include "model/plan.h"
#include "model/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace berth::daemon {

// Keeps the findings of earlier ticks: the stragglers, and the workloads that lent them something. The next
// tick takes and restores by them. It also tells which findings are new, for messages. A finding belongs to
// one run of its workload.
class StragglerWatch {
 public:
  // A finding that was absent for so long is news again.
  static constexpr double kQuiet_s = 30;
  using RunOf = std::function<std::uint64_t(const std::string& workload)>;  // 0 where there is none

  struct News {
    std::vector<StragglerNews> found;
    std::vector<StragglerNews> relocate;
  };
  // Takes a plan's findings. A plan without the policy counts as one that found nothing.
  News take(const model::Plan& plan, const RunOf& run_of);

  // Fills in straggler_seen_at, and straggled_at and pressed_at of the workloads that have them.
  void mark(model::Snapshot& snapshot, const RunOf& run_of) const;

  // Whether mark() has any workload to mark.
  bool empty() const { return straggled_.empty() && pressed_.empty(); }

  // Of the last plan.
  std::size_t stragglers() const { return stragglers_; }
  std::size_t relocations() const { return relocations_; }

 private:
  struct Seen {
    std::uint64_t cgroup_id = 0;
    double at = 0;  // epoch seconds of the last tick that found it
  };
  using SeenRuns = std::map<std::string, Seen>;  // by workload id
  static bool see(SeenRuns& seen, const std::string& id, std::uint64_t run, double now);

  SeenRuns straggled_;
  SeenRuns relocated_;
  SeenRuns pressed_;
  std::optional<double> seen_at_;
  std::size_t stragglers_ = 0;
  std::size_t relocations_ = 0;
};

}  // namespace berth::daemon
