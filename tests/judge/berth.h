// SPDX-License-Identifier: Apache-2.0
// berth's own decisions on a simulated host, from what berthd would read of it each second.
#pragma once

#include "daemon/learn/learner.h"
#include "model/snapshot.h"
#include "model/standing.h"
#include "policies/settings.h"
#include "tests/judge/rows.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace berth::judge {

// cpu.weight of 100 is 1024 of the kernel's.
inline constexpr double kLeastWeight = 10.24;

// The host as berth reads it.
model::Topology topology_of(const std::vector<CpuPlace>& places);

// Services have run for long. It learns models at each tick, if it is to, and uses those that it had at the
// start. `host` must outlive it.
class Berth {
 public:
  Berth(const Host& host, const policies::InterferenceSettings& settings,
        const std::map<std::string, model::ServiceProfile>& learned = {}, bool learns = false);

  // From here on, these are the pins of the batch, by its groups, whatever berth plans.
  void pin_batch(std::vector<CpuMask> masks) { batch_pins_ = std::move(masks); }
  // One tick: reads, decides, and carries the plan out.
  void decide(Kernel& kernel, const std::vector<Reading>& readings);
  const std::map<std::string, model::ServiceProfile>& learned() const { return learner_.services(); }

 private:
  const Host& host_;
  policies::PolicySettings settings_;
  model::Snapshot snapshot_;
  model::Standing standing_;
  bool learns_;
  std::vector<CpuMask> batch_pins_;
  std::vector<std::string> warnings_;
  daemon::Learner learner_;
};

}  // namespace berth::judge
