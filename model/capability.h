// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace berth::model {

// One thing the host offers berth, or does not and why; `berthctl status` lists them.
struct Capability {
  std::string name;  // "cgroup-v2", "cpuset-controller", "systemd", "polkit", "smt", "llc", ...
  bool available = false;
  std::string detail;  // what was found; where missing, why, and what berth does without it

  friend bool operator==(const Capability&, const Capability&) = default;
};

}  // namespace berth::model
