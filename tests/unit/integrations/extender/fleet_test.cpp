// SPDX-License-Identifier: Apache-2.0
#include "integrations/extender/fleet.h"

#include "model/json.h"
#include "model/json_text.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace berth::extender {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kUid = "0a1b2c3d-0000-4000-8000-00000000000";  // and one more digit

std::string uid(int number) {
  const std::string digits = std::to_string(number);
  const std::string all = kUid + std::string("0");
  return all.substr(0, all.size() - digits.size()) + digits;
}

// Eight vCPUs, and `busy` best-effort workloads that use one core each.
json snapshot(const std::string& host, int busy = 0, double time = 1000) {
  json cpus = json::array();
  for (int cpu = 0; cpu < 8; ++cpu)
    cpus.push_back({{"cpu", cpu}, {"core", cpu}, {"llc", 0}, {"numa", 0}, {"socket", 0}});
  json workloads = json::array();
  for (int i = 0; i < busy; ++i)
    workloads.push_back({{"id", "batch/" + std::to_string(i)}, {"class", "best-effort"}, {"cpu_quota", 1}});
  return {{"schema", "berth.snapshot/1"},
          {"host", host},
          {"time", time},
          {"topology", {{"cpus", cpus}}},
          {"memory", {{"total_bytes", 68719476736}}},
          {"workloads", workloads}};
}

class ExtenderFleet : public testing::Test {
 protected:
  void push(const json& document, double now_s = 0) {
    const auto taken = fleet.take(model::json_text(document), now_s);
    EXPECT_TRUE(taken) << taken.error().message();
  }
  static Question pod(int number, int vcpus = 2,
                      model::WorkloadClass workload_class = model::WorkloadClass::best_effort) {
    model::PendingWorkload request;
    request.id = "pod-" + std::to_string(number);
    request.service = "job";
    request.workload_class = workload_class;
    request.vcpus = vcpus;
    return {.pod = {.uid = uid(number), .request = request}, .nodes = {"a", "b", "c"}};
  }
  std::map<std::string, int> points(const Question& question, double now_s = 0) {
    std::map<std::string, int> all;
    for (const Points& of : fleet.prioritize(question, now_s)) all[of.node] = of.score;
    return all;
  }
  // The node with all points.
  std::string best(const Question& question, double now_s = 0) {
    for (const auto& [node, score] : points(question, now_s))
      if (score == 10) return node;
    return "";
  }

  Fleet fleet{Fleet::Settings()};
};

TEST_F(ExtenderFleet, PrefersTheHostThatRankPrefers) {
  push(snapshot("a", 6));
  push(snapshot("b", 1));
  push(snapshot("c", 3));
  EXPECT_EQ(points(pod(1)), (std::map<std::string, int>{{"b", 10}, {"c", 9}, {"a", 1}}));
}

TEST_F(ExtenderFleet, RejectsAHostThatIsFull) {
  push(snapshot("a", 7));
  push(snapshot("b", 0));
  const Filtered filtered = fleet.filter(pod(1, 4), 0);
  EXPECT_THAT(filtered.passed, ElementsAre("b", "c"));
  ASSERT_TRUE(filtered.failed.contains("a"));
  EXPECT_THAT(filtered.failed.at("a"), HasSubstr("berth: fits in no NUMA node: node 0: asks 4 vCPUs"));
  EXPECT_EQ(points(pod(1, 4))["a"], 0);
}

TEST_F(ExtenderFleet, AnUnknownNodePassesWithANeutralScore) {
  EXPECT_THAT(fleet.filter(pod(1), 0).passed, ElementsAre("a", "b", "c"));
  EXPECT_EQ(points(pod(1)), (std::map<std::string, int>{{"a", 5}, {"b", 5}, {"c", 5}}));
  EXPECT_EQ(fleet.assumed(), 0U);
}

TEST_F(ExtenderFleet, AHostIsUnknownAgainAfterItsSilence) {
  push(snapshot("a", 8), 0);
  EXPECT_EQ(fleet.filter(pod(1, 8), 120).failed.size(), 1U);
  EXPECT_EQ(fleet.filter(pod(1, 8), 121).failed.size(), 0U);
  // The same snapshot again is no sign of life.
  push(snapshot("a", 8), 130);
  EXPECT_EQ(fleet.filter(pod(1, 8), 130).failed.size(), 0U);
  push(snapshot("a", 8, 1130), 130);
  EXPECT_EQ(fleet.filter(pod(1, 8), 130).failed.size(), 1U);
}

TEST_F(ExtenderFleet, APodThatBerthDoesNotPlaceIsAllTheSame) {
  push(snapshot("a", 8));
  Question question = pod(1);
  question.pod.request.reset();
  EXPECT_THAT(fleet.filter(question, 0).passed, ElementsAre("a", "b", "c"));
  EXPECT_EQ(points(question)["a"], 5);
  EXPECT_EQ(fleet.assumed(), 0U);
}

TEST_F(ExtenderFleet, ABurstDoesNotHerd) {
  for (const char* host : {"a", "b", "c"}) push(snapshot(host));
  std::map<std::string, int> placed;
  for (int i = 0; i < 9; ++i) ++placed[best(pod(i))];
  EXPECT_EQ(placed, (std::map<std::string, int>{{"a", 3}, {"b", 3}, {"c", 3}}));
  // Until all are full.
  for (int i = 10; i < 13; ++i) best(pod(i));
  EXPECT_EQ(points(pod(20)), (std::map<std::string, int>{{"a", 0}, {"b", 0}, {"c", 0}}));
}

TEST_F(ExtenderFleet, LatencySensitivePodsGetVcpusOfTheirOwnOneAfterTheOther) {
  for (const char* host : {"a", "b", "c"}) push(snapshot(host));
  std::map<std::string, int> placed;
  for (int i = 0; i < 6; ++i) ++placed[best(pod(i, 3, model::WorkloadClass::latency_sensitive))];
  EXPECT_EQ(placed, (std::map<std::string, int>{{"a", 2}, {"b", 2}, {"c", 2}}));
  EXPECT_EQ(points(pod(9, 3, model::WorkloadClass::latency_sensitive)),
            (std::map<std::string, int>{{"a", 0}, {"b", 0}, {"c", 0}}));
}

TEST_F(ExtenderFleet, AnAssumedPodIsForgottenWhenASnapshotShowsIt) {
  push(snapshot("a"));
  Question question = pod(1, 8);
  question.nodes = {"a"};
  EXPECT_EQ(best(question), "a");
  EXPECT_EQ(fleet.assumed(), 1U);
  Question next = pod(2, 1);
  next.nodes = {"a"};
  EXPECT_EQ(points(next, 1)["a"], 0);
  // It runs there, and takes less than it asked for.
  json shown = snapshot("a", 0, 1001);
  std::string name = uid(1);
  std::replace(name.begin(), name.end(), '-', '_');
  shown["workloads"].push_back({{"id", "kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" +
                                           name + ".slice/cri-containerd-0.scope"},
                                {"class", "best-effort"},
                                {"cpu_quota", 2}});
  push(shown, 1);
  EXPECT_EQ(fleet.assumed(), 0U);
  EXPECT_EQ(points(next, 1)["a"], 10);
}

TEST_F(ExtenderFleet, ASnapshotWithoutThePodKeepsItAssumed) {
  push(snapshot("a"));
  Question question = pod(1, 8);
  question.nodes = {"a"};
  best(question);
  push(snapshot("a", 0, 1001), 1);
  Question next = pod(2, 1);
  next.nodes = {"a"};
  EXPECT_EQ(points(next, 1)["a"], 0);
  // Its time is over: it was deleted, or went elsewhere.
  EXPECT_EQ(points(next, 120)["a"], 10);
}

TEST_F(ExtenderFleet, ASingleNodeIsTakenWithoutAnotherQuestion) {
  push(snapshot("a"));
  push(snapshot("b", 8));
  push(snapshot("c", 8));
  EXPECT_THAT(fleet.filter(pod(1, 6), 0).passed, ElementsAre("a"));
  EXPECT_EQ(fleet.assumed(), 1U);
  EXPECT_EQ(points(pod(2, 6))["a"], 0);
}

TEST_F(ExtenderFleet, APodThatIsAskedAboutAgainCountsOnce) {
  push(snapshot("a"));
  Question question = pod(1, 8);
  question.nodes = {"a"};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(fleet.filter(question, 0).passed.size(), 1U);
    EXPECT_EQ(best(question), "a");
    EXPECT_EQ(fleet.assumed(), 1U);
  }
}

// Every program of the scheduler's host may ask. It can lower points for a while, and keep no pod away.
TEST_F(ExtenderFleet, AnAssumedPodRejectsNoOther) {
  push(snapshot("a"));
  Question made_up = pod(1, 8);
  made_up.nodes = {"a"};
  EXPECT_THAT(fleet.filter(made_up, 0).passed, ElementsAre("a"));
  EXPECT_EQ(fleet.assumed(), 1U);
  Question real = pod(2, 8);
  real.nodes = {"a"};
  EXPECT_THAT(fleet.filter(real, 0).passed, ElementsAre("a"));
}

TEST_F(ExtenderFleet, AGroupOfAUserEndsNoAssumption) {
  push(snapshot("a"));
  best(pod(1));
  ASSERT_EQ(fleet.assumed(), 1U);
  json shown = snapshot("b");
  shown["workloads"].push_back(
      {{"id", "user.slice/user-1000.slice/kubepods-pod" + uid(1)}, {"class", "best-effort"}});
  shown["workloads"].push_back(
      {{"id", "user.slice/user-1000.slice/kubepods/pod" + uid(1)}, {"class", "best-effort"}});
  push(shown);
  EXPECT_EQ(fleet.assumed(), 1U);
}

TEST_F(ExtenderFleet, PodsThatEndTogetherCostNoWorkEach) {
  push(snapshot("a"));
  constexpr int kPods = 200;
  for (int i = 0; i < kPods; ++i) {
    Question question = pod(i);
    question.nodes = {"a"};
    fleet.filter(question, i < kPods / 2 ? 0 : 50);
  }
  ASSERT_EQ(fleet.assumed(), std::size_t{kPods});
  push(snapshot("a", 0, 1001), 60);
  // Half of them end. The others are placed once more, when a question needs that.
  const std::uint64_t before = fleet.placings();
  points(pod(kPods), 130);
  EXPECT_EQ(fleet.assumed(), std::size_t{kPods / 2});
  EXPECT_EQ(fleet.placings() - before, std::uint64_t{kPods / 2});
  // The others are shown by one snapshot.
  json shown = snapshot("a", 0, 1002);
  for (int i = kPods / 2; i < kPods; ++i)
    shown["workloads"].push_back({{"id", "kubepods/pod" + uid(i) + "/x"}, {"class", "best-effort"}});
  push(shown, 131);
  points(pod(kPods), 132);
  EXPECT_LE(fleet.placings() - before, std::uint64_t{kPods / 2} + 1);
}

TEST_F(ExtenderFleet, AssumedPodsOfAHostAreLimited) {
  push(snapshot("a"));
  push(snapshot("b"));
  for (int i = 0; i < static_cast<int>(kMaxAssumedOnHost) + 10; ++i) {
    Question question = pod(i);
    question.nodes = {"a"};
    fleet.filter(question, 0);
  }
  EXPECT_EQ(fleet.assumed(), kMaxAssumedOnHost);
  Question other = pod(5000);
  other.nodes = {"b"};
  fleet.filter(other, 0);
  EXPECT_EQ(fleet.assumed(), kMaxAssumedOnHost + 1);
}

TEST_F(ExtenderFleet, AssumedPodsAreLimitedInAll) {
  constexpr std::size_t kHosts = kMaxAssumed / kMaxAssumedOnHost + 1;
  int number = 0;
  for (std::size_t host = 0; host < kHosts; ++host) {
    const std::string name = "host-" + std::to_string(host);
    push(snapshot(name));
    for (std::size_t i = 0; i < kMaxAssumedOnHost; ++i) {
      Question question = pod(number++);
      question.nodes = {name};
      fleet.filter(question, 0);
    }
  }
  EXPECT_EQ(fleet.assumed(), kMaxAssumed);
}

TEST_F(ExtenderFleet, AFullTableForgetsTheHostThatIsSilentForLongest) {
  Fleet small({.policies = {}, .max_age_s = 120, .hold_s = 120, .max_hosts = 3});
  const auto take = [&](const std::string& host, double now_s, double time = 1000) {
    return small.take(model::json_text(snapshot(host, 0, time)), now_s);
  };
  EXPECT_TRUE(take("fake-1", 1));
  EXPECT_TRUE(take("fake-2", 0));
  EXPECT_TRUE(take("fake-3", 1));
  const auto refused = take("real", 100);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("host real: 3 hosts"));
  // A host that is known may go on.
  EXPECT_TRUE(take("fake-3", 100, 1001));
  // Only fake-2 is not fresh any more.
  EXPECT_TRUE(take("real", 120.5));
  EXPECT_FALSE(take("fake-2", 120.5, 1001));
  EXPECT_EQ(small.hosts(), 3U);
  EXPECT_TRUE(take("another", 122));
  EXPECT_EQ(small.hosts(), 3U);
  Question question = pod(1);
  question.nodes = {"real", "another", "fake-1", "fake-2"};
  std::map<std::string, int> all;
  for (const Points& of : small.prioritize(question, 122)) all[of.node] = of.score;
  EXPECT_EQ(all, (std::map<std::string, int>{{"another", 10}, {"real", 9}, {"fake-1", 5}, {"fake-2", 5}}));
}

TEST_F(ExtenderFleet, AHostThatIsForgottenTakesItsAssumedPodsAlong) {
  Fleet small({.policies = {}, .max_age_s = 10, .hold_s = 100, .max_hosts = 1});
  ASSERT_TRUE(small.take(model::json_text(snapshot("a")), 0));
  Question question = pod(1);
  question.nodes = {"a"};
  small.filter(question, 1);
  ASSERT_EQ(small.assumed(), 1U);
  ASSERT_TRUE(small.take(model::json_text(snapshot("new")), 10.5));
  EXPECT_EQ(small.assumed(), 0U);
  EXPECT_EQ(small.hosts(), 1U);
}

TEST_F(ExtenderFleet, TheMemoryOfAllHostsIsLimited) {
  json large = snapshot("a");
  for (int i = 0; i < 1000; ++i) large["services"]["s" + std::to_string(i)] = {{"pressure", 0.5}};
  push(large);
  const std::size_t one = fleet.bytes();
  EXPECT_GT(one, 200'000U);
  // Another snapshot of the same host replaces the first one.
  large["time"] = 1001;
  push(large);
  EXPECT_EQ(fleet.bytes(), one);

  Fleet small({.policies = {}, .max_age_s = 120, .hold_s = 120, .max_bytes = 2 * one + one / 2});
  for (const char* host : {"a", "b"}) {
    large["host"] = host;
    ASSERT_TRUE(small.take(model::json_text(large), 0));
  }
  large["host"] = "c";
  EXPECT_FALSE(small.take(model::json_text(large), 1));
  EXPECT_EQ(small.bytes(), 2 * one);
  EXPECT_TRUE(small.take(model::json_text(large), 121));
  EXPECT_EQ(small.hosts(), 2U);
  EXPECT_EQ(small.bytes(), 2 * one);
}

TEST_F(ExtenderFleet, ThePlacesOfTheLastKindsAreKept) {
  push(snapshot("a"));
  Question question = pod(1);
  for (std::uint64_t mib = 1; mib <= 2 * kMaxKinds; ++mib) {
    question.pod.request->memory_request_bytes = mib << 20;
    EXPECT_EQ(points(question).at("a"), 10);
  }
  EXPECT_EQ(fleet.kinds(), kMaxKinds);
}

TEST_F(ExtenderFleet, RefusesASnapshotBeyondABound) {
  push(snapshot("a"));
  json many = snapshot("a", 0, 1001);
  for (std::size_t i = 0; i <= kMaxServices; ++i) many["services"]["s" + std::to_string(i)] = json::object();
  const auto refused = fleet.take(model::json_text(many), 0);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("host a: it has 4001 services, and 4000 are the most"));
  EXPECT_EQ(fleet.hosts(), 1U);
  EXPECT_FALSE(fleet.take(std::string(kMaxSnapshotBytes + 1, ' '), 0));
}

TEST_F(ExtenderFleet, RefusesWhatIsNoSnapshot) {
  EXPECT_FALSE(fleet.take("{}", 0));
  EXPECT_FALSE(fleet.take("", 0));
  EXPECT_FALSE(fleet.take(std::string(100'000, '['), 0));
  EXPECT_EQ(fleet.hosts(), 0U);
}

TEST_F(ExtenderFleet, TellsTheAgesOfItsSnapshots) {
  push(snapshot("b"), 10);
  push(snapshot("c"), 30);
  push(snapshot("a"), 10);
  push(snapshot("c"), 50);  // the same one again
  const auto ages = [this](std::size_t most) {
    std::vector<std::pair<std::string, double>> all;
    for (const auto& [host, age_s] : fleet.ages(100, most)) all.emplace_back(host, age_s);
    return all;
  };
  using Pair = std::pair<std::string, double>;
  EXPECT_THAT(ages(5), ElementsAre(Pair("a", 90), Pair("b", 90), Pair("c", 70)));
  EXPECT_THAT(ages(1), ElementsAre(Pair("a", 90)));
}

TEST_F(ExtenderFleet, AHostThatSendsTooOftenIsNotRead) {
  Fleet paced({.policies = {}, .pause_s = 15});
  const auto take = [&paced](const json& document, double now_s) {
    return paced.take(model::json_text(document), now_s);
  };
  EXPECT_TRUE(take(snapshot("a", 0, 1000), 0));
  const auto early = take(snapshot("a", 0, 1001), 14);
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().kind(), model::ErrorKind::transient);
  EXPECT_EQ(early.error().message(),
            "host a sends snapshots too often: the next one is taken in 1.0 s, and one in 15 s (--pause)");
  EXPECT_TRUE(take(snapshot("b", 0, 1001), 14));
  EXPECT_TRUE(take(snapshot("a", 0, 1001), 15));
  // One that shows nothing new costs the same to read.
  EXPECT_TRUE(take(snapshot("a", 0, 1001), 30));
  EXPECT_EQ(take(snapshot("a", 0, 1002), 31).error().kind(), model::ErrorKind::transient);
}

TEST_F(ExtenderFleet, AnInvalidSnapshotKeepsTheHostItNamesFromNothing) {
  Fleet paced({.policies = {}, .pause_s = 15});
  json bad = snapshot("c");
  bad["memory"] = 1;
  EXPECT_EQ(paced.take(R"({"host":"c"})", 20).error().kind(), model::ErrorKind::invalid_input);
  EXPECT_EQ(paced.take(model::json_text(bad), 21).error().kind(), model::ErrorKind::invalid_input);
  EXPECT_TRUE(paced.take(model::json_text(snapshot("c", 0, 1000)), 22));
}

TEST_F(ExtenderFleet, ASnapshotWithTwoHostsIsRefused) {
  std::string text = model::json_text(snapshot("a"));
  text.insert(text.size() - 1, R"(,"host":"b")");
  EXPECT_FALSE(fleet.take(text, 0));
  text = model::json_text(snapshot("a"));
  text.replace(text.find(R"("a")"), 3, R"("\u0061")");
  const auto refused = fleet.take(text, 0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(),
            "host: the snapshot has to name its host once, as a text without escapes");
  EXPECT_EQ(fleet.hosts(), 0U);
}

TEST_F(ExtenderFleet, AQuestionIsAnsweredInTimeByEarlierPlaces) {
  double clock_s = 0;
  bool slow = false;
  // Each look at the clock takes longer than a question may.
  Fleet late({.policies = {}, .question_s = 1, .clock = [&] { return slow ? clock_s += 2 : clock_s; }});
  const auto push_all = [&late](int busy, double time) {
    for (const char* host : {"a", "b"})
      ASSERT_TRUE(late.take(model::json_text(snapshot(host, busy, time)), 0));
  };
  push_all(8, 1000);
  EXPECT_EQ(late.filter(pod(1, 8), 0).failed.size(), 2U);
  // Both hosts are free now, but there is no time to see it.
  push_all(0, 1001);
  slow = true;
  EXPECT_EQ(late.filter(pod(1, 8), 0).failed.size(), 2U);
  slow = false;
  EXPECT_EQ(late.filter(pod(1, 8), 0).failed.size(), 0U);
  // Without an earlier place a node passes, with a neutral score.
  slow = true;
  EXPECT_THAT(late.filter(pod(2, 7), 0).passed, ElementsAre("a", "b", "c"));
  for (const Points& of : late.prioritize(pod(2, 7), 0)) EXPECT_EQ(of.score, 5) << of.node;
}

}  // namespace
}  // namespace berth::extender
