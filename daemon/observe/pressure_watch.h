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

// Lets pressure wake the loop between two ticks (docs/ticks.md). It watches CPU pressure of
// each latency-sensitive workload, and memory pressure under which all tasks of the host stall. It also
// watches best-effort workloads that lend something, so that they get it back at once. Watches nothing before
// attach().
class PressureWatch {
 public:
  // At most so many workloads are watched: each trigger may cost a kernel thread, and its end waits for that
  // thread.
  static constexpr std::size_t kMaxWatched = 128;

  // `share` of a second that tasks must stall for; 0 watches nothing. For the host it watches pressure/memory
  // below `proc_root`.
  PressureWatch(std::filesystem::path proc_root, double share);
  ~PressureWatch();
  PressureWatch(const PressureWatch&) = delete;
  PressureWatch& operator=(const PressureWatch&) = delete;

  // From now on `rose` is called on the loop's thread, with the new pressure in words.
  void attach(sd_event* event, std::function<void(const std::string&)> rose);
  // Watches nothing any more. Call it before the loop ends.
  void detach();
  // Watches the workloads of the snapshot. Cheap where nothing changed.
  void follow(const model::Snapshot& snapshot, const std::map<std::string, cgroup::FoundWorkload>& found);
  void set_share(double share);

  model::Capability capability() const;

 private:
  struct Watched;

  // One watch of a workload: its id and the pressure file.
  using Key = std::pair<std::string, std::string_view>;
  using WatchedWorkloads = std::map<Key, std::unique_ptr<Watched>>;

  cgroup::PressureThreshold threshold(cgroup::PressureThreshold::Kind kind) const;
  void watch_workload(const cgroup::FoundWorkload& found, const char* file, WatchedWorkloads& before);
  std::unique_ptr<Watched> watch(std::string name, std::uint64_t cgroup_id, int directory_fd,
                                 const char* file, const cgroup::PressureThreshold& threshold);
  void watch_node();
  static int on_event(sd_event_source* source, int fd, std::uint32_t events, void* userdata);

  std::filesystem::path proc_root_;
  double share_;
  sd_event* event_ = nullptr;
  std::function<void(const std::string&)> rose_;
  std::size_t live_ = 0;  // triggers; each counts itself down at its end
  std::unique_ptr<Watched> node_;
  WatchedWorkloads workloads_;  // including those that cannot be watched
};

}  // namespace berth::daemon
