// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/ledger/log_entry.h"
#include "daemon/ledger/straggler_news.h"
#include "daemon/observe/observer.h"
#include "daemon/serve/control.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace berth::daemon {

// Tells a listener the changes of a tick, by comparison with its last news.
class BusNews {
 public:
  // The listener knows the present state.
  void start(const Control& control, const Observer& observer);
  void tell(Listener& listener, const Control& control, const Observer& observer,
            const std::vector<LogEntry>& entries, const StragglersNews& news);

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
