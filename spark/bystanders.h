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

// Processes of one cgroup that do not belong to Spark.
struct Bystanders {
  pid_t pid = 0;  // of the first one
  std::string name;
  std::size_t count = 0;
  friend bool operator==(const Bystanders&, const Bystanders&) = default;
};

// Bystanders by cgroup, outside the root cgroup. The processes of `spark` and all that they have started are
// no bystanders. Nor is the init of a container with such a process: the first process of a PID namespace
// below this one. The processes between it and the Spark process count as part of the container (NSpid of
// proc(5)).
std::map<std::string, Bystanders> find_bystanders(const std::filesystem::path& proc_root,
                                                  const std::vector<Process>& spark);
// The same of these processes alone. Others are read only where they are ancestors.
std::map<std::string, Bystanders> find_bystanders(const std::filesystem::path& proc_root,
                                                  const std::vector<Process>& spark,
                                                  const std::vector<pid_t>& pids);

}  // namespace berth::spark
