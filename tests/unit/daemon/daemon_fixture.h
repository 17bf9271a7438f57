// SPDX-License-Identifier: Apache-2.0
// A daemon on a fake node, ticked by hand. Its clock stands unless tick() moves it on. The wall clock goes
// with it, and can be set.
#pragma once

#include "daemon/daemon.h"
#include "tests/unit/daemon/fake_node.h"

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace berth::daemon::test {

inline constexpr const char* kObserve = "mode = \"observe\"\n";
inline constexpr const char* kEnforce = "mode = \"enforce\"\n";
inline const TrialCaller kTrialCaller{"1/:1.7", 123, 0};

class DaemonFixture : public testing::Test {
 protected:
  void configure(const std::string& head) { node.configure(head + kMixedLoad); }
  Daemon& start() {
    auto started = Daemon::start(node.options(), node.settings(), clock());
    if (!started) throw std::runtime_error(started.error().message());
    daemon = std::move(*started);
    return *daemon;
  }
  os::Clock clock() {
    return os::Clock({.boot = [this] { return now.load(); },
                      .wall = [this] { return now + wall_set_by; },
                      .monotonic = [this] { return now.load(); }});
  }
  void tick() {
    now = now + 1;
    daemon->tick();
  }
  // Begins a trial of kTrialCaller, and takes that side of it, if one is named.
  void begin_trial(const char* side = nullptr, double lease_s = 10, const std::string& a = kObserve,
                   const std::string& b = kEnforce) {
    const auto begun = daemon->control().begin_trial(kTrialCaller, a, b);
    ASSERT_TRUE(begun) << begun.error().message();
    if (side == nullptr) return;
    const auto used = daemon->control().use_trial_side(kTrialCaller.key, side, lease_s);
    ASSERT_TRUE(used) << used.error().message();
  }
  void load_node() {
    node.add_group("web/a");
    node.add_group("web/b");
    node.add_group("batch/x", "0-7");
  }
  nlohmann::json capability(const std::string& name) {
    const auto status = nlohmann::json::parse(daemon->control().status_json());
    for (const auto& item : status["capabilities"]) {
      if (item["name"] == name) return item;
    }
    return nullptr;
  }

  FakeNode node;
  // A thread reads them too, that of Spark.
  std::atomic<double> now = 1000;
  std::atomic<double> wall_set_by = 0;
  std::unique_ptr<Daemon> daemon;
};

}  // namespace berth::daemon::test
