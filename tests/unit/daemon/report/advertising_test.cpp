// SPDX-License-Identifier: Apache-2.0
// A node's advertisement is logged where it matters, and published in a file.
#include "daemon/report/advertising.h"

#include "daemon/daemon.h"
#include "model/node_state.h"
#include "tests/unit/daemon/fake_node.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

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
    made.actions = {{model::Advertise{model::Resource::memory, factor, factor * 100, state}, "oversell",
                     "d-1", "because"}};
    auto& findings = made.findings.oversell.emplace();
    findings.memory.capacity = 100;
    findings.memory.utilisation = 0.9;
    findings.memory.latency_sensitive_request = 30;
    findings.score = 0.95;
    return made;
  }
  json published() const {
    std::ifstream file(node.runtime_dir() / "state.json");
    return json::parse(file);
  }

  test::FakeNode node;
};

TEST_F(AdvertisingTest, LogsChangesOfStateButNotOfFactors) {
  model::Advertised before;
  EXPECT_TRUE(advertising_entries(before, plan(1.2, SchedulingState::schedule), "observe").empty());
  const auto entries = advertising_entries(before, plan(1.2, SchedulingState::no_schedule), "observe");
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].kind, "advertise");
  EXPECT_EQ(entries[0].attribute, "memory");
  EXPECT_EQ(entries[0].old_value, "schedule");
  EXPECT_EQ(entries[0].new_value, "no-schedule");
  EXPECT_EQ(entries[0].decision, "d-1");
  EXPECT_EQ(entries[0].result, "applied");
  before.memory = {1.2, SchedulingState::no_schedule};
  EXPECT_TRUE(advertising_entries(before, plan(1, SchedulingState::no_schedule), "observe").empty());
}

TEST_F(AdvertisingTest, PublishesAFileThatIsReplacedAtOnce) {
  Advertising advertising(node.runtime_dir());
  const auto made = plan(1.2, SchedulingState::no_schedule);
  model::Advertised advertised;
  advertised.memory = {1.2, SchedulingState::no_schedule};
  const std::vector<model::Departure> departures{
      {model::Departure::Kind::evict, 990, "batch/x", "d-2", "memory is short", false}};
  ASSERT_TRUE(advertising.write(made, advertised, departures, "enforce", 5));
  const json state = published();
  std::ifstream file(node.runtime_dir() / "state.json");
  const auto read = model::parse_node_state(std::string(std::istreambuf_iterator(file), {}));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->time, 1000);
  EXPECT_EQ(read->memory.state, SchedulingState::no_schedule);
  EXPECT_EQ(read->memory.for_best_effort(), 90);
  EXPECT_EQ(read->departures, departures);
  EXPECT_EQ(state["schema"], "berth.state/1");
  EXPECT_EQ(state["host"], "node");
  EXPECT_EQ(state["mode"], "enforce");
  EXPECT_EQ(state["memory"]["state"], "no-schedule");
  EXPECT_DOUBLE_EQ(state["memory"]["advertised"].get<double>(), 120);
  EXPECT_EQ(state["cpu"]["state"], "schedule");
  EXPECT_EQ(state["evict_count"], 0);
  EXPECT_EQ(state["interval_s"], 5);
  EXPECT_EQ(state["memory"]["requested_latency_sensitive"], 30);
  EXPECT_EQ(state["cpu"]["requested_latency_sensitive"], 0);
  EXPECT_EQ(state["score"], 0.95);
  EXPECT_FALSE(std::filesystem::exists(node.runtime_dir() / "state.json.new"));
  advertising.remove();
  EXPECT_FALSE(std::filesystem::exists(node.runtime_dir() / "state.json"));
}

TEST_F(AdvertisingTest, OffersBestEffortWorkNoMoreThanItsOwnPartHolds) {
  model::Plan made = plan(1, SchedulingState::schedule);
  model::OversoldResource& cpu = made.findings.oversell->cpu;
  cpu.capacity = 16;
  cpu.latency_sensitive_request = 4;
  const model::Advertised advertised{.cpu = model::AdvertisedResource{.factor = 1.5}};
  const auto offered = [&](std::optional<double> best_effort_capacity) {
    cpu.best_effort_capacity = best_effort_capacity;
    const auto state = model::parse_node_state(state_json(made, advertised, {}, "enforce", 1));
    return state ? state->cpu.for_best_effort() : -1;
  };
  EXPECT_EQ(offered(std::nullopt), 1.5 * 16 - 4);
  EXPECT_EQ(offered(12), 1.5 * 12);
  EXPECT_EQ(offered(16), 1.5 * 16 - 4);  // asked for, and not pinned yet
  cpu.latency_sensitive_request = 40;
  EXPECT_EQ(offered(12), 0);
}

TEST_F(AdvertisingTest, LongDeparturesMakeNoDocumentThatReadersRefuse) {
  // Each takes two bytes for one of these.
  const model::Departure longest{
      model::Departure::Kind::evict, 990, std::string(4096, '\\'), "d-1", "", false};
  const std::vector<model::Departure> departures(model::kMaxDepartures, longest);
  const std::string text = state_json(plan(1.2, SchedulingState::schedule), {}, departures, "enforce", 1);
  const auto read = model::parse_node_state(text);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->departures.size(), 5U);
}

TEST_F(AdvertisingTest, SaysWhereItCannotWrite) {
  const Advertising advertising(node.runtime_dir() / "missing");
  const auto written = advertising.write(plan(1, SchedulingState::schedule), {}, {}, "observe", 1);
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
              json::parse((*daemon)->control().status_json())["advertised"]["memory"]["state"]);
    return published()["memory"]["state"].get<std::string>();
  };
  EXPECT_EQ(state_with(5000), "schedule");
  EXPECT_EQ(state_with(1400), "no-schedule");
  EXPECT_EQ(state_with(1900), "no-schedule");
  EXPECT_NE((*daemon)->control().metrics_text().find("berth_takes_work{resource=\"memory\"} 0"),
            std::string::npos);
  EXPECT_EQ(state_with(400), "evict");
  EXPECT_EQ(state_with(2100), "schedule");
  const auto entries = json::parse((*daemon)->control().log_json(10))["entries"];
  int advertised = 0;
  for (const auto& entry : entries) advertised += entry["kind"] == "advertise" ? 1 : 0;
  EXPECT_EQ(advertised, 3);
  (*daemon)->stop();
  EXPECT_FALSE(std::filesystem::exists(node.runtime_dir() / "state.json"));
}

}  // namespace
}  // namespace berth::daemon
