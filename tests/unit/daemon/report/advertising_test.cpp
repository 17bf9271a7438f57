// SPDX-License-Identifier: Apache-2.0
// A node's advertisement is kept from tick to tick, logged where it matters, and published in a file.
#include "daemon/report/advertising.h"

#include "daemon/daemon.h"
#include "tests/unit/daemon/fake_node.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace berth::daemon {
namespace {

using model::SchedulingState;
using nlohmann::json;

class AdvertisingTest : public testing::Test {
 protected:
  AdvertisingTest() { std::filesystem::create_directories(node.runtime_dir()); }

  static model::Plan plan(double factor, SchedulingState state) {
    model::Plan made;
    made.host = "node";
    made.time = 1000;
    made.actions = {{model::AdvertiseAction{model::Resource::memory, factor, factor * 100, state}, "oversell",
                     "d-1", "because"}};
    auto& findings = made.findings.oversell.emplace();
    findings.memory.capacity = 100;
    findings.memory.utilisation = 0.9;
    return made;
  }
  json published() const {
    std::ifstream file(node.runtime_dir() / "state.json");
    return json::parse(file);
  }

  test::FakeNode node;
};

TEST_F(AdvertisingTest, KeepsWhatWasAdvertisedUntilSomethingElseIs) {
  Advertising advertising(node.runtime_dir());
  EXPECT_EQ(advertising.advertised(), model::Advertised());
  advertising.take(plan(1.2, SchedulingState::schedule), "observe");
  advertising.take({}, "observe");
  EXPECT_EQ(advertising.advertised().memory, (model::AdvertisedResource{1.2, SchedulingState::schedule}));
  EXPECT_EQ(advertising.advertised().cpu, std::nullopt);
}

TEST_F(AdvertisingTest, LogsChangesOfStateButNotOfFactors) {
  Advertising advertising(node.runtime_dir());
  EXPECT_TRUE(advertising.take(plan(1.2, SchedulingState::schedule), "observe").empty());
  const auto entries = advertising.take(plan(1.2, SchedulingState::no_schedule), "observe");
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].kind, "advertise");
  EXPECT_EQ(entries[0].attribute, "memory");
  EXPECT_EQ(entries[0].old_value, "schedule");
  EXPECT_EQ(entries[0].new_value, "no-schedule");
  EXPECT_EQ(entries[0].decision, "d-1");
  EXPECT_EQ(entries[0].result, "applied");
  EXPECT_TRUE(advertising.take(plan(1, SchedulingState::no_schedule), "observe").empty());
}

TEST_F(AdvertisingTest, PublishesAFileThatIsReplacedAtOnce) {
  Advertising advertising(node.runtime_dir());
  const auto made = plan(1.2, SchedulingState::no_schedule);
  advertising.take(made, "enforce");
  ASSERT_TRUE(advertising.write(made, "enforce"));
  const json state = published();
  EXPECT_EQ(state["schema"], "berth.state/1");
  EXPECT_EQ(state["host"], "node");
  EXPECT_EQ(state["mode"], "enforce");
  EXPECT_EQ(state["memory"]["state"], "no-schedule");
  EXPECT_DOUBLE_EQ(state["memory"]["advertised"].get<double>(), 120);
  EXPECT_EQ(state["cpu"]["state"], "schedule");
  EXPECT_EQ(state["evict_count"], 0);
  EXPECT_FALSE(std::filesystem::exists(node.runtime_dir() / "state.json.new"));
  advertising.remove();
  EXPECT_FALSE(std::filesystem::exists(node.runtime_dir() / "state.json"));
}

TEST_F(AdvertisingTest, SaysWhereItCannotWrite) {
  const Advertising advertising(node.runtime_dir() / "missing");
  const auto written = advertising.write(plan(1, SchedulingState::schedule), "observe");
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().message().find("missing/state.json.new"), std::string::npos);
}

TEST_F(AdvertisingTest, ANodeShortOfMemoryTakesNoWorkUntilThereIsPlenty) {
  node.configure(test::kMixedLoad);
  node.add_group("batch/x");
  double now = 1000;
  auto daemon = Daemon::start(node.options(), node.settings(), test::fake_clock([&now] { return now; }));
  ASSERT_TRUE(daemon) << daemon.error().message();
  const auto state_with = [&](int available_kib) {
    std::ofstream(node.proc() / "meminfo")
        << "MemTotal: 10000 kB\nMemFree: 1 kB\nMemAvailable: " << available_kib << " kB\n";
    now += 1;
    (*daemon)->tick();
    EXPECT_EQ(published()["memory"]["state"],
              json::parse((*daemon)->status_json())["advertised"]["memory"]["state"]);
    return published()["memory"]["state"].get<std::string>();
  };
  EXPECT_EQ(state_with(5000), "schedule");
  EXPECT_EQ(state_with(1400), "no-schedule");
  EXPECT_EQ(state_with(1900), "no-schedule");
  EXPECT_NE((*daemon)->metrics_text().find("berth_takes_work{resource=\"memory\"} 0"), std::string::npos);
  EXPECT_EQ(state_with(400), "evict");
  EXPECT_EQ(state_with(2100), "schedule");
  const auto entries = json::parse((*daemon)->log_json(10))["entries"];
  int advertised = 0;
  for (const auto& entry : entries) advertised += entry["kind"] == "advertise" ? 1 : 0;
  EXPECT_EQ(advertised, 3);
  (*daemon)->stop();
  EXPECT_FALSE(std::filesystem::exists(node.runtime_dir() / "state.json"));
}

}  // namespace
}  // namespace berth::daemon
