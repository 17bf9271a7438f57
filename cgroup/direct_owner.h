// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/attribute.h"

#include <filesystem>
#include <optional>
#include <string>

namespace berth::cgroup {

// Writes the kernel's control files of groups that no systemd unit stands for: a runtime's, or a delegated
// subtree.
//
// Through Cgroup's open directory, not through libcgroup: that library names a group by its path alone, so
// between looking and writing a recreated group could take the path over and get its predecessor's value.
class DirectOwner : public Owner {
 public:
  // SYS_ROOT/devices/system/cpu/possible tells the CPUs that stand for "unset" where the kernel refuses to
  // clear a cpulist.
  explicit DirectOwner(std::filesystem::path cgroup_root, std::filesystem::path sys_root = "/sys");

  const char* name() const override { return "direct"; }
  std::string attainable(Attribute attribute, const std::string& value) const override;
  model::Result<Original> original(const Target& target, Attribute attribute) override;
  model::Result<std::string> current(const Target& target, Attribute attribute) override;
  model::Result<void> set(const Target& target, Attribute attribute, const std::string& value) override;
  model::Result<std::string> reset(const Target& target, Attribute attribute,
                                   const Original& original) override;
  model::Result<void> relinquish(const Target& target, Attribute attribute, const Original& original,
                                 const std::string& written) override;
  model::Result<bool> merged(const Target& target, Attribute attribute, const Original& original,
                             const std::string& written, const std::string& current) override;
  model::Result<void> settle() override { return {}; }

 private:
  std::filesystem::path cgroup_root_;
  std::filesystem::path sys_root_;
};

// Writes the canonical `value`, "" meaning unset, and returns what is in force then. Linux before 6.17 does
// not let a cpulist be cleared under running tasks (ENOSPC): then every possible CPU is written, which has
// the same effect.
model::Result<std::string> write_attribute(const Cgroup& cgroup, Attribute attribute,
                                           const std::string& value, const std::filesystem::path& sys_root);

// Why the kernel takes no such cpu.max (EINVAL): cpu.max.burst, which berth never changes, is above the
// quota. nullopt where it is not (Linux, scheduler/sched-bwc, "burst feature").
std::optional<std::string> burst_above(const Cgroup& cgroup, const std::string& cpu_max);

// Error where not all vCPUs of `cpus` are granted, naming what is and the group above that withholds the
// rest.
model::Result<void> check_granted(const Cgroup& cgroup, const std::string& cpus,
                                  const std::filesystem::path& cgroup_root);

}  // namespace berth::cgroup
