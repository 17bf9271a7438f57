// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/attribute.h"
#include "cgroup/scope_maker.h"
#include "cgroup/systemd_owner_values.h"
#include "model/error.h"

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace berth::cgroup {

// berth's calls to systemd's manager; each waits for its answer. Error gone where the unit does not exist.
// Error transient where no answer came in time or the connection broke (the next call connects again).
class SystemdBus {
 public:
  // On the system bus. `timeout` is for each call but reload().
  static model::Result<std::unique_ptr<SystemdBus>> connect(std::chrono::milliseconds timeout);
  ~SystemdBus();

  model::Result<UnitSetting> read(const std::string& unit, Attribute attribute);
  // Writes a setting that lasts until the next boot at most (runtime = true).
  model::Result<void> write(const std::string& unit, Attribute attribute, const UnitSetting& setting);
  // False where systemd knows no such unit.
  model::Result<bool> is_loaded(const std::string& unit);
  model::Result<bool> needs_reload(const std::string& unit);
  model::Result<void> reload();
  // Queues a stop job for this unit alone (StopUnit, mode "ignore-requirements").
  model::Result<void> stop(const std::string& unit);
  // Running units that systemd itself ends when this one ends (BoundBy=).
  model::Result<std::vector<std::string>> running_bound_units(const std::string& unit);
  // The next three calls wait a second for each answer.
  //
  // Whether the process belongs to that unit for systemd, whose PID namespace may be another one.
  model::Result<bool> is_process_of(pid_t pid, const std::string& unit);
  // Queues a start job for a transient scope (StartTransientUnit, mode "fail"). See ScopeMaker.
  model::Result<void> start_scope(const Scope& scope);
  // See ScopeMaker.
  model::Result<UnitTraits> traits(const std::string& unit, const std::set<Attribute>& held);

 private:
  struct State;
  explicit SystemdBus(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace berth::cgroup
