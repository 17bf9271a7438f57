// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/borrowing.h"
#include "model/plan.h"
#include "model/snapshot.h"

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

namespace berth::daemon {

// Keeps what a plan found of instances that may lend vCPUs, for the next tick. A finding belongs to one run
// of its workload. Without interference.borrow a plan has none, and all is forgotten.
class LendingWatch {
 public:
  using RunOf = std::function<std::uint64_t(const std::string& workload)>;  // 0 where there is none

  // `counts`: the plan is carried out, so misses and withdrawals count.
  void take(const model::Plan& plan, const RunOf& run_of, bool counts);
  // berth has put everything back: nothing is lent any more.
  void forget() { states_.clear(); }
  // Fills in `lending` of the workloads that have it.
  void mark(model::Snapshot& snapshot, const RunOf& run_of) const;

  // Ids of the workloads that lend vCPUs now.
  std::set<std::string> lenders() const;

  // Since the start: targets that were missed, and vCPUs that were taken back for any reason.
  std::uint64_t misses() const { return misses_; }
  std::uint64_t withdrawn() const { return withdrawn_; }

 private:
  struct Known {
    std::uint64_t cgroup_id = 0;
    model::LendingState state;
  };
  std::map<std::string, Known> states_;  // by workload id
  std::uint64_t misses_ = 0;
  std::uint64_t withdrawn_ = 0;
};

}  // namespace berth::daemon
