// SPDX-License-Identifier: Apache-2.0
// Instances that wait for vCPUs in spite of their pin (docs/decisions/waiting.md).
#pragma once

#include "model/plan.h"
#include "model/snapshot.h"
#include "policies/interference/policy.h"
#include "policies/interference/settings.h"
#include "policies/vcpus/node.h"

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace berth::policies {

// So many samples in a row must be above the limit.
inline constexpr std::size_t kWaitingSamples = 3;
// The share of the time that its quota may throttle an instance before that is the cause.
inline constexpr double kWaitingThrottled = 0.01;
// An instance that keeps this share of its vCPUs busy has too few.
inline constexpr double kBusyShare = 0.9;
// It keeps an additional vCPU while it used more than this share of the others.
inline constexpr double kKeepShare = 0.8;
// Best-effort work counts where it takes more than this of an instance's vCPUs.
inline constexpr double kLeastLoad = 0.01;
// An instance never owns more than this many times the vCPUs that it declares.
inline constexpr int kMostGrowth = 2;

struct Waits {
  std::map<std::string, model::WaitingInstance> findings;  // by workload
  // The number that instances are to own instead of the number they declare: those that grow now, and those
  // that keep what they got earlier.
  GrownRequests grown;
  // The vCPUs that an instance may move to now, where best-effort work runs on its own.
  std::map<std::string, model::CpuSet> quieter;
  std::set<std::string> wider;  // shared instances whose home is to become wider
  std::vector<std::string>
      asking;                   // that may grow or move as far as their own state goes, longest wait first
  std::set<std::string> turns;  // of those, the ones that grow or may move now
};

// No instance has a turn yet. Nothing where settings.max_runq_latency_s is 0. `workloads` ascending by id.
// Those in `grown` are stragglers, and get no more. An instance with whole cores does not grow. Pure.
Waits find_waits(const model::Snapshot& snapshot, const std::vector<const model::Workload*>& workloads,
                 const Node& node, const InterferenceSettings& settings, const GrownRequests& grown,
                 double repin_cooldown_s);

// The same after max_moves of those that ask got their turn. `in_vain`: those that would find nothing. They
// get none.
Waits with_turns(Waits waits, const std::set<std::string>& in_vain, int max_moves);

}  // namespace berth::policies
