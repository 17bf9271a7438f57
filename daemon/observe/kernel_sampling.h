// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/sampler.h"
#include "ebpf/collector.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
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

  // Counts by `counts`.
  explicit KernelSampling(std::unique_ptr<ebpf::Counts> counts) : collector_(std::move(counts)) {}

  // All cgroups at present; valid until the next call. Where counting fails, it rests, and begins again after
  // pauses that grow. Adds to `messages` that it rests, and that it counts again. `now` in seconds.
  cgroup::BulkReading read(double now, std::vector<std::string>& messages);
  // So many groups of one user, and of all users, have rows of their own at most.
  std::size_t most_of_user() const { return counts() ? collector_->rows() / kUsers : SIZE_MAX; }
  std::size_t most_of_users() const { return counts() ? collector_->rows() / 2 : SIZE_MAX; }
  // Groups below these cgroups have no figures of their own from here on.
  void keep_together(const std::vector<std::uint64_t>& cgroups);
  // Call it after vCPUs went on- or offline. Adds to `messages` the figures that cannot be counted any more.
  void follow_cpus(std::vector<std::string>& messages);
  // Readable when cgroups came or went; -1 where the kernel does not report that.
  int events_fd() const { return collector_ ? collector_->events_fd() : -1; }
  // The map of one program that runs after the hook on the context switch; -1 where there is none.
  int after_switch() const { return counts() ? collector_->after_switch() : -1; }
  // Paths where cgroups came or went since the last call.
  std::vector<std::string> take_changed_paths();

  // The source of each figure, always in the same order.
  const std::vector<ebpf::FigureWay>& ways() const { return counts() ? collector_->ways() : without_; }
  // nullopt where nothing is counted.
  std::optional<ebpf::Cost> cost() const;

 private:
  KernelSampling() = default;
  bool counts() const { return collector_ && !next_try_; }
  model::Result<void> count(double now);
  void rest(const model::Error& error, double now, std::vector<std::string>& messages);

  // Readings in a row that may fail, for lack of memory for example, before it rests.
  static constexpr int kMostFailures = 5;
  // Rows are for so many users with many groups.
  static constexpr std::size_t kUsers = 8;

  std::unique_ptr<ebpf::Counts> collector_;  // stays once it failed, as its descriptor may be watched
  int failures_ = 0;                         // in a row
  std::optional<double> next_try_;           // while it rests
  double pause_s_ = 0;                       // the last one
  double began_at_ = 0;                      // after that
  bool said_ = false;                        // that it rests
  std::vector<ebpf::FigureWay> without_;     // where nothing is counted
};

}  // namespace berth::daemon
