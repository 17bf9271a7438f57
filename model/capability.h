// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace berth::model {

// One thing that berth needs of the host: it is there, or it is missing and `detail` says why.
// `berthctl status` lists them.
struct Capability {
  std::string name;  // "cgroup-v2", "cpuset-controller", "systemd", "polkit", "smt", "llc", ...
  bool available = false;
  std::string detail;  // what was found; or why it is missing, and what berth does without it

  friend bool operator==(const Capability&, const Capability&) = default;
};

}  // namespace berth::model
