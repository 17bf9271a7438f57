// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/departures.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace berth::daemon {
namespace {

using model::Departure;
using Kind = Departure::Kind;

LogEntry step(const std::string& workload, std::string attribute, double time = 1000) {
  LogEntry entry;
  entry.time = time;
  entry.decision = "d-" + workload;
  entry.kind = "evict";
  entry.workload = workload;
  entry.attribute = std::move(attribute);
  entry.reason = "memory is short";
  entry.result = "applied";
  return entry;
}

model::Plan plan_at(double time, const std::vector<std::string>& relocate = {}) {
  model::Plan plan;
  plan.time = time;
  auto& findings = plan.findings.straggler.emplace();
  for (const auto& id : relocate) findings.relocate.push_back({id, {1, 0}});
  return plan;
}

StragglerNews news(const std::string& workload) { return {workload, "it lacks a core", {1, 0}, ""}; }

TEST(DeparturesTest, AnEvictionIsToldOnceWhenItBegins) {
  Departures departures;
  departures.take({step("a", "decommission")}, 5);
  departures.take({step("a", "terminate"), step("b", "terminate", 1001)}, 5);
  departures.take({step("a", "kill"), step("a", "end")}, 5);
  EXPECT_EQ(departures.newest_first(),
            (std::vector<Departure>{{Kind::evict, 1006, "b", "d-b", "memory is short", false},
                                    {Kind::evict, 1005, "a", "d-a", "memory is short", false}}));
}

TEST(DeparturesTest, OnlyWhatBerthDidIsTold) {
  Departures departures;
  LogEntry observed = step("a", "terminate");
  observed.result = "observed";
  LogEntry failed = step("b", "terminate");
  failed.result = "failed";
  LogEntry pin = step("c", "cpuset.cpus");
  pin.kind = "pin";
  departures.take({observed, failed, pin, step("d", "end")}, 0);
  EXPECT_TRUE(departures.newest_first().empty());
  // It could be killed, though not asked to end.
  departures.take({step("b", "kill")}, 0);
  EXPECT_EQ(departures.newest_first().size(), 1U);
}

TEST(DeparturesTest, ARelocationIsWantedWhileItIsFound) {
  Departures departures;
  departures.take({news("a"), news("b")}, plan_at(1000, {"a", "b"}), true);
  ASSERT_EQ(departures.newest_first().size(), 2U);
  const Departure first = departures.newest_first()[1];
  EXPECT_EQ(first, (Departure{Kind::relocate, 1000, "a", "", "it lacks a core", true}));
  departures.take({}, plan_at(1001, {"a"}), true);
  EXPECT_FALSE(departures.newest_first()[0].wanted);
  EXPECT_TRUE(departures.newest_first()[1].wanted);
  // In observe mode nothing is wanted of anybody.
  departures.take({}, plan_at(1002, {"a"}), false);
  EXPECT_FALSE(departures.newest_first()[1].wanted);
  // It stays for as long as it is found, and keeps its time.
  departures.take({}, plan_at(2000, {"a"}), true);
  ASSERT_EQ(departures.newest_first().size(), 1U);
  EXPECT_EQ(departures.newest_first()[0], first);
  departures.take({}, model::Plan{}, true);
  departures.take({}, plan_at(2001), true);
  EXPECT_TRUE(departures.newest_first().empty());
}

TEST(DeparturesTest, AnotherRunReplacesTheOneBefore) {
  Departures departures;
  departures.take({news("a")}, plan_at(1000, {"a"}), true);
  model::Plan later = plan_at(1100, {"a"});
  later.wall_ahead_s = 5;
  departures.take({news("a")}, later, true);
  ASSERT_EQ(departures.newest_first().size(), 1U);
  EXPECT_EQ(departures.newest_first()[0].time, 1105) << "by the wall clock";
}

TEST(DeparturesTest, OldOnesAreForgotten) {
  Departures departures;
  departures.take({step("a", "terminate")}, 0);
  departures.take({}, plan_at(1000 + Departures::kKept_s), true);
  EXPECT_EQ(departures.newest_first().size(), 1U);
  departures.take({}, plan_at(1001 + Departures::kKept_s), true);
  EXPECT_TRUE(departures.newest_first().empty());
}

TEST(DeparturesTest, AreLimited) {
  Departures departures;
  for (std::size_t number = 0; number < 2 * model::kMaxDepartures; ++number) {
    LogEntry entry = step(fmt::format("w{}", number), "terminate");
    entry.reason = std::string(10'000, 'x') + "\n";
    departures.take({entry}, 0);
  }
  ASSERT_EQ(departures.newest_first().size(), model::kMaxDepartures);
  EXPECT_EQ(departures.newest_first()[0].workload, fmt::format("w{}", 2 * model::kMaxDepartures - 1));
  EXPECT_LT(departures.newest_first()[0].reason.size(), Departures::kMostReasonBytes + 10);
}

}  // namespace
}  // namespace berth::daemon
