// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/owner.h"
#include "os/worker.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <sys/types.h>

namespace berth::cgroup {

// Writes the kernel's control files of groups that are no systemd unit: a container runtime's groups, or a
// delegated subtree.
//
// It writes through Cgroup's open directory, not through libcgroup, which names a group by its path alone.
// Between a look and a write, a new group could take over the path and get its predecessor's value.
class DirectOwner : public Owner {
 public:
  // The kernel may refuse to clear a cpulist. Then CPUs of SYS_ROOT/devices/system/cpu/possible stand for
  // "unset" (write_value()).
  // `write_limit` is the write of memory.high; it may take as long as it likes. set() and reset() wait for
  // it, and for moving pages, for `patience` at most.
  using WriteLimit = std::function<model::Result<void>(const Cgroup& cgroup, const std::string& text)>;
  static model::Result<void> write_memory_high(const Cgroup& cgroup, const std::string& text);
  explicit DirectOwner(std::filesystem::path cgroup_root, std::filesystem::path sys_root = "/sys",
                       WriteLimit write_limit = write_memory_high,
                       std::chrono::milliseconds patience = std::chrono::milliseconds(300));

  const char* name() const override { return "direct"; }
  Value attainable(const Value& value) const override;
  model::Result<Original> original(const Target& target, Attribute attribute) override;
  model::Result<Value> current(const Target& target, Attribute attribute) override;
  model::Result<void> set(const Target& target, const Value& value) override;
  model::Result<Value> reset(const Target& target, const Original& original) override;
  model::Result<void> relinquish(const Target& target, const Original& original,
                                 const Value& written) override;
  model::Result<bool> merged(const Target& target, const Original& original, const Value& written,
                             const Value& current) override;
  bool is_busy(const Target& target, Attribute attribute) const override;
  model::Result<void> settle() override { return {}; }

 private:
  // A write within which the kernel works on.
  struct SlowWrite {
    os::Worker worker;
    uid_t owner = 0;  // of the cgroup
  };

  // Of memory.high and cpuset.mems. Returns the value in force, as write_value() does. Error transient where
  // the kernel still reclaims or moves pages, and the value is not in force yet.
  model::Result<Value> set_slowly(const Cgroup& cgroup, const Value& value);

  std::filesystem::path cgroup_root_;
  std::filesystem::path sys_root_;
  WriteLimit write_limit_;
  std::chrono::milliseconds patience_;
  std::map<std::pair<std::uint64_t, Attribute>, SlowWrite> under_way_;  // by cgroup id
};

// Writes the value and returns the one then in force. Linux before 7.0 does not let a cpulist be cleared
// under running tasks (ENOSPC). Then it writes every possible CPU but those of partitions beside the group,
// which has the same effect. Idle priority is given up before the weight is written: the kernel takes no
// weight of an idle group.
model::Result<Value> write_value(const Cgroup& cgroup, const Value& value,
                                 const std::filesystem::path& sys_root);

// Why the kernel refuses such a cpu.max or cpu.max.burst (EINVAL): the burst would be above the quota.
// nullopt where it would not, and for other attributes (Linux, scheduler/sched-bwc, "burst feature").
std::optional<std::string> burst_above(const Cgroup& cgroup, const Value& value);

// Before a quota goes back: lowers a burst above it, which another program wrote while berth's quota was
// larger. Otherwise the kernel would refuse the quota.
model::Result<void> lower_burst_to(const Cgroup& cgroup, const Value& quota);

// Error where not all vCPUs of `cpus` are granted. It names the granted ones and the group above that
// withholds the rest.
model::Result<void> check_granted(const Cgroup& cgroup, const model::CpuSet& cpus,
                                  const std::filesystem::path& cgroup_root);
// The same for memory of NUMA nodes.
model::Result<void> check_granted(const Cgroup& cgroup, const MemoryNodes& bound);

}  // namespace berth::cgroup
