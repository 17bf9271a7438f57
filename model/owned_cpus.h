// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/cpu_set.h"

#include <string>

namespace berth::model {

// How berth knows that vCPUs belong to work of another program. Each of these can only be set by root.
enum class OwnedHow {
  isolated,   // the kernel balances no work onto them: isolcpus=, /sys/devices/system/cpu/isolated
  partition,  // cpuset.cpus.partition of the owner is "root" or "isolated"
  exclusive,  // cpuset.cpus.exclusive of the owner lists them
  kubelet,    // the static CPU policy of kubelet gave them to one container: cpuset.cpus
  runtime,    // a container runtime or libvirt pinned a container or a guest there: cpuset.cpus
};
const char* to_string(OwnedHow how);  // "isolated", "partition", "exclusive", "kubelet", "runtime"

// vCPUs that another program gave to its own work. berth plans nothing onto them (docs/decisions/pinning.md,
// vCPUs of others).
struct OwnedCpus {
  std::string
      owner;  // cgroup path below the v2 root; empty where the kernel keeps them and no cgroup has them
  CpuSet cpus;
  OwnedHow how = OwnedHow::isolated;

  friend bool operator==(const OwnedCpus&, const OwnedCpus&) = default;
};

// The evidence in words: "cpuset.cpus.partition makes it a partition".
std::string evidence_text(OwnedHow how);
// The owner, its vCPUs and the evidence, as one clause without a full stop.
std::string to_text(const OwnedCpus& owned);

}  // namespace berth::model
