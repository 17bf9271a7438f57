// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/owner.h"
#include "cgroup/scope_maker.h"

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace berth::cgroup {

// Changes units through systemd's bus interface (org.freedesktop.systemd1(5)), at run time only:
// AllowedCPUs=, CPUQuota=, MemoryHigh=, AllowedMemoryNodes=, CPUWeight=. systemd applies a property to the
// unit's group before it answers, so that one reading back is enough.
class SystemdOwner : public Owner, public ScopeMaker {
 public:
  struct Options {
    std::filesystem::path run_dir = "/run/systemd";  // where systemd keeps runtime drop-ins
    std::filesystem::path cgroup_root = "/sys/fs/cgroup";
    std::filesystem::path sys_root = "/sys";
    std::chrono::milliseconds call_timeout = std::chrono::seconds(5);
    // How long a caller waits for an answer. After that the call goes on, and fails with error transient.
    std::chrono::milliseconds patience = std::chrono::seconds(30);
  };
  // Asks nothing yet: systemd may come later.
  explicit SystemdOwner(Options options);
  // Error unavailable where there is no bus or no systemd on it.
  static model::Result<std::unique_ptr<SystemdOwner>> connect(Options options);
  ~SystemdOwner() override;

  // Error where systemd cannot be asked now.
  model::Result<void> greet();
  // Waits for every answer from now on, up to each call's timeout.
  void be_patient();

  const char* name() const override { return "systemd"; }
  // systemd keeps a CPU quota as whole percents of a CPU in its drop-in. A finer one would change at its next
  // reload.
  Value attainable(const Value& value) const override;
  model::Result<Original> original(const Target& target, Attribute attribute) override;
  model::Result<Value> current(const Target& target, Attribute attribute) override;
  model::Result<void> set(const Target& target, const Value& value) override;
  bool is_busy(const Target& target, Attribute attribute) const override;
  model::Result<Value> reset(const Target& target, const Original& original) override;
  model::Result<void> relinquish(const Target& target, const Original& original,
                                 const Value& written) override;
  // systemd adds up the assignments of AllowedCPUs= in unit file and drop-ins. If a unit is configured with
  // vCPUs of its own, a daemon-reload makes a pin the union of both.
  model::Result<bool> merged(const Target& target, const Original& original, const Value& written,
                             const Value& current) override;
  // Runs one daemon-reload, if a unit whose drop-in was removed says that it needs one.
  model::Result<void> settle() override;
  model::Result<void> stop_unit(const std::string& unit, const std::function<bool()>& is_same_run) override;
  model::Result<void> start_scope(const Scope& scope) override;
  model::Result<UnitTraits> traits(const std::string& unit, const std::set<Attribute>& held) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace berth::cgroup
