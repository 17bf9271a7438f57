// SPDX-License-Identifier: Apache-2.0
#include "daemon/observe/pressure_watch.h"

#include "os/clock.h"
#include "os/event_source.h"
#include "os/file_descriptor.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/epoll.h>

namespace berth::daemon {

namespace {

using Kind = cgroup::PressureThreshold::Kind;

constexpr std::uint32_t kWindowUsec = 1'000'000;

}  // namespace

struct PressureWatch::Watched {
  PressureWatch* owner = nullptr;
  std::string name;  // for users
  std::uint64_t cgroup_id = 0;
  std::optional<cgroup::PressureTrigger> trigger;
  std::string problem;  // why there is no trigger
  os::EventSource source;

  ~Watched() {
    if (source) --owner->live_;
  }
};

PressureWatch::PressureWatch(std::filesystem::path proc_root, double share)
    : proc_root_(std::move(proc_root)), share_(share) {}

PressureWatch::~PressureWatch() = default;

void PressureWatch::attach(sd_event* event, std::function<void(const std::string&)> rose) {
  event_ = event;
  rose_ = std::move(rose);
  watch_node();
}

void PressureWatch::detach() {
  node_.reset();
  workloads_.clear();
  rose_ = nullptr;
  event_ = nullptr;
}

void PressureWatch::set_share(double share) {
  if (share == share_) return;
  share_ = share;
  workloads_.clear();  // the next follow() watches them anew
  watch_node();
}

void PressureWatch::watch_node() {
  node_.reset();
  if (event_ == nullptr || share_ <= 0) return;
  const os::FileDescriptor directory(open(proc_root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  node_ = watch("memory of the node", 0, directory.get(), "pressure/memory", threshold(Kind::full));
}

cgroup::PressureThreshold PressureWatch::threshold(Kind kind) const {
  return {kind, std::max(1U, static_cast<std::uint32_t>(share_ * kWindowUsec)), kWindowUsec};
}

std::unique_ptr<PressureWatch::Watched> PressureWatch::watch(std::string name, std::uint64_t cgroup_id,
                                                             int directory_fd, const char* file,
                                                             const cgroup::PressureThreshold& threshold) {
  auto made = std::make_unique<Watched>();
  made->owner = this;
  made->name = std::move(name);
  made->cgroup_id = cgroup_id;
  if (live_ >= kMaxWatched) {
    made->problem = fmt::format("berth watches {} files already, and no more", kMaxWatched);
    return made;
  }
  auto armed = cgroup::PressureTrigger::arm(directory_fd, file, threshold);
  if (!armed) {
    made->problem = armed.error().message();
    return made;
  }
  made->trigger = std::move(*armed);
  if (const int r = os::add_source(made->source, sd_event_add_io, event_, made->trigger->fd(), EPOLLPRI,
                                   on_event, made.get());
      r < 0) {
    made->problem = fmt::format("event loop: {}", std::strerror(-r));
    made->trigger.reset();
    return made;
  }
  ++live_;
  return made;
}

void PressureWatch::follow(const model::Snapshot& snapshot,
                           const std::map<std::string, cgroup::FoundWorkload>& found) {
  if (event_ == nullptr || share_ <= 0) return;
  auto before = std::exchange(workloads_, {});
  const auto each = [&](const char* file, const auto& wanted) {
    for (const auto& workload : snapshot.workloads) {
      if (!wanted(workload)) continue;
      const auto known = found.find(workload.id);
      if (known != found.end()) watch_workload(known->second, file, before);
    }
  };
  const auto lends = [](const std::optional<model::HeldLimit>& held) {
    return held && held->cause == model::HeldCause::lent;
  };
  // Latency-sensitive ones first: if triggers run out, these matter most.
  each("cpu.pressure", [](const model::Workload& workload) {
    return workload.workload_class == model::WorkloadClass::latency_sensitive;
  });
  each("cpu.pressure", [&](const model::Workload& workload) {
    return workload.workload_class == model::WorkloadClass::best_effort && lends(workload.held_cpu);
  });
  each("memory.pressure", [&](const model::Workload& workload) {
    return workload.workload_class == model::WorkloadClass::best_effort && lends(workload.held_memory);
  });
}

void PressureWatch::watch_workload(const cgroup::FoundWorkload& found, const char* file,
                                   WatchedWorkloads& before) {
  const cgroup::Cgroup& group = *found.cgroup;
  const std::string& id = found.identity.id;
  auto watched = before.extract(Key(id, file));
  // A watch that failed is tried again.
  if (!watched.empty() && watched.mapped()->cgroup_id == group.id() && watched.mapped()->problem.empty()) {
    workloads_.insert(std::move(watched));
  } else {
    workloads_.emplace(Key(id, file), watch(id, group.id(), group.fd(), file, threshold(Kind::some)));
  }
}

int PressureWatch::on_event(sd_event_source* source, int, std::uint32_t events, void* userdata) {
  auto& watched = *static_cast<Watched*>(userdata);
  if ((events & EPOLLERR) != 0) {
    // The next follow() removes it, or arms it anew where only cgroup.pressure was switched off for a while.
    watched.problem = "its cgroup is gone";
    sd_event_source_set_enabled(source, SD_EVENT_OFF);
  } else if (watched.trigger->rose(os::monotonic_ns())) {
    watched.owner->rose_(watched.name);
  }
  return 0;
}

model::Capability PressureWatch::capability() const {
  const auto missing = [](std::string why) {
    return model::Capability{"pressure-triggers", false,
                             std::move(why) + "; berth sees pressure at its next tick"};
  };
  if (share_ <= 0) return missing("switched off by sampling.pressure_threshold = 0");
  if (node_ == nullptr) return missing("there is no event loop to wake");
  if (!node_->problem.empty()) return missing("memory of the node: " + node_->problem);
  std::size_t watched = 0;
  const Watched* failed = nullptr;
  for (const auto& [key, workload] : workloads_) {
    if (workload->problem.empty()) {
      ++watched;
    } else {
      failed = workload.get();
    }
  }
  if (failed != nullptr) {
    return missing(
        fmt::format("berth watches {} of {} workloads that are latency-sensitive or lend resources; {}: {}",
                    watched, workloads_.size(), failed->name, failed->problem));
  }
  return {
      "pressure-triggers", true,
      fmt::format("berth wakes at once on pressure in the node's memory or in one of {} workloads that are "
                  "latency-sensitive or lend resources",
                  watched)};
}

}  // namespace berth::daemon
