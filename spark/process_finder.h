// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "spark/process.h"

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace berth::spark {

// Looks through the host's processes, and waits for none of them without end: a process can keep its command
// line from being read (os/worker.h).
class ProcessFinder {
 public:
  static constexpr std::chrono::milliseconds kPatience{500};  // with one process
  static constexpr std::size_t kMostHung = 16;                // readings that hang, each on a thread
  // Of one user, or of one cgroup of root's. Then no other of its processes is read.
  static constexpr std::size_t kMostHungOfParty = 4;

  explicit ProcessFinder(std::filesystem::path proc_root) : proc_root_(std::move(proc_root)) {}

  struct Found {
    std::vector<Process> processes;  // ascending by pid
    // Those that could not be read in time. They are not read again while their reading hangs.
    std::set<pid_t> unread;
    std::optional<std::string> failure;  // why some were not even tried: the system refused a thread
  };
  Found find();

 private:
  struct Scan;
  struct Hung {
    std::shared_ptr<Scan> scan;
    pid_t pid = 0;
    std::string party;
  };
  std::vector<pid_t> readable(std::set<pid_t>& unread);
  static std::optional<std::string> start(const std::shared_ptr<Scan>& scan);
  static bool finish(const std::shared_ptr<Scan>& scan);

  std::filesystem::path proc_root_;
  std::list<Hung> hung_;
};

}  // namespace berth::spark
