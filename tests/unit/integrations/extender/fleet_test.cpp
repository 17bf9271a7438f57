// SPDX-License-Identifier: Apache-2.0
#include "integrations/extender/fleet.h"

#include "model/json.h"
#include "model/json_text.h"

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

std::string uid(int number) { return kUid + std::to_string(number); }

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
  EXPECT_THAT(fleet.filter(pod(20), 0).passed, ElementsAre());
}

TEST_F(ExtenderFleet, LatencySensitivePodsGetVcpusOfTheirOwnOneAfterTheOther) {
  for (const char* host : {"a", "b", "c"}) push(snapshot(host));
  std::map<std::string, int> placed;
  for (int i = 0; i < 6; ++i) ++placed[best(pod(i, 3, model::WorkloadClass::latency_sensitive))];
  EXPECT_EQ(placed, (std::map<std::string, int>{{"a", 2}, {"b", 2}, {"c", 2}}));
  EXPECT_THAT(fleet.filter(pod(9, 3, model::WorkloadClass::latency_sensitive), 0).passed, ElementsAre());
}

TEST_F(ExtenderFleet, AnAssumedPodIsForgottenWhenASnapshotShowsIt) {
  push(snapshot("a"));
  Question question = pod(1, 8);
  question.nodes = {"a"};
  EXPECT_EQ(best(question), "a");
  EXPECT_EQ(fleet.assumed(), 1U);
  Question next = pod(2, 1);
  next.nodes = {"a"};
  EXPECT_EQ(fleet.filter(next, 1).passed.size(), 0U);
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
  EXPECT_EQ(fleet.filter(next, 1).passed.size(), 1U);
}

TEST_F(ExtenderFleet, ASnapshotWithoutThePodKeepsItAssumed) {
  push(snapshot("a"));
  Question question = pod(1, 8);
  question.nodes = {"a"};
  best(question);
  push(snapshot("a", 0, 1001), 1);
  Question next = pod(2, 1);
  next.nodes = {"a"};
  EXPECT_EQ(fleet.filter(next, 1).passed.size(), 0U);
  // Its time is over: it was deleted, or went elsewhere.
  EXPECT_EQ(fleet.filter(next, 120).passed.size(), 1U);
}

TEST_F(ExtenderFleet, ASingleNodeIsTakenWithoutAnotherQuestion) {
  push(snapshot("a"));
  push(snapshot("b", 8));
  push(snapshot("c", 8));
  EXPECT_THAT(fleet.filter(pod(1, 6), 0).passed, ElementsAre("a"));
  EXPECT_EQ(fleet.assumed(), 1U);
  EXPECT_THAT(fleet.filter(pod(2, 6), 0).passed, ElementsAre());
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

}  // namespace
}  // namespace berth::extender
