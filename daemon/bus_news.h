// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/control.h"
#include "daemon/log_entry.h"
#include "daemon/observer.h"
#include "daemon/straggler_watch.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace berth::daemon {

// Tells a listener what a tick changed, by comparing with what it was last told.
class BusNews {
 public:
  // The listener knows everything as it is now.
  void start(const Control& control, const Observer& observer);
  void tell(Listener& listener, const Control& control, const Observer& observer,
            const std::vector<LogEntry>& entries, const StragglerWatch::News& news);

 private:
  struct Known {
    std::string id;
    std::uint64_t cgroup_id = 0;
    std::size_t fingerprint = 0;  // of everything but measured figures
  };
  static std::vector<Known> now(const Control& control, const Observer& observer);

  std::vector<Known> known_;  // ascending by id
  std::string mode_;
  std::string best_effort_cpus_;
  WorkloadCounts counts_;
  model::Advertised advertised_;
};

}  // namespace berth::daemon
