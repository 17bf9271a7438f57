// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/plan.h"
#include "model/snapshot.h"
#include "policies/settings.h"
#include "replay/figures.h"
#include "replay/history.h"
#include "replay/standing.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace berth::replay {

// One action of a plan, with what it changes.
struct Decision {
  double time = 0;  // epoch seconds
  std::string kind;
  std::string workload;  // "" for an advertisement
  std::string before;    // the value that stands; "" where its kind is enough
  std::string after;     // the value that the action sets
  model::Action action;
};

// A replay with one set of settings. The policies run on each recorded snapshot; their plans change what
// stands, and nothing else.
class Side {
 public:
  explicit Side(policies::PolicySettings settings) : settings_(std::move(settings)) {}

  // Decides for a recorded snapshot. Returns the decisions; they are good until the next call.
  const std::vector<Decision>& step(const model::Snapshot& recorded);
  // Call it after the last step.
  void finish();

  const Figures& figures() const { return figures_; }
  const History& history() const { return history_; }
  // The plan of the newest step.
  const model::Plan& plan() const { return plan_; }

 private:
  policies::PolicySettings settings_;
  std::optional<Standing> standing_;
  model::Snapshot seen_;
  model::Plan plan_;
  std::vector<Decision> decisions_;
  Figures figures_;
  History history_;
};

}  // namespace berth::replay
