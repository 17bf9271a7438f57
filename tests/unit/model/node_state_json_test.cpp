// SPDX-License-Identifier: Apache-2.0
#include "model/node_state.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::model {
namespace {

using ::testing::HasSubstr;

const std::string kState =
    R"({"schema": "berth.state/1", "host": "a", "time": 1000.5, "mode": "observe", "interval_s": 1, "evict_count": 0,
        "score": 0.25, "cpu": {"state": "schedule", "factor": 1.5, "capacity": 8, "advertised": 12, "requested": 9,
        "requested_latency_sensitive": 4, "peak": 6, "utilisation": 0.5},
        "memory": {"state": "no-schedule", "advertised": 1e9, "requested_latency_sensitive": 2e9, "utilisation": 0.9}})";

std::string with(std::string from, const std::string& to) {
  std::string text = kState;
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string error_of(const std::string& text) {
  const auto state = parse_node_state(text);
  return state ? "" : state.error().message();
}

TEST(NodeState, IsReadAsBerthdWritesIt) {
  const auto state = parse_node_state(kState);
  ASSERT_TRUE(state) << state.error().message();
  EXPECT_EQ(state->time, 1000.5);
  EXPECT_EQ(state->interval_s, 1);
  EXPECT_EQ(state->score, 0.25);
  EXPECT_EQ(state->cpu.state, SchedulingState::schedule);
  EXPECT_EQ(state->cpu.for_best_effort(), 8);
  EXPECT_EQ(state->memory.state, SchedulingState::no_schedule);
  // More was promised than there is.
  EXPECT_EQ(state->memory.for_best_effort(), 0);
}

TEST(NodeState, SaysItselfWhatBestEffortWorkMayAskFor) {
  const auto state = parse_node_state(with("\"peak\": 6", "\"best_effort\": 6.5, \"peak\": 6"));
  ASSERT_TRUE(state) << state.error().message();
  EXPECT_EQ(state->cpu.for_best_effort(), 6.5);
  // Never more than all of it.
  EXPECT_EQ(parse_node_state(with("\"peak\": 6", "\"best_effort\": 1000"))->cpu.for_best_effort(), 12);
  EXPECT_THAT(error_of(with("\"peak\": 6", "\"best_effort\": -1, \"peak\": 6")),
              HasSubstr("$.cpu.best_effort"));
}

TEST(NodeState, RefusesEverythingElse) {
  EXPECT_THAT(error_of(""), HasSubstr("$"));
  EXPECT_THAT(error_of(with("berth.state/1", "berth.state/2")), HasSubstr("$.schema"));
  EXPECT_THAT(error_of(with("\"no-schedule\"", "\"full\"")), HasSubstr("$.memory.state"));
  EXPECT_THAT(error_of(with("\"advertised\": 12", "\"advertised\": -1")), HasSubstr("$.cpu.advertised"));
  EXPECT_THAT(error_of(with("\"advertised\": 12", "\"advertised\": 1e300")), HasSubstr("$.cpu.advertised"));
  EXPECT_THAT(error_of(with("0.25", "1.5")), HasSubstr("$.score"));
  EXPECT_THAT(error_of(with("\"score\": 0.25,", "")), HasSubstr("$.score"));
  EXPECT_THAT(error_of(kState + std::string(kMaxStateBytes, ' ')), HasSubstr("longer than 65536 bytes"));
}

TEST(NodeState, HasDepartures) {
  EXPECT_TRUE(parse_node_state(kState)->departures.empty());  // of an earlier berthd
  const std::string evicted =
      R"({"kind": "evict", "time": 999, "workload": "batch/x", "decision": "d-1", "reason": "full", "wanted": false})";
  const std::string moved =
      R"({"kind": "relocate", "time": 998, "workload": "web/a", "decision": "", "reason": "late", "wanted": true})";
  const std::string later =
      R"({"kind": "suspend", "time": 1, "workload": "a", "decision": "", "reason": "", "wanted": true})";
  const auto list = [&](const std::string& items) {
    return with("\"evict_count\"", "\"departures\": [" + items + "], \"evict_count\"");
  };
  auto state = parse_node_state(list(evicted + "," + later + "," + moved));
  ASSERT_TRUE(state) << state.error().message();
  EXPECT_EQ(state->departures,
            (std::vector<Departure>{{Departure::Kind::evict, 999, "batch/x", "d-1", "full", false},
                                    {Departure::Kind::relocate, 998, "web/a", "", "late", true}}));
  // Further ones are not taken.
  std::string many = evicted;
  for (int number = 0; number < 99; ++number) many += "," + moved;
  state = parse_node_state(list(many));
  ASSERT_TRUE(state) << state.error().message();
  EXPECT_EQ(state->departures.size(), kMaxDepartures);
  EXPECT_EQ(state->departures[0].workload, "batch/x");
  EXPECT_THAT(error_of(list(R"({"kind": "evict"})")), HasSubstr("$.departures[0].time"));
  EXPECT_THAT(error_of(list(R"({"kind": "evict", "time": 1, "workload": "a\nb"})")),
              HasSubstr("$.departures[0].workload"));
}

TEST(NodeState, IsStaleTwoWays) {
  NodeState state{.time = 1000, .interval_s = 1};
  EXPECT_EQ(why_stale(state, 1120, 120), std::nullopt);
  EXPECT_EQ(why_stale(state, 1121, 120), "its state is 121 s old");
  EXPECT_EQ(why_stale(state, 880, 120), std::nullopt);
  EXPECT_EQ(why_stale(state, 800, 120), "its state is 200 s in the future");
  // A host with long ticks is not silent between them.
  state.interval_s = 300;
  EXPECT_EQ(why_stale(state, 1600, 120), std::nullopt);
  EXPECT_NE(why_stale(state, 1601, 120), std::nullopt);
}

}  // namespace
}  // namespace berth::model
