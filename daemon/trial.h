// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/config.h"
#include "config/trial_settings.h"
#include "daemon/report/trial_json.h"
#include "daemon/serve/control.h"
#include "model/error.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::daemon {

// The state of a trial: both sides' settings, those before it, its caller and its end. It is in memory alone,
// so a berthd that was killed begins with its files.
class Trial {
 public:
  static constexpr double kFirstLease_s = 60;  // until the first window
  static constexpr double kShortestLease_s = 1;
  static constexpr double kLongestLease_s = 86400;

  // The daemon goes back to this.
  struct Before {
    config::Settings settings;
    bool enforced = false;
    bool mode_follows = false;  // Daemon::mode_follows_
  };

  // Reads both sides over the settings that stand; a side that names no mode has the present one. Where berth
  // only observed before, no side ends work, as that could not be put back. Error invalid_input or refused,
  // as Control::begin_trial says. `now`: epoch seconds of berthd's clock, here and below.
  static model::Result<Trial> begin(TrialCaller caller, Before before, std::string_view a, std::string_view b,
                                    double now);

  const TrialCaller& caller() const { return caller_; }
  const Before& before() const { return before_; }
  // The settings that differ: a berth.trial-begin/1 document.
  std::string begin_json() const;
  // Whether a side enforces.
  bool enforces() const;

  // Takes the side for `lease_s` from `now` on. Error invalid_input for another word or time.
  model::Result<void> use(std::string_view side, double lease_s, double now);
  bool has_side() const { return side_.has_value(); }
  // Of the present side. Call it only if has_side().
  const config::Settings& settings() const { return sides_[*side_]; }
  bool is_over(double now) const { return now >= until_; }
  // "process 123 of user 0".
  std::string who() const;
  // With times of the wall clock.
  TrialReport report(double wall_ahead_s) const;

 private:
  TrialCaller caller_;
  Before before_;
  std::array<config::Settings, 2> sides_;
  std::vector<config::Difference> differs_;
  std::optional<std::size_t> side_;
  double begun_ = 0;
  double until_ = 0;
};

}  // namespace berth::daemon
