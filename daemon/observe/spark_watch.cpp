// SPDX-License-Identifier: Apache-2.0
#include "daemon/observe/spark_watch.h"

#include "os/safe_path.h"

namespace berth::daemon {

void SparkWatch::keep(const std::filesystem::path& proc_root, const std::filesystem::path& socket,
                      std::optional<double> interval_s) {
  if (interval_s == interval_s_) return;
  interval_s_ = interval_s;
  watcher_.reset();
  if (!interval_s) return;
  watcher_ = std::make_unique<spark::Watcher>(proc_root, *interval_s, socket, os::open_user_file, clock_);
}

std::shared_ptr<const spark::Observation> SparkWatch::newest(std::vector<std::string>& messages) {
  if (!watcher_) return nullptr;
  auto found = watcher_->latest();
  std::set<std::string> current;
  if (found) current = {found->problems.begin(), found->problems.end()};
  for (const auto& problem : current)
    if (said_.count(problem) == 0) messages.push_back(problem);
  said_ = std::move(current);
  return found;
}

void SparkWatch::look_again() {
  if (watcher_) watcher_->look_again();
}

}  // namespace berth::daemon
