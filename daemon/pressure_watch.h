// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/discovery.h"
#include "cgroup/pressure_trigger.h"
#include "model/capability.h"
#include "model/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <systemd/sd-event.h>

namespace berth::daemon {

// Lets pressure wake the loop between two ticks (docs/architecture.md, Ticks): CPU pressure of each
// latency-sensitive workload, pressure on what a best-effort one lends, so that it gets that back at once,
// and memory pressure under which nothing of the node gets on. Watches nothing before attach().
class PressureWatch {
 public:
  // At most so many workloads are watched, as each trigger may cost a kernel thread, and its end
  // the wait for one.
  static constexpr std::size_t kMaxWatched = 128;

  // `share` of a second that tasks must stall for; 0 watches nothing. Of the node /proc/pressure/memory is
  // watched, below `proc_root`.
  PressureWatch(std::filesystem::path proc_root, double share);
  ~PressureWatch();
  PressureWatch(const PressureWatch&) = delete;
  PressureWatch& operator=(const PressureWatch&) = delete;

  // From here on `rose` is called on the loop's thread, with what is newly under pressure, in words.
  void attach(sd_event* event, std::function<void(const std::string&)> rose);
  // Watches nothing any more; before the loop ends.
  void detach();
  // Watches what the snapshot holds now. Cheap where nothing changed.
  void follow(const model::Snapshot& snapshot, const std::map<std::string, cgroup::FoundWorkload>& found);
  void set_share(double share);

  model::Capability capability() const;

 private:
  struct Watched;

  // What of a workload is watched: its id and the pressure file.
  using Key = std::pair<std::string, std::string_view>;
  using WatchedWorkloads = std::map<Key, std::unique_ptr<Watched>>;

  void watch_workload(const cgroup::FoundWorkload& found, const char* file, WatchedWorkloads& before);
  std::unique_ptr<Watched> watch(std::string name, std::uint64_t cgroup_id, int directory_fd,
                                 const char* file, cgroup::PressureThreshold::Kind kind);
  void watch_node();
  static int on_event(sd_event_source* source, int fd, std::uint32_t events, void* userdata);

  std::filesystem::path proc_root_;
  double share_;
  sd_event* event_ = nullptr;
  std::function<void(const std::string&)> rose_;
  std::size_t live_ = 0;  // triggers; above what counts it down at its end
  std::unique_ptr<Watched> node_;
  WatchedWorkloads workloads_;  // those that cannot be watched included
};

}  // namespace berth::daemon
