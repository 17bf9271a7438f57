// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/sampler.h"
#include "ebpf/collector.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace berth::daemon {

// What the kernel itself counts of every cgroup, by eBPF, as far as this host lets it; files are what is left
// (docs/architecture.md, Counting in the kernel).
class KernelSampling {
 public:
  // Counts nothing; `why` is said of every figure.
  static KernelSampling off(const std::string& why);
  // Logs of programs that the kernel refuses go to `log_directory`.
  static KernelSampling start(const std::filesystem::path& cgroup_root, const std::filesystem::path& sys_root,
                              const std::filesystem::path& log_directory);

  // All cgroups as they are now; valid until the next call. Adds to `messages` why there is none any more,
  // once.
  cgroup::BulkReading read(std::vector<std::string>& messages);
  // To be called after vCPUs went on- or offline. Adds to `messages` what cannot be counted any more.
  void follow_cpus(std::vector<std::string>& messages);
  // Readable when cgroups came or went; -1 where the kernel does not say so.
  int events_fd() const { return collector_ ? collector_->events_fd() : -1; }
  // Paths where cgroups came or went since the last call.
  std::vector<std::string> take_changed_paths();

  // How each figure is had, in the same order always.
  const std::vector<ebpf::Rung>& rungs() const { return counts() ? collector_->rungs() : rungs_; }
  // nullopt where nothing is counted.
  std::optional<ebpf::Cost> cost() const;

 private:
  KernelSampling() = default;
  bool counts() const { return collector_ && failures_ < kMostFailures; }

  // Readings in a row that may fail, as for want of memory, before files are read for good.
  static constexpr int kMostFailures = 5;

  std::unique_ptr<ebpf::Collector> collector_;  // stays once it failed, as its descriptor may be watched
  int failures_ = 0;                            // in a row
  std::vector<ebpf::Rung> rungs_;               // where nothing is counted
};

}  // namespace berth::daemon
