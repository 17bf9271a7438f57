// SPDX-License-Identifier: Apache-2.0
// Idle vCPUs of latency-sensitive instances that best-effort work borrows (docs/decisions/borrowing.md).
#pragma once

#include "model/cpu_set.h"

#include <map>
#include <optional>
#include <string>

namespace berth::model {

// berth's memory of an instance that may lend, from one tick to the next. Times are epoch seconds.
struct LendingState {
  CpuSet cpus;                       // lent
  std::optional<double> changed_at;  // when `cpus` last changed
  // Since when nothing is lent: its usual figures are measured from there on. nullopt while it lends.
  std::optional<double> quiet_since;
  std::optional<double> usual_delay_s;  // its run-queue delay with nothing lent; nullopt: not measured
  std::optional<double> usual_cpi;      // likewise; nullopt also without performance counters
  std::optional<double> measured_at;    // when these were measured; nullopt: they are to be measured again
  std::optional<double> cpi;            // smoothed, of late
  double pause_s = 0;                   // the last pause; 0: none that counts
  std::optional<double> paused_until;   // the end of the last pause

  friend bool operator==(const LendingState&, const LendingState&) = default;
};

// A pinned instance, as a plan judges its lending.
struct Lender {
  CpuSet withdrawn;                // vCPUs that this plan takes back
  double use_cores = 0;            // mean over the last samples
  std::optional<double> delay_s;   // the 99th percentile of its waits for a vCPU, of the newest sample
  std::optional<double> target_s;  // the most that it may be; nullopt: not known yet
  bool missed = false;             // the target is missed in this tick
  std::string reason;              // in words: why it lends no more, or nothing
  LendingState state;              // for the next tick; it has the vCPUs that the plan lends

  friend bool operator==(const Lender&, const Lender&) = default;
};

// Best-effort work that may borrow.
struct Borrower {
  CpuSet cpus;         // vCPUs of instances that it may use after the plan
  std::string reason;  // in words: why none, or their owners

  friend bool operator==(const Borrower&, const Borrower&) = default;
};

struct BorrowingFindings {
  std::map<std::string, Lender> lenders;      // by workload id
  std::map<std::string, Borrower> borrowers;  // by workload id

  friend bool operator==(const BorrowingFindings&, const BorrowingFindings&) = default;
};

}  // namespace berth::model
