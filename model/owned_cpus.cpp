// SPDX-License-Identifier: Apache-2.0
#include "model/owned_cpus.h"

#include <fmt/core.h>

namespace berth::model {

const char* to_string(OwnedHow how) {
  switch (how) {
    case OwnedHow::partition:
      return "partition";
    case OwnedHow::exclusive:
      return "exclusive";
    case OwnedHow::kubelet:
      return "kubelet";
    case OwnedHow::runtime:
      return "runtime";
    case OwnedHow::isolated:
      break;
  }
  return "isolated";
}

std::string evidence_text(OwnedHow how) {
  switch (how) {
    case OwnedHow::partition:
      return "cpuset.cpus.partition makes it a partition";
    case OwnedHow::exclusive:
      return "its cpuset.cpus.exclusive lists them";
    case OwnedHow::kubelet:
      return "kubelet's static CPU policy gave them to this container alone, by cpuset.cpus";
    case OwnedHow::runtime:
      return "the program that runs it pinned it there, by cpuset.cpus";
    case OwnedHow::isolated:
      break;
  }
  return "/sys/devices/system/cpu/isolated or the root's cpuset.cpus.isolated lists them";
}

std::string to_text(const OwnedCpus& owned) {
  return fmt::format("{} {} {} to {}: {}", owned.cpus.size() == 1 ? "vCPU" : "vCPUs", owned.cpus.to_string(),
                     owned.cpus.size() == 1 ? "belongs" : "belong",
                     owned.owner.empty() ? "no workload, as the kernel isolates them" : owned.owner,
                     evidence_text(owned.how));
}

}  // namespace berth::model
