// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/ledger/held.h"
#include "daemon/ledger/journal_shares.h"
#include "daemon/ledger/straggler_news.h"
#include "daemon/observe/sampling_budget.h"
#include "model/error.h"
#include "model/plan.h"
#include "topology/gpu_inventory.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth::daemon {

// Says in the journal what operators should know of a tick, each fact once as long as it lasts. Actions have
// entries of their own (daemon/ledger/action_log.h).
class Announcer {
 public:
  // Workloads that cannot be placed or confined, or are throttled, and memory that runs out although berth
  // may evict.
  void findings(const model::Plan& plan, const MayAnnounce& may_announce);
  static void stragglers(const StragglersNews& news, std::string_view mode, const MayAnnounce& may_announce);
  static void gpus(const std::vector<topology::GpuNews>& news, std::string_view mode);
  // Workloads that are left alone now and were not before.
  static void left_alone(const LeftAloneWorkloads& before, const LeftAloneWorkloads& now,
                         std::string_view mode, const MayAnnounce& may_announce);
  // Ticks that are farther apart than configured, because sampling would cost too much.
  void pace(const SamplingBudget& budget, double configured_s, double max_cpu);
  // Messages that were dropped since the start (os/outbox.h). Says how many, once no more are.
  void dropped(std::uint64_t to_journal, std::uint64_t to_systemd);
  // The error of an attempt that is made at every tick; `what` names the attempt. Says it when it begins.
  void attempt(const std::string& what, const model::Result<void>& result);

 private:
  std::set<std::string> said_findings_;
  // By finding and workload id: epoch seconds of the last one of those that come and go.
  std::map<std::pair<std::string, std::string>, double> swinging_at_;
  std::set<std::string> failing_;
  bool slowed_said_ = false;
  std::uint64_t dropped_before_ = 0;  // at the tick before
  std::uint64_t dropped_said_ = 0;
};

}  // namespace berth::daemon
