// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/cgroup.h"
#include "daemon/ledger/held.h"
#include "model/cpu_set.h"

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace berth::daemon {

// The vCPUs that a workload's ancestors and its own configuration permit, without berth's own pins. Otherwise
// each pin would narrow the choice of the next one. Ancestors' files are read once and kept until refresh().
class AllowedCpus {
 public:
  explicit AllowedCpus(std::filesystem::path cgroup_root) : root_(std::move(cgroup_root)) {}

  const std::filesystem::path& root() const { return root_; }
  // cpuset.cpus.effective of the root, read now; empty without the controller.
  model::CpuSet root_cpus() const;
  void refresh() {
    read_.clear();
    begin_pass();
  }
  // Call it before of() where pins may have changed since the last call. A parent's vCPUs are computed once
  // for workloads of one parent in a row.
  void begin_pass() { parent_.reset(); }

  // `configured` is cpuset.cpus of the workload, or its original where berth pinned it; empty means unset.
  // nullopt where every vCPU of `usable` is permitted, and without the cpuset controller.
  std::optional<model::CpuSet> of(const std::string& workload, const model::CpuSet& configured,
                                  const HeldValues& pins, const model::CpuSet& usable);

 private:
  struct Files {
    std::optional<model::CpuSet> configured;  // cpuset.cpus; nullopt where there is no such file
    std::optional<model::CpuSet> effective;   // cpuset.cpus.effective
  };
  struct Permitted {
    std::optional<model::CpuSet> cpus;  // nullopt: unrestricted
    bool below_pin = false;             // the kernel's effective set includes a pin of berth's
  };
  Permitted permitted(const std::string& path, const HeldValues& pins);
  const Files& files(const std::string& path);

  std::filesystem::path root_;
  std::map<std::string, Files> read_;
  std::optional<std::string> parent_;  // of the last call of of(), in this pass
  Permitted by_parent_;
  bool restricted_ = false;  // by_parent_ lacks a usable vCPU
};

}  // namespace berth::daemon
