// SPDX-License-Identifier: Apache-2.0
#include "daemon/observe/kernel_sampling.h"

#include "os/clock.h"
#include "os/log.h"

#include <algorithm>
#include <utility>

namespace berth::daemon {

namespace {

// Pauses between two tries double. After the longest one without a failure, they begin anew.
constexpr double kFirstPause_s = 10;
constexpr double kLongestPause_s = 600;

}  // namespace

KernelSampling KernelSampling::off(const std::string& why) {
  KernelSampling sampling;
  sampling.without_ = ebpf::ways_without(model::Error(model::ErrorKind::unavailable, why));
  return sampling;
}

KernelSampling KernelSampling::start(const std::filesystem::path& cgroup_root,
                                     const std::filesystem::path& sys_root,
                                     const std::filesystem::path& log_directory) {
  ebpf::Options options;
  options.cgroup_root = cgroup_root;
  options.sys_root = sys_root;
  options.log_directory = log_directory;
  auto started = ebpf::Collector::start(std::move(options));
  if (!started) return off(started.error().message());
  KernelSampling sampling;
  sampling.collector_ = std::move(*started);
  return sampling;
}

model::Result<void> KernelSampling::count(double now) {
  if (!next_try_) return collector_->read(ebpf::Counts::Depth::ordinary);
  if (auto begun = collector_->begin_again(); !begun) return begun;
  began_at_ = now;
  return {};
}

void KernelSampling::rest(const model::Error& error, double now, std::vector<std::string>& messages) {
  pause_s_ = pause_s_ > 0 ? std::min(2 * pause_s_, kLongestPause_s) : kFirstPause_s;
  next_try_ = now + pause_s_;
  failures_ = 0;
  without_ = ebpf::ways_without(error);
  collector_->rest();
  if (std::exchange(said_, true)) return;
  messages.push_back(
      error.context("cannot read the counters of eBPF, so berth reads files and tries again later")
          .message());
}

cgroup::BulkReading KernelSampling::read(double now, std::vector<std::string>& messages) {
  if (!collector_ || (next_try_ && now < *next_try_)) return {};
  if (const auto done = count(now); !done) {
    // Without room it would fail again.
    const bool at_once = next_try_ || done.error().kind() == model::ErrorKind::unavailable;
    if (at_once || ++failures_ == kMostFailures) rest(done.error(), now, messages);
    return {};
  }
  failures_ = 0;
  if (std::exchange(next_try_, std::nullopt)) os::log_info("eBPF counts again");
  if (now - began_at_ >= kLongestPause_s) {
    pause_s_ = 0;
    said_ = false;
  }
  return {os::monotonic_ns(), [this](std::uint64_t id) { return collector_->find(id); }};
}

void KernelSampling::keep_together(const std::vector<std::uint64_t>& cgroups) {
  if (counts()) collector_->keep_together({cgroups.begin(), cgroups.end()});
}

void KernelSampling::follow_cpus(std::vector<std::string>& messages) {
  if (!counts()) return;
  if (const auto done = collector_->follow_cpus(); !done) messages.push_back(done.error().message());
}

std::vector<std::string> KernelSampling::take_changed_paths() {
  std::vector<std::string> paths;
  if (!collector_) return paths;
  for (auto& event : collector_->take_events().events) paths.push_back(std::move(event.path));
  return paths;
}

std::optional<ebpf::Cost> KernelSampling::cost() const {
  if (!counts()) return std::nullopt;
  return collector_->cost();
}

}  // namespace berth::daemon
