// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "spark/watcher.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace berth::daemon {

// The Spark applications of this host, as far as their drivers tell, read on a thread of its own.
class SparkWatch {
 public:
  // Looks every `interval_s` seconds from here on; nullopt: not at all. Nothing happens where that is so
  // already.
  void keep(const std::filesystem::path& proc_root, std::optional<double> interval_s);
  // The newest observation; null where there is none. What drivers do wrong is added to `messages`, each once
  // as long as it lasts.
  std::shared_ptr<const spark::Observation> newest(std::vector<std::string>& messages);
  // Processes were moved: what is known of where they are does not hold any more.
  void look_again();

 private:
  std::optional<double> interval_s_;
  std::unique_ptr<spark::Watcher> watcher_;
  std::set<std::string> said_;
};

}  // namespace berth::daemon
