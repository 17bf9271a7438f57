// SPDX-License-Identifier: Apache-2.0
#include "integrations/kubernetes/reporter.h"

#include "model/json_text.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace berth::kubernetes {
namespace {

using model::Departure;
using nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Answer answer(int status, const json& body = {{"kind", "Status"}, {"message", "no"}}) {
  return {
      .status = status, .body = model::json_text(body), .retry_after_s = {}, .fault_kind = {}, .fault = {}};
}

// An API server with pods and Events.
class FakeApi : public Api {
 public:
  Answer patch(const std::string& path, const std::string&) override {
    ADD_FAILURE() << path;
    return {};
  }
  Answer create(const std::string& path, const std::string& body) override {
    asked.push_back("POST " + path);
    if (instead) {
      if (auto other = instead(path)) return *other;
    }
    json object = model::json_of(body);
    if (path.ends_with("/eviction")) {
      evictions.push_back(object);
      return answer(201);
    }
    for (const json& event : events)
      if (event["metadata"] == object["metadata"]) return answer(409);
    events.push_back(object);
    return answer(201, object);
  }
  Answer list(const std::string& path) override {
    asked.push_back("GET " + path);
    if (instead) {
      if (auto other = instead(path)) return *other;
    }
    const auto begin = path.find("continue=");
    const std::size_t from = begin == std::string::npos ? 0 : std::stoul(path.substr(begin + 9));
    const std::size_t limit = std::stoul(path.substr(path.find("limit=") + 6));
    json items = json::array();
    for (std::size_t at = from; at < std::min(from + limit, pods.size()); ++at)
      items.push_back({{"metadata",
                        {{"name", pods[at]},
                         {"namespace", "batch"},
                         {"uid", "uid-" + pods[at]},
                         {"ownerReferences", owners_of(pods[at])}}}});
    json metadata = json::object();
    if (from + limit < pods.size()) metadata["continue"] = std::to_string(from + limit);
    return answer(200, {{"kind", "PartialObjectMetadataList"}, {"metadata", metadata}, {"items", items}});
  }

  std::vector<std::string> reasons() const {
    std::vector<std::string> all;
    for (const json& event : events)
      all.push_back(event["involvedObject"]["name"].get<std::string>() + " " +
                    event["reason"].get<std::string>());
    return all;
  }

  // Of "job-1" it is "job", which controls it, and nobody of "a".
  static json owners_of(const std::string& pod) {
    const auto dash = pod.find('-');
    if (dash == std::string::npos) return json::array();
    return {{{"kind", "Other"}, {"uid", "other"}},
            {{"kind", "Job"}, {"uid", pod.substr(0, dash)}, {"controller", true}}};
  }

  std::vector<std::string> pods{"a", "b", "c"};
  std::vector<json> events;
  std::vector<json> evictions;
  std::vector<std::string> asked;
  std::function<std::optional<Answer>(const std::string& path)> instead;  // of an answer
};

Departure departure(const std::string& pod, Departure::Kind kind = Departure::Kind::evict,
                    bool wanted = false) {
  return {.kind = kind,
          .time = 5000,
          .workload = fmt::format("kubepods/besteffort/poduid-{}/1", pod),
          .decision = "d-" + pod,
          .reason = "because",
          .wanted = wanted};
}

Departure relocation(const std::string& pod, bool wanted = true) {
  return departure(pod, Departure::Kind::relocate, wanted);
}

Berth with(std::vector<Departure> departures) {
  model::NodeState state;
  state.departures = std::move(departures);
  return {.state = state, .silence = {}};
}

class KubernetesReporter : public testing::Test {
 protected:
  Reporter make(Reporter::Settings settings = {}) {
    settings.node = "n1";
    return {settings,
            api,
            {.clock = [this] { return now_s; },
             .random = [] { return 0.5; },
             .say = [this](Level, const std::string& message) { said.push_back(message); }}};
  }
  // Turns once a second, for so long. berthd writes a state before each turn.
  void turn_for(Reporter& reporter, double seconds, Berth berth) {
    for (const double end_s = now_s + seconds; now_s < end_s; now_s += 1) {
      if (berth.state) berth.state->time = now_s;
      reporter.turn(berth);
    }
  }
  // The same with a berthd that hangs.
  void turn_hung_for(Reporter& reporter, double seconds, const Berth& berth) {
    for (const double end_s = now_s + seconds; now_s < end_s; now_s += 1) reporter.turn(berth);
  }

  FakeApi api;
  double now_s = 1000;
  std::vector<std::string> said;
};

TEST_F(KubernetesReporter, ReportsEachDepartureOnce) {
  Reporter reporter = make();
  turn_for(reporter, 100, with({departure("b"), relocation("a")}));
  EXPECT_THAT(api.reasons(), ElementsAre("b EvictedByBerth", "a RelocationNeeded"));
  EXPECT_THAT(api.evictions, IsEmpty());
  EXPECT_THAT(api.asked,
              ElementsAre("GET /api/v1/pods?fieldSelector=spec.nodeName%3Dn1&limit=100",
                          "POST /api/v1/namespaces/batch/events", "POST /api/v1/namespaces/batch/events"));
  EXPECT_THAT(said, ElementsAre("reported on the pod batch/b: EvictedByBerth",
                                "reported on the pod batch/a: RelocationNeeded"));
  // A new one asks for no list, as its pod is known.
  turn_for(reporter, 100, with({departure("c"), departure("b"), relocation("a")}));
  EXPECT_THAT(api.asked, SizeIs(4));
  // berth-kube starts again: the API server has them all.
  Reporter again = make();
  turn_for(again, 10, with({departure("c"), departure("b"), relocation("a")}));
  EXPECT_THAT(api.events, SizeIs(3));
  EXPECT_THAT(said, SizeIs(3));
}

TEST_F(KubernetesReporter, AsksNothingWithoutAPodToReportOn) {
  Reporter reporter = make();
  reporter.turn(with({}));
  Departure other = departure("a");
  other.workload = "system.slice/batch.service";
  turn_for(reporter, 100, with({other}));
  reporter.turn({.state = std::nullopt, .silence = "berthd does not run"});
  EXPECT_THAT(api.asked, IsEmpty());
}

TEST_F(KubernetesReporter, APodThatTheServerDoesNotKnowIsGivenUp) {
  Reporter reporter = make({.evict = true, .evict_after_s = 0});
  turn_for(reporter, 100, with({relocation("z"), departure("a")}));
  EXPECT_THAT(api.reasons(), ElementsAre("a EvictedByBerth"));
  EXPECT_THAT(api.asked, SizeIs(2));
  EXPECT_THAT(said, Contains(HasSubstr("the API server knows no pod of this node with the UID uid-z")));
  EXPECT_THAT(said, SizeIs(2));
}

TEST_F(KubernetesReporter, FindsAPodOnALaterPage) {
  api.pods.clear();
  for (int number = 0; number < 250; ++number) api.pods.push_back(fmt::format("p{}", number));
  Reporter reporter = make();
  reporter.turn(with({departure("p249")}));
  EXPECT_THAT(api.reasons(), ElementsAre("p249 EvictedByBerth"));
  EXPECT_THAT(api.asked, SizeIs(4));
}

TEST_F(KubernetesReporter, AsksForFewerWhenTheAnswerIsTooLong) {
  api.instead = [](const std::string& path) {
    return path.ends_with("limit=1") || path.find("pods?") == std::string::npos ||
                   path.find("limit=1&") != std::string::npos
               ? std::optional<Answer>()
               : Answer{
                     .status = 0, .body = {}, .retry_after_s = {}, .fault_kind = kTooLong, .fault = "long"};
  };
  Reporter reporter = make();
  reporter.turn(with({departure("c")}));
  EXPECT_THAT(api.reasons(), ElementsAre("c EvictedByBerth"));
  EXPECT_THAT(api.asked, SizeIs(2 + 3 + 1));
  EXPECT_THAT(said, SizeIs(1));
}

TEST_F(KubernetesReporter, EndsAListWithoutEnd) {
  api.instead = [](const std::string& path) -> std::optional<Answer> {
    if (path.find("pods?") == std::string::npos) return std::nullopt;
    return answer(200, {{"kind", "PodList"},
                        {"metadata", {{"continue", "x"}}},
                        {"items", {{{"metadata", {{"name", "a"}, {"namespace", "b"}, {"uid", "c"}}}}}}});
  };
  // Each page takes a while.
  Reporter reporter({.node = "n1"}, api,
                    {.clock = [this] { return now_s += 0.1; },
                     .random = [] { return 0.5; },
                     .say = [this](Level, const std::string& message) { said.push_back(message); }});
  reporter.turn(with({departure("a")}));
  EXPECT_LE(api.asked.size(), 102U);
  EXPECT_THAT(said, ElementsAre(HasSubstr("takes too long for the list of the node's pods")));
}

TEST_F(KubernetesReporter, SaysAFailureOnceAndTriesAgain) {
  bool refuses = true;
  api.instead = [&refuses](const std::string&) {
    return refuses ? std::optional<Answer>(answer(403)) : std::nullopt;
  };
  Reporter reporter = make();
  turn_for(reporter, 300, with({departure("a")}));
  EXPECT_THAT(said, ElementsAre("cannot report on pods, and tries again, 60 s apart at most: the API server "
                                "answers 403: no (to list pods, see the manifest rbac-pods.yaml; a service "
                                "account must be in the namespace berth-kube)"));
  EXPECT_THAT(api.asked, testing::AllOf(SizeIs(testing::Gt(5U)), SizeIs(testing::Lt(15U))));
  refuses = false;
  turn_for(reporter, 60, with({departure("a")}));
  EXPECT_THAT(api.reasons(), ElementsAre("a EvictedByBerth"));
}

TEST_F(KubernetesReporter, OneRefusedEventHoldsUpNoOther) {
  // The namespace of the first pod is being deleted.
  int refused = 0;
  api.instead = [&](const std::string& path) {
    return path.ends_with("/events") && refused++ == 0 ? std::optional<Answer>(answer(403)) : std::nullopt;
  };
  Reporter reporter = make();
  turn_for(reporter, 10, with({departure("a"), departure("b"), departure("c")}));
  EXPECT_THAT(api.reasons(), SizeIs(3));
  EXPECT_EQ(api.reasons().back(), api.reasons()[2]);
  EXPECT_THAT(said, Contains(HasSubstr("to make Events, see the manifest rbac-pods.yaml")));
}

TEST_F(KubernetesReporter, SaysHowARefusedEvictionIsAllowed) {
  api.instead = [](const std::string& path) {
    return path.ends_with("/eviction") ? std::optional<Answer>(answer(403)) : std::nullopt;
  };
  Reporter reporter = make({.evict = true, .evict_after_s = 10});
  turn_for(reporter, 30, with({relocation("a")}));
  EXPECT_THAT(said, Contains(HasSubstr("kubectl -n batch create rolebinding berth-kube-evict "
                                       "--clusterrole=berth-kube-evict "
                                       "--group=system:serviceaccounts:berth-kube")));
}

TEST_F(KubernetesReporter, SaysThatTheCredentialsAreOfAnotherNode) {
  api.instead = [](const std::string& path) {
    return path.ends_with("/events") ? std::optional<Answer>(answer(422)) : std::nullopt;
  };
  Reporter reporter = make();
  reporter.turn(with({departure("a")}));
  EXPECT_THAT(said, ElementsAre(HasSubstr("the token or the certificate must be of this node")));
}

TEST_F(KubernetesReporter, EvictsNothingUnlessItIsTold) {
  Reporter reporter = make({.evict = false});
  turn_for(reporter, 1000, with({relocation("a")}));
  EXPECT_THAT(api.evictions, IsEmpty());
}

TEST_F(KubernetesReporter, EvictsAPodThatShouldRunElsewhereForAWhile) {
  Reporter reporter = make({.evict = true, .evict_after_s = 60});
  turn_for(reporter, 60, with({relocation("a")}));
  EXPECT_THAT(api.evictions, IsEmpty());
  // The time begins anew if it was not wanted meanwhile.
  reporter.turn(with({relocation("a", false)}));
  turn_for(reporter, 60, with({relocation("a")}));
  EXPECT_THAT(api.evictions, IsEmpty());
  turn_for(reporter, 200, with({relocation("a")}));
  ASSERT_THAT(api.evictions, SizeIs(1));
  EXPECT_EQ(api.evictions[0]["metadata"]["name"], "a");
  EXPECT_EQ(api.evictions[0]["deleteOptions"]["preconditions"]["uid"], "uid-a");
  EXPECT_THAT(said, Contains("evicted the pod batch/a, which should run on another node: because"));
}

TEST_F(KubernetesReporter, HasThePodsEvictedThatBerthEndsAtOnceAndEachOnce) {
  Reporter reporter = make({.events = false, .evict_ended = true});
  turn_for(reporter, 100, with({departure("a"), departure("b"), relocation("c")}));
  ASSERT_THAT(api.evictions, SizeIs(2));
  EXPECT_EQ(api.evictions[0]["deleteOptions"]["preconditions"]["uid"], "uid-a");
  EXPECT_THAT(said, Contains("evicted the pod batch/a, which berth ends: because"));
}

TEST_F(KubernetesReporter, DoesNotAskForTheEvictionOfAPodThatBerthEndsUnlessItIsWished) {
  Reporter reporter = make({.events = false, .evict = true, .evict_after_s = 0});
  turn_for(reporter, 100, with({departure("a"), relocation("b", false)}));
  EXPECT_THAT(api.asked, IsEmpty());
}

TEST_F(KubernetesReporter, EvictsOnePodAtATime) {
  Reporter reporter = make({.evict = true, .evict_after_s = 60});
  const Berth berth = with({relocation("a"), relocation("b"), relocation("c")});
  turn_for(reporter, 62, berth);
  EXPECT_THAT(api.evictions, SizeIs(1));
  turn_for(reporter, 58, berth);
  EXPECT_THAT(api.evictions, SizeIs(1));
  turn_for(reporter, 2, berth);
  EXPECT_THAT(api.evictions, SizeIs(2));
}

TEST_F(KubernetesReporter, MovesThreePodsOfAnOwnerADay) {
  api.pods = {"job-1", "job-2", "job-3", "job-4", "else-1", "job-5"};
  Reporter reporter = make({.events = false, .evict = true, .evict_after_s = 10});
  const auto moved = [this] {
    std::vector<std::string> names;
    for (const json& eviction : api.evictions)
      names.push_back(eviction["metadata"]["name"].get<std::string>());
    return names;
  };
  // The pod that takes the place of one that was moved is late, too.
  for (const char* pod : {"job-1", "job-2", "job-3", "job-4"})
    turn_for(reporter, 30, with({relocation(pod)}));
  EXPECT_THAT(moved(), ElementsAre("job-1", "job-2", "job-3"));
  EXPECT_THAT(said, Contains(HasSubstr("the pod batch/job-4 stays: 3 pods of its owner were moved")));
  // It holds up no other owner's pod.
  turn_for(reporter, 60, with({relocation("job-4"), relocation("else-1")}));
  EXPECT_THAT(moved(), ElementsAre("job-1", "job-2", "job-3", "else-1"));
  now_s += kMovesCount_s;
  turn_for(reporter, 60, with({relocation("job-5")}));
  EXPECT_THAT(moved(), ElementsAre("job-1", "job-2", "job-3", "else-1", "job-5"));
}

TEST_F(KubernetesReporter, ABudgetThatForbidsAnEvictionIsAskedAgain) {
  bool forbids = true;
  api.instead = [&forbids](const std::string& path) {
    return forbids && path.ends_with("/a/eviction") ? std::optional<Answer>(answer(429)) : std::nullopt;
  };
  Reporter reporter = make({.evict = true, .evict_after_s = 10});
  turn_for(reporter, 120, with({relocation("a"), relocation("b")}));
  // It does not hold up the other one.
  ASSERT_THAT(api.evictions, SizeIs(1));
  EXPECT_EQ(api.evictions[0]["metadata"]["name"], "b");
  EXPECT_THAT(said, Contains(HasSubstr("cannot evict pods, and tries again")));
  forbids = false;
  turn_for(reporter, 120, with({relocation("a"), relocation("b")}));
  EXPECT_THAT(api.evictions, SizeIs(2));
}

TEST_F(KubernetesReporter, APodThatIsGoneIsNotEvicted) {
  for (const int status : {404, 409}) {
    api.asked.clear();
    api.instead = [status](const std::string& path) {
      return path.ends_with("/eviction") ? std::optional<Answer>(answer(status)) : std::nullopt;
    };
    Reporter reporter = make({.events = false, .evict = true, .evict_after_s = 0});
    turn_for(reporter, 100, with({relocation("a")}));
    EXPECT_THAT(api.asked, SizeIs(2)) << status;
    EXPECT_THAT(said, IsEmpty());
  }
}

TEST_F(KubernetesReporter, EvictsByNoStateOfABerthdThatHangs) {
  Reporter reporter = make({.evict = true, .evict_after_s = 60});
  turn_hung_for(reporter, 1000, with({relocation("a")}));
  // Nor if it hung in the middle of the time, or just before the end of it.
  for (const double seconds : {30, 61}) {
    turn_for(reporter, seconds, with({relocation("a")}));
    Berth hung = with({relocation("a")});
    hung.state->time = now_s - 1;
    turn_hung_for(reporter, 1000, hung);
    EXPECT_THAT(api.evictions, IsEmpty()) << seconds;
  }
  // The time begins anew with the first state after that.
  turn_for(reporter, 61, with({relocation("a")}));
  EXPECT_THAT(api.evictions, IsEmpty());
  turn_for(reporter, 1, with({relocation("a")}));
  EXPECT_THAT(api.evictions, SizeIs(1));
}

TEST_F(KubernetesReporter, TheTimeOfANeedBeginsAnewAfterASilence) {
  Reporter reporter = make({.evict = true, .evict_after_s = 20});
  const Berth silent{.state = std::nullopt, .silence = "berthd does not run"};
  turn_for(reporter, 1, with({relocation("a")}));
  turn_for(reporter, 25, silent);
  turn_for(reporter, 21, with({relocation("a")}));
  EXPECT_THAT(api.evictions, IsEmpty());
  turn_for(reporter, 1, with({relocation("a")}));
  EXPECT_THAT(api.evictions, SizeIs(1));
}

TEST_F(KubernetesReporter, AGapAboveTwoTicksIsASilence) {
  Reporter reporter = make({.evict = true, .evict_after_s = 20});
  const double tick_s = 5;
  Berth berth = with({relocation("a")});
  berth.state->interval_s = tick_s;
  turn_for(reporter, 20, berth);
  now_s += 2 * tick_s + kLatestState_s + 1;
  turn_for(reporter, 21, berth);
  EXPECT_THAT(api.evictions, IsEmpty());
  // Two ticks are none.
  now_s += 2 * tick_s;
  turn_for(reporter, 1, berth);
  EXPECT_THAT(api.evictions, SizeIs(1));
}

TEST_F(KubernetesReporter, APodThatBerthEndsIsNotEvictedByAStateThatNeverMoved) {
  Reporter reporter = make({.events = false, .evict_ended = true});
  turn_hung_for(reporter, 100, with({departure("a")}));
  EXPECT_THAT(api.asked, IsEmpty());
  // One state of a berthd that writes is enough.
  turn_for(reporter, 1, with({departure("a")}));
  turn_for(reporter, 1, with({departure("a")}));
  EXPECT_THAT(api.evictions, SizeIs(1));
}

}  // namespace
}  // namespace berth::kubernetes
