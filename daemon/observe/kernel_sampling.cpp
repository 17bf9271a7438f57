// SPDX-License-Identifier: Apache-2.0
#include "daemon/observe/kernel_sampling.h"

#include "os/clock.h"

#include <utility>

namespace berth::daemon {

KernelSampling KernelSampling::off(const std::string& why) {
  KernelSampling sampling;
  sampling.rungs_ = ebpf::rungs_without(model::Error(model::ErrorKind::unavailable, why));
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

cgroup::BulkReading KernelSampling::read(std::vector<std::string>& messages) {
  if (!counts()) return {};
  if (const auto done = collector_->read(); !done) {
    // It would fail again.
    failures_ = done.error().kind() == model::ErrorKind::unavailable ? kMostFailures : failures_ + 1;
    if (failures_ == kMostFailures) {
      messages.push_back(done.error()
                             .context("cannot read the counters of eBPF, so berth reads files from now on")
                             .message());
      rungs_ = ebpf::rungs_without(done.error());
    }
    return {};
  }
  failures_ = 0;
  return {os::monotonic_ns(), [this](std::uint64_t id) { return collector_->find(id); }};
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
