// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/scope_maker.h"
#include "cgroup/systemd_owner_values.h"
#include "model/attribute.h"
#include "model/error.h"
#include "os/worker.h"

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace berth::cgroup {

// berth's calls to systemd's manager, on the system bus. Error gone where the unit does not exist. Error
// transient where no answer came in time or the connection broke. The next call connects again.
//
// A thread of its own makes the calls, one at a time. If an answer takes longer than the patience, the call
// may still be carried out later. Until it has ended, every other one fails at once.
class SystemdBus {
 public:
  // `timeout` is for the answer to each call but reload(), `patience` for the caller.
  SystemdBus(std::chrono::milliseconds timeout, std::chrono::milliseconds patience);
  ~SystemdBus();

  // Waits for every answer from now on.
  void be_patient();
  // Error where systemd cannot be asked.
  model::Result<void> greet();
  // Whether a call that was given up goes on.
  bool is_busy() const { return worker_.is_busy(); }

  model::Result<UnitSetting> read(const std::string& unit, Attribute attribute);
  // Writes a setting that lasts until the next boot at most (runtime = true).
  model::Result<void> write(const std::string& unit, Attribute attribute, const UnitSetting& setting);
  // False where systemd knows no such unit.
  model::Result<bool> is_loaded(const std::string& unit);
  model::Result<bool> needs_reload(const std::string& unit);
  model::Result<void> reload();
  // The id of the unit's present run, or of its last one; empty where there was none.
  model::Result<std::vector<std::uint8_t>> invocation(const std::string& unit);
  // Queues a stop job for the unit of this run alone (GetUnitByInvocationID; Unit.Stop, mode
  // "ignore-requirements"). Error gone where the run is over: systemd itself looks.
  model::Result<void> stop_run(const std::vector<std::uint8_t>& invocation);
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
  struct Connection;
  template <typename Call>
  auto ask(const std::string& what, Call call);

  std::shared_ptr<Connection> connection_;
  os::Worker worker_;
  std::chrono::milliseconds patience_;
};

}  // namespace berth::cgroup
