// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "os/clock.h"
#include "spark/collector.h"
#include "spark/helper.h"

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <thread>

namespace berth::spark {

// Collects on a thread of its own and hands back values: drivers may answer at any time.
class Watcher {
 public:
  // Looks every `interval_s` seconds. `socket`: of berth-sparkd. The thread calls `open` and `clock`; see
  // Helper.
  Watcher(const std::filesystem::path& proc_root, double interval_s, const std::filesystem::path& socket,
          OpenFile open = {}, os::Clock clock = os::Clock());
  // Gives up the work under way, within about a second.
  ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  // The newest observation; null before there is any.
  std::shared_ptr<const Observation> latest() const;
  // Looks through the processes at once, as they may have changed. Asks no driver for that.
  void look_again();

 private:
  void run(double interval_s);

  const os::Clock clock_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<bool> stop_{false};
  bool look_again_ = false;
  // The thread's own, once it runs.
  Helper helper_;
  Collector collector_;
  std::shared_ptr<const Observation> latest_;
  std::thread thread_;
};

}  // namespace berth::spark
