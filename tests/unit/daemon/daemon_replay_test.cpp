// SPDX-License-Identifier: Apache-2.0
// A trace of a daemon, replayed with the daemon's settings, takes the daemon's own decisions.
#include "model/json.h"
#include "model/trace.h"
#include "replay/side.h"
#include "tests/unit/daemon/daemon_fixture.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace berth::daemon {
namespace {

using nlohmann::json;

class DaemonReplayTest : public test::DaemonFixture {
 protected:
  // Ticks a daemon with services that come and go, a late task, and work that lends. Returns a snapshot a
  // tick, as a trace gives it back.
  std::vector<model::Snapshot> run_daemon(const std::string& mode) {
    node.configure("mode = \"" + mode + "\"\n" + test::kMixedLoad +
                   "[[workload]]\nmatch = \"job/*\"\nclass = \"latency-sensitive\"\n");
    node.add_group("web/a");
    node.add_group("batch/x", "0-7");
    node.put("batch/x", "cpu.max", "400000 100000");
    node.add_group("job/late");
    node.put("job/late", "cpu.max", "100000 100000");
    start();
    std::vector<model::Snapshot> ticks;
    double done = 0;
    for (int i = 0; i < 40; ++i) {
      if (i == 5) node.add_group("web/b");
      if (i == 20) node.remove_group("web/a");
      node.use_cpu("batch/x", i * 0.5);
      node.use_cpu("job/late", i * 0.9);
      if (i == 3) (void)daemon->control().set_workload("job/late", {{"deadline", "60s"}});
      if (i % 4 == 0) (void)daemon->control().report_progress("job/late", done += i < 16 ? 0.02 : 0.005);
      tick();
      const double since = ticks.empty() ? 0 : ticks.back().time;
      const auto told = model::parse_snapshot(ticks.empty() ? daemon->control().snapshot_json()
                                                            : daemon->control().snapshot_since_json(since));
      if (!told) throw std::runtime_error(told.error().message());
      add(ticks, told->snapshot);
    }
    return ticks;
  }

  // The next snapshot, by the change that a recorder would write.
  void add(std::vector<model::Snapshot>& ticks, const model::Snapshot& told) {
    model::Snapshot next = ticks.empty() ? told : ticks.back();
    if (!ticks.empty()) {
      const auto change = model::change_json(last_, told);
      ASSERT_TRUE(change);
      const auto applied =
          model::apply_change(*change, static_cast<std::size_t>(node.settings().history), next);
      ASSERT_TRUE(applied) << applied.error().message();
    }
    last_ = told;
    ticks.push_back(std::move(next));
  }

  // Decisions of policies about running workloads, oldest first.
  std::vector<std::string> logged() {
    std::vector<std::string> list;
    const auto log = json::parse(daemon->control().log_json(0));
    for (const auto& entry : log["entries"]) {
      if (entry["kind"] == "advertise" || entry["policy"] == "" || entry["result"] == "restored") continue;
      list.push_back(fmt::format("{} {} {}", entry["decision"].get<std::string>(),
                                 entry["kind"].get<std::string>(), entry["workload"].get<std::string>()));
    }
    std::sort(list.begin(), list.end());
    return list;
  }
  std::vector<std::string> replayed(const std::vector<model::Snapshot>& ticks) {
    replay::Side side(node.settings().policies);
    std::vector<std::string> list;
    for (const model::Snapshot& snapshot : ticks) {
      for (const replay::Decision& decision : side.step(snapshot)) {
        if (decision.kind == "advertise") continue;
        list.push_back(fmt::format("{} {} {}", decision.action.decision, decision.kind, decision.workload));
      }
    }
    std::sort(list.begin(), list.end());
    return list;
  }

 private:
  model::Snapshot last_;
};

TEST_F(DaemonReplayTest, OfAnObservedHostTakesTheSameDecisions) {
  const auto ticks = run_daemon("observe");
  const auto own = logged();
  EXPECT_GE(own.size(), 4U);
  EXPECT_EQ(replayed(ticks), own);
}

TEST_F(DaemonReplayTest, OfAnEnforcedHostTakesTheSameDecisions) {
  const auto ticks = run_daemon("enforce");
  const auto own = logged();
  EXPECT_GE(own.size(), 4U);
  EXPECT_EQ(replayed(ticks), own);
}

}  // namespace
}  // namespace berth::daemon
