// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "os/clock.h"
#include "spark/watcher.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace berth::daemon {

// The Spark applications of this host, as far as their drivers report them, read on a thread of its own.
class SparkWatch {
 public:
  explicit SparkWatch(os::Clock clock) : clock_(std::move(clock)) {}

  // From now on looks every `interval_s` seconds; nullopt: not at all. Does nothing where the interval is the
  // same. `socket`: of berth-sparkd.
  void keep(const std::filesystem::path& proc_root, const std::filesystem::path& socket,
            std::optional<double> interval_s);
  // The newest observation; null where there is none. Adds faults of drivers to `messages`, each once as long
  // as it lasts.
  std::shared_ptr<const spark::Observation> newest(std::vector<std::string>& messages);
  // Whether it should look, and has not done so yet: then nothing is known about Spark.
  bool awaits_first_look() const { return watcher_ && !watcher_->latest(); }
  // Call it after moving processes: their known places are not true any more.
  void look_again();

 private:
  os::Clock clock_;
  std::optional<double> interval_s_;
  std::unique_ptr<spark::Watcher> watcher_;
  std::set<std::string> said_;
};

}  // namespace berth::daemon
