// SPDX-License-Identifier: Apache-2.0
// Trials of settings, and their ends.
#include "daemon/daemon.h"
#include "daemon/ledger/action_log.h"
#include "daemon/ledger/message_ids.h"
#include "os/log.h"

#include <utility>

#include <fmt/core.h>
#include <syslog.h>

namespace berth::daemon {

using model::ErrorKind;

model::Result<std::string> Daemon::begin_trial(const TrialCaller& caller, std::string_view a,
                                               std::string_view b) {
  expire_trial();
  if (trial_) {
    return model::fail(ErrorKind::refused,
                       fmt::format("another trial runs, that of {}; berthctl reload ends it", trial_->who()));
  }
  auto trial = Trial::begin(
      caller,
      {.settings = setup_->settings, .enforced = enforcement_.enforces(), .mode_follows = mode_follows_}, a,
      b, setup_->clock.now());
  if (!trial) return model::fail(trial.error());
  if (trial->enforces() && !enforcement_.enforces()) {
    if (setup_->options.observe)
      return model::fail(ErrorKind::refused, "this berthd only observes (--observe), so no side can enforce");
    if (const auto why_not = enforcement_.problem())
      return model::fail(ErrorKind::refused, "berth cannot enforce on this host: " + *why_not);
  }
  trial_ = std::move(*trial);
  announce_event(kMessageTrial, LOG_NOTICE, fmt::format("a trial begins, led by {}", trial_->who()),
                 enforcement_.mode());
  return trial_->begin_json();
}

model::Result<void> Daemon::owns_trial(const std::string& caller) {
  expire_trial();
  if (trial_ && trial_->caller().key == caller) return {};
  const bool ended = !trial_ended_.caller.empty() && trial_ended_.caller == caller;
  return model::fail(ErrorKind::gone, ended ? "the trial has ended: " + trial_ended_.reason
                                            : "you lead no trial; BeginTrial begins one");
}

model::Result<void> Daemon::use_trial_side(const std::string& caller, std::string_view side, double lease_s) {
  if (auto owns = owns_trial(caller); !owns) return owns;
  if (auto used = trial_->use(side, lease_s, setup_->clock.now()); !used) return used;
  take_trial_settings(trial_->settings(), trial_->before().settings.mode);
  const bool enforces = trial_->settings().mode == config::Mode::enforce;
  if (auto switched = switch_mode(enforces ? "enforce" : "observe"); !switched) {
    const std::string why = switched.error().message();
    finish_trial("a side could not be had: " + why);
    return model::fail(switched.error());
  }
  return {};
}

model::Result<void> Daemon::end_trial(const std::string& caller, bool keep) {
  if (auto owns = owns_trial(caller); !owns) return owns;
  if (!keep || !trial_->has_side()) {
    finish_trial("its caller ended it");
    return {};
  }
  kept_trial_ = trial_->report(setup_->clock.wall_ahead_s());
  kept_trial_->kept = true;
  kept_trial_->until.reset();
  announce_event(
      kMessageTrial, LOG_NOTICE,
      fmt::format("the trial of {} has ended; the settings of side {} stay in force until the next "
                  "reload or restart",
                  trial_->who(), kept_trial_->side),
      enforcement_.mode());
  trial_.reset();
  mode_follows_ = true;  // the next reload goes back to the mode of the file
  return {};
}

void Daemon::caller_left(const std::string& caller) {
  if (trial_ && trial_->caller().key == caller) finish_trial("its caller left the bus");
}

void Daemon::expire_trial() {
  if (trial_ && trial_->is_over(setup_->clock.now())) finish_trial("its caller did not go on in time");
}

// The mode of the file stays as it is, as the present one is not of it. What failed is not tried again: a
// trial must not pardon in each window.
void Daemon::take_trial_settings(const config::Settings& settings, config::Mode file_mode) {
  const bool same_writer = setup_->settings.foreign_writer == settings.foreign_writer;
  setup_->settings = settings;
  setup_->settings.mode = file_mode;
  may_place_ = false;
  answers_.drop_documents();
  senses_->follow_settings();
  if (!same_writer) enforcement_.follow_foreign_writer();
}

void Daemon::finish_trial(const std::string& reason) {
  const Trial trial = std::move(*trial_);
  trial_.reset();
  trial_ended_ = {trial.caller().key, reason};
  take_trial_settings(trial.before().settings, trial.before().settings.mode);
  const auto switched = switch_mode(trial.before().enforced ? "enforce" : "observe");
  mode_follows_ = trial.before().mode_follows;
  if (!switched) {
    os::log_error("after a trial: {}; staying in observe mode", switched.error().message());
    mode_follows_ = true;
  }
  announce_event(
      kMessageTrial, LOG_NOTICE,
      fmt::format("the trial of {} has ended ({}); the settings are as before", trial.who(), reason),
      enforcement_.mode());
}

std::optional<TrialReport> Daemon::trial_report() const {
  return trial_ ? std::optional(trial_->report(setup_->clock.wall_ahead_s())) : kept_trial_;
}

}  // namespace berth::daemon
