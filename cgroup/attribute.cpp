// SPDX-License-Identifier: Apache-2.0
#include "cgroup/attribute.h"

namespace berth::cgroup {

const char* control_file(Attribute attribute) {
  switch (attribute) {
    case Attribute::cpus:
      return "cpuset.cpus";
    case Attribute::cpu_quota:
      return "cpu.max";
    case Attribute::memory_nodes:
      return "cpuset.mems";
    case Attribute::cpu_idle:
      return "cpu.idle";
    case Attribute::memory_high:
      break;
  }
  return "memory.high";
}

const char* controller(Attribute attribute) {
  switch (attribute) {
    case Attribute::cpus:
    case Attribute::memory_nodes:
      return "cpuset";
    case Attribute::cpu_quota:
    case Attribute::cpu_idle:
      return "cpu";
    case Attribute::memory_high:
      break;
  }
  return "memory";
}

std::optional<Attribute> attribute_of(std::string_view file) {
  for (const Attribute attribute : kAttributes) {
    if (file == control_file(attribute)) return attribute;
  }
  return std::nullopt;
}

}  // namespace berth::cgroup
