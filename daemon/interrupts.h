// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/interrupt_writer.h"
#include "daemon/ledger/log_entry.h"
#include "daemon/report/interrupts_report.h"
#include "model/cpu_set.h"
#include "model/topology.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace berth::daemon {

// Keeps interrupts off the vCPUs that instances own, while berth enforces (docs/decisions/pinning.md,
// interrupts). An interrupt whose vCPUs another program changes since is left to it, until the owned vCPUs
// change.
class Interrupts {
 public:
  // Other programs' changes are found after so many seconds.
  static constexpr double kLook_s = 30;

  // `writer` outlives this object.
  explicit Interrupts(cgroup::InterruptWriter& writer) : writer_(writer) {}

  // Once a tick. Counts the interrupts; reads them only if their number, `owned` or the online vCPUs changed,
  // or kLook_s after the last time. `of_others`: see policies::off_owned(). Where `owned` is empty, puts all
  // back.
  std::vector<LogEntry> follow(const model::CpuSet& owned, const model::CpuSet& of_others,
                               const model::Topology& topology, double now);
  // Tries again to move those that the kernel refused.
  void retry();

  const InterruptsReport& report() const { return report_; }

 private:
  struct Look;

  bool is_due(const model::CpuSet& owned, const model::CpuSet& online, double now) const;
  void look_at(int number, Look& look, const model::CpuSet& of_others, const model::Topology& topology);
  void carry_out(Look& look);
  void tell_irqbalance(const model::CpuSet& owned, double now, std::vector<LogEntry>& entries);
  std::vector<LogEntry> put_back(double now);
  void forget_numbers();

  cgroup::InterruptWriter& writer_;
  std::vector<int> numbers_;
  model::CpuSet owned_;
  model::CpuSet online_;
  std::optional<double> looked_at_;
  bool replugs_ = false;   // the online vCPUs had changed at the last look
  bool again_ = false;     // irqbalance is to be asked at the next tick
  bool balanced_ = false;  // it ran when it was asked
  model::CpuSet banned_;   // that it was last told
  bool told_ = false;      // of what could not be put back
  std::set<int> refused_;  // the kernel does not let these be moved
  std::set<int> others_;   // another program changed these after berth
  std::set<int> renewed_;  // drivers made them again after berth, which moved them once more
  InterruptsReport report_;
};

}  // namespace berth::daemon
