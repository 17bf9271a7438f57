// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "os/clock.h"
#include "spark/collector.h"
#include "spark/helper.h"

#include <chrono>
#include <filesystem>
#include <memory>

namespace berth::spark {

// Collects on a thread of its own and hands back values: drivers may answer at any time, and processes may
// keep others from looking at them.
class Watcher {
 public:
  static constexpr std::chrono::milliseconds kFirstLook{500};
  static constexpr std::chrono::milliseconds kEnd{1000};

  // Looks every `interval_s` seconds. Waits for the first look through the processes, for kFirstLook at most:
  // before anything is decided about a workload, it should be known to be Spark's. `socket`: of berth-sparkd.
  // The thread calls `open` and `clock`; see Helper.
  Watcher(const std::filesystem::path& proc_root, double interval_s, const std::filesystem::path& socket,
          OpenFile open = {}, os::Clock clock = os::Clock());
  // Gives up the work under way, and waits for that as long as kEnd. A thread that hangs is left behind.
  ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  // The newest observation; null before the first look. If the host had no thread to give, it asks again.
  std::shared_ptr<const Observation> latest();
  // Looks through the processes at once, as they may have changed. Asks no driver for that.
  void look_again();

 private:
  struct State;
  void start();

  double interval_s_;
  bool started_ = false;
  bool said_ = false;             // that it could not be started
  std::shared_ptr<State> state_;  // the thread has it, too
};

}  // namespace berth::spark
