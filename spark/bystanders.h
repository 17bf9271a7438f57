// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "spark/process.h"

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <sys/types.h>

namespace berth::spark {

// Processes of one cgroup that have nothing to do with Spark.
struct Bystanders {
  pid_t pid = 0;  // of the first one
  std::string name;
  std::size_t count = 0;
  friend bool operator==(const Bystanders&, const Bystanders&) = default;
};

// By cgroup, of every process outside the root cgroup that is none of `spark`, none that one of those has
// started, and no init that brought one up in a container of its own (the first process of a PID namespace
// below this one, and what stands between it and the Spark process; NSpid of proc(5)).
std::map<std::string, Bystanders> find_bystanders(const std::filesystem::path& proc_root,
                                                  const std::vector<Process>& spark);

}  // namespace berth::spark
