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

// The kernel's own counts of every cgroup, by eBPF, as far as this host permits. The rest comes from files
// (docs/ebpf.md).
class KernelSampling {
 public:
  // Counts nothing; `why` is the reason given for every figure.
  static KernelSampling off(const std::string& why);
  // `log_directory` gets the logs of programs that the kernel refuses.
  static KernelSampling start(const std::filesystem::path& cgroup_root, const std::filesystem::path& sys_root,
                              const std::filesystem::path& log_directory);

  // All cgroups at present; valid until the next call. If counting has failed for good, adds the reason to
  // `messages`, once.
  cgroup::BulkReading read(std::vector<std::string>& messages);
  // Call it after vCPUs went on- or offline. Adds to `messages` the figures that cannot be counted any more.
  void follow_cpus(std::vector<std::string>& messages);
  // Readable when cgroups came or went; -1 where the kernel does not report that.
  int events_fd() const { return collector_ ? collector_->events_fd() : -1; }
  // Paths where cgroups came or went since the last call.
  std::vector<std::string> take_changed_paths();

  // The source of each figure, always in the same order.
  const std::vector<ebpf::Rung>& rungs() const { return counts() ? collector_->rungs() : rungs_; }
  // nullopt where nothing is counted.
  std::optional<ebpf::Cost> cost() const;

 private:
  KernelSampling() = default;
  bool counts() const { return collector_ && failures_ < kMostFailures; }

  // Readings in a row that may fail, for lack of memory for example, before files are read for good.
  static constexpr int kMostFailures = 5;

  std::unique_ptr<ebpf::Collector> collector_;  // stays once it failed, as its descriptor may be watched
  int failures_ = 0;                            // in a row
  std::vector<ebpf::Rung> rungs_;               // where nothing is counted
};

}  // namespace berth::daemon
