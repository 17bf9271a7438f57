// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/plan.h"
#include "model/snapshot.h"

#include <deque>
#include <optional>

namespace berth::daemon {

// The utilisation of the host over the last five minutes, for the weighted peak of overselling
// (docs/decisions/overselling.md).
class RecentUseWatch {
 public:
  static constexpr double kSpan_s = 300;

  // Adds a tick's findings, and the load that the tick read.
  void take(const model::Plan& plan, double load1);
  // Means over the ticks of the five minutes before `now`, epoch seconds; nullopt where there is none.
  std::optional<model::RecentUse> means(double now) const;

 private:
  struct Tick {
    double time = 0;
    double cpu = 0;
    double memory = 0;
    double load1 = 0;
  };
  std::deque<Tick> ticks_;  // oldest first
};

}  // namespace berth::daemon
