// SPDX-License-Identifier: Apache-2.0
// Trials over the bus: who may begin one, who goes on with it, and a caller that leaves.
#include "config/trial_settings.h"
#include "fixture.h"

#include <cstdint>
#include <string>

namespace berth::test {

using TrialCalls = BusServiceTest;

constexpr std::uint64_t kLeaseUsec = 90'000'000;

TEST_F(TrialCalls, OneConnectionLeadsATrial) {
  with_client([] {
    Client client;
    client.change("BeginTrial", std::string("mode = \"observe\""), std::string("mode = \"enforce\""));
    client.change("UseTrialSide", std::string("b"), kLeaseUsec);
    client.change("EndTrial", true);
    return 0;
  });
  ASSERT_EQ(control_.trials.size(), 1U);
  EXPECT_EQ(control_.trials[0].a, "mode = \"observe\"");
  EXPECT_EQ(control_.trials[0].b, "mode = \"enforce\"");
  EXPECT_GT(control_.trials[0].caller.pid, 0);
  EXPECT_EQ(control_.trials[0].caller.uid, 0U);
  ASSERT_EQ(control_.sides.size(), 1U);
  EXPECT_EQ(control_.sides[0], std::pair(std::string("b"), 90.0));
  EXPECT_EQ(control_.kept, std::vector<bool>{true});
}

TEST_F(TrialCalls, AnotherConnectionDoesNot) {
  Client leader;
  const auto begin = [&leader] { return leader.change("BeginTrial", std::string("a"), std::string("b")); };
  ASSERT_EQ(with_client(begin).error_name, "");
  const Outcome other =
      with_client([] { return Client().change("UseTrialSide", std::string("a"), kLeaseUsec); });
  EXPECT_EQ(other.error_name, bus::kNotFound);
  EXPECT_TRUE(control_.sides.empty());
}

TEST_F(TrialCalls, OthersAreRefusedBeforeAnythingIsRead) {
  const Outcome outcome = with_client_as(
      kNobody, [] { return Client().change("BeginTrial", std::string("mode ="), std::string("[")); });
  EXPECT_EQ(outcome.error_name, bus::kAccessDenied) << outcome.text;
  EXPECT_TRUE(control_.trials.empty());
}

TEST_F(TrialCalls, ALongTextIsRefusedAtOnce) {
  const std::string text(config::kMaxTrialBytes + 1, '#');
  const Outcome outcome =
      with_client([&text] { return Client().change("BeginTrial", std::string("mode = 1"), text); });
  EXPECT_EQ(outcome.error_name, bus::kInvalidInput) << outcome.text;
  EXPECT_TRUE(control_.trials.empty());
}

TEST_F(TrialCalls, TheLongestTextsAreTaken) {
  const std::string text(config::kMaxTrialBytes, '#');
  const Outcome outcome = with_client([&text] { return Client().change("BeginTrial", text, text); });
  EXPECT_EQ(outcome.error_name, "") << outcome.text;
}

TEST_F(TrialCalls, ACallerThatLeavesTheBusIsNoticed) {
  with_client([] { return Client().change("BeginTrial", std::string("a"), std::string("b")); });
  ASSERT_EQ(control_.trials.size(), 1U);
  serve_until([this] { return !control_.callers_left.empty(); });
  EXPECT_EQ(control_.callers_left.front(), control_.trials[0].caller.key);
}

TEST_F(TrialCalls, ACallerThatStaysIsNotReported) {
  Client leader;
  with_client([&leader] { return leader.change("BeginTrial", std::string("a"), std::string("b")); });
  with_client([] { return Client().change("GetStatus"); });
  settle();
  EXPECT_TRUE(control_.callers_left.empty());
}

}  // namespace berth::test
