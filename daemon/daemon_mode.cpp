// SPDX-License-Identifier: Apache-2.0
// Changes of the mode and of the configuration.
#include "config/without_effect.h"
#include "daemon/daemon.h"
#include "daemon/ledger/action_log.h"
#include "daemon/ledger/message_ids.h"
#include "daemon/report/report_json.h"
#include "os/log.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>
#include <syslog.h>

namespace berth::daemon {

using model::ErrorKind;

model::Result<void> Daemon::set_mode(std::string_view mode) {
  if (mode != "observe" && mode != "enforce") {
    return model::fail(ErrorKind::invalid_input,
                       fmt::format("mode \"{}\": must be observe or enforce", mode));
  }
  if (trial_) finish_trial("a mode was chosen");
  // One that stands already is chosen as well; one to enforce may yet fail.
  if (mode == "observe" || mode == enforcement_.mode()) mode_follows_ = false;
  return switch_mode(mode);
}

model::Result<void> Daemon::switch_mode(std::string_view mode) {
  if (mode == enforcement_.mode()) return {};
  if (mode == "enforce") {
    if (auto begun = begin_enforcing(); !begun) {
      return model::fail(begun.error().context("cannot enforce"));
    }
    mode_follows_ = false;
  } else {
    end_enforcing("switched to observe mode", Enforcement::kRestoreBudget);
  }
  announce_event(kMessageModeChanged, LOG_NOTICE, fmt::format("berth's mode is {} now", mode), mode);
  messenger_.publish({});
  notify_.status(status_line());
  return {};
}

model::Result<std::string> Daemon::restore() {
  if (trial_) finish_trial("a restore was requested");
  const bool enforced = enforcement_.enforces();
  mode_follows_ = false;
  const auto report = end_enforcing("restore was requested", Enforcement::kRestoreBudget);
  if (enforced) {
    announce_event(kMessageModeChanged, LOG_NOTICE,
                   "everything was put back on request; berth's mode is observe now", "observe");
    messenger_.publish({});
    notify_.status(status_line());
  }
  return restore_json(report);
}

model::Result<void> Daemon::reload() {
  notify_.reloading();
  auto loaded = config::load(setup_->options.config_file);
  if (!loaded) {
    setup_->reload_error = loaded.error().message();
    announce_event(kMessageReloadRejected, LOG_ERR,
                   fmt::format("the configuration was not reloaded, the old one stays in force: {}",
                               *setup_->reload_error),
                   enforcement_.mode());
    notify_.ready(status_line());
    return model::fail(loaded.error());
  }
  if (trial_) finish_trial("the configuration was reloaded");
  kept_trial_.reset();
  mode_follows_ |= loaded->mode != setup_->settings.mode;
  const auto known = config::remarks(setup_->settings);
  setup_->settings = std::move(*loaded);
  may_place_ = false;
  for (const std::string& text : config::remarks(setup_->settings)) {
    if (std::find(known.begin(), known.end(), text) == known.end()) os::log_warning("{}", text);
  }
  answers_.drop_documents();
  setup_->reload_error.reset();
  setup_->loaded = setup_->clock.now();
  // Known words only, so this cannot fail: the configuration checked it.
  (void)os::set_log_level(setup_->settings.log_level);
  senses_->follow_settings();
  metrics_.keep(setup_->settings.metrics_listen, setup_->loaded);
  const auto changes = senses_->observer().set_rules(setup_->settings.rules);
  for (const auto& warning : changes.warnings) os::log_warning("{}", warning);
  admissions_.add_arrived(changes.appeared);
  messenger_.follow_settings();
  learned_.follow_settings();
  if (const auto opened = enforcement_.open(); !opened)
    os::log_warning("undo journal: {}", opened.error().message());
  enforcement_.follow_settings();
  announce_event(kMessageReloaded, LOG_INFO, fmt::format("reloaded {}", setup_->options.config_file.string()),
                 enforcement_.mode());
  auto followed = follow_configured_mode();
  notify_.ready(status_line());
  return followed;
}

model::Result<void> Daemon::follow_configured_mode() {
  // A mode chosen over the bus stays, unless the file now says something else than it did.
  if (!mode_follows_ || setup_->options.observe) return {};
  const auto switched = set_mode(setup_->settings.mode == config::Mode::enforce ? "enforce" : "observe");
  if (switched) return {};
  os::log_error("{}; staying in observe mode", switched.error().message());
  return model::fail(
      switched.error().context("the configuration was reloaded, but its mode was not taken over"));
}

}  // namespace berth::daemon
