// SPDX-License-Identifier: Apache-2.0
#include "daemon/learned.h"

#include "daemon/ledger/action_entries.h"
#include "daemon/observe/past_demand.h"
#include "daemon/observe/past_usage.h"
#include "os/log.h"

namespace berth::daemon {

Learned::Learned(const Setup& setup, Observer& observer)
    : setup_(setup),
      observer_(observer),
      used_shares_(setup.options.state_dir, setup.clock, setup.boot_id, warning_),
      models_(setup.options.state_dir, setup.options.config_file.parent_path() / "profiles.d", faults_) {
  for (const auto& fault : faults_)
    os::log_warning("cannot read all learned profiles, so berth goes on without these: {}", fault);
  if (warning_) {
    os::log_warning("cannot read the usage shares of the last day, so oversell starts without them: {}",
                    *warning_);
  }
  std::optional<std::string> warning;
  observer_.set_past_demand(take_demand(setup.options.state_dir, setup.boot_id, setup.clock, warning));
  if (warning) {
    os::log_warning("cannot read what memory the services used, so the forecast begins anew: {}", *warning);
  }
  if (setup.boot_id.empty()) return;
  observer_.set_past(take_usage(setup.options.state_dir, setup.boot_id, setup.clock, warning));
  if (warning) {
    os::log_warning("cannot read the samples that an earlier berthd saved, so berth starts without them: {}",
                    *warning);
  }
}

void Learned::show() { observer_.set_used_shares(used_shares_.all()); }

model::Result<void> Learned::take(const model::Plan& plan) {
  return used_shares_.take(plan) ? used_shares_.save_in_background() : model::Result<void>();
}

void Learned::note_moves(const std::vector<LogEntry>& done, double now) {
  for (const std::string& workload : changed_pins(done))
    models_.note_move(observer_.snapshot(), workload, now);
}

model::Result<void> Learned::learn(const MayAnnounce& may_announce, bool learns) {
  const auto& snapshot = observer_.snapshot();
  if (learns) {
    for (const auto& [workload, text] : models_.take(snapshot, setup_.settings.policies.interference)) {
      if (may_announce(workload)) os::log_info("{}", text);
    }
  }
  models_.forget_moves();
  if (shown_ != models_.generation()) {
    shown_ = models_.generation();
    observer_.set_services(models_.services());
  }
  return models_.wants_save(snapshot.time) ? models_.save_in_background(snapshot.host, snapshot.time)
                                           : model::Result<void>();
}

void Learned::follow_settings() {
  faults_.clear();
  models_.read_priors(faults_);
  for (const auto& fault : faults_) os::log_warning("cannot read all learned profiles: {}", fault);
}

void Learned::save() {
  if (const auto saved = models_.save(observer_.snapshot().host); !saved)
    os::log_warning("{}", saved.error().message());
  if (const auto saved = used_shares_.save(); !saved) os::log_warning("{}", saved.error().message());
  if (const auto saved =
          save_demand(setup_.options.state_dir, setup_.boot_id, setup_.clock, observer_.snapshot());
      !saved)
    os::log_warning("{}", saved.error().message());
  if (setup_.boot_id.empty()) return;
  const auto saved = save_usage(setup_.options.state_dir, setup_.boot_id, setup_.clock, observer_.snapshot(),
                                [this](const std::string& id) { return observer_.cgroup_id(id); });
  if (!saved) os::log_warning("{}", saved.error().message());
}

}  // namespace berth::daemon
