// SPDX-License-Identifier: Apache-2.0
#include "integrations/kubernetes/publisher.h"

#include "model/json_text.h"

#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace berth::kubernetes {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// An API server with one node object.
class FakeApi : public Api {
 public:
  Answer patch(const std::string& path, const std::string& body) override {
    paths.push_back(path);
    if (instead) {
      if (auto answer = instead(path)) return *answer;
    }
    const json change = model::json_of(body);
    if (change.contains("metadata") && change["metadata"]["resourceVersion"] != std::to_string(version))
      return refusal(409);
    ++version;
    // A patch of the status changes the status alone, and the other one all else.
    if (path.ends_with("/status"))
      node["status"].merge_patch(change["status"]);
    else
      node["spec"].merge_patch(change["spec"]);
    node["metadata"]["resourceVersion"] = std::to_string(version);
    if (then) then();
    return {
        .status = 200, .body = model::json_text(node), .retry_after_s = {}, .fault_kind = {}, .fault = {}};
  }

  Answer create(const std::string& path, const std::string&) override {
    ADD_FAILURE() << path;
    return {};
  }
  Answer list(const std::string& path) override {
    ADD_FAILURE() << path;
    return {};
  }

  static Answer refusal(int status, std::optional<double> retry_after_s = {}) {
    return {.status = status,
            .body = R"({"kind":"Status","message":"no"})",
            .retry_after_s = retry_after_s,
            .fault_kind = {},
            .fault = {}};
  }
  static Answer fault(const std::string& kind) {
    return {.status = 0, .body = {}, .retry_after_s = {}, .fault_kind = kind, .fault = "at " + kind};
  }

  std::string amount(const std::string& of = "be-cpu") const {
    return node["status"]["allocatable"].value("berth.org/" + of, "none");
  }
  std::string taint() const {
    for (const json& taint : node["spec"].value("taints", json::array()))
      if (taint["key"] == "berth.org/no-schedule") return taint["value"];
    return "none";
  }

  json node = model::json_of(
      R"({"kind":"Node","metadata":{"name":"n1","uid":"u-1","resourceVersion":"0"},"spec":{},"status":{"capacity":{},"allocatable":{}}})");
  int version = 0;
  std::vector<std::string> paths;
  std::function<std::optional<Answer>(const std::string& path)> instead;  // of an answer
  std::function<void()> then;                                             // after a change
};

Berth with(double cores, model::SchedulingState cpu = model::SchedulingState::schedule) {
  model::NodeState state;
  state.cpu = {.state = cpu, .advertised = cores};
  state.memory = {.advertised = 4.0 * (1 << 30)};
  return {.state = state, .silence = {}};
}

Berth silent() { return {.state = std::nullopt, .silence = "berthd does not run"}; }

class KubernetesPublisher : public testing::Test {
 protected:
  Publisher make(Publisher::Settings settings = {}) {
    settings.node = "n1";
    return {settings,
            api,
            {.clock = [this] { return now_s; },
             .random = [this] { return random; },
             .say = [this](Level, const std::string& message) { said.push_back(message); }}};
  }
  // Turns once a second until the time; the number of requests.
  std::size_t turn_until(Publisher& publisher, double end_s, const Berth& berth) {
    const std::size_t before = api.paths.size();
    for (; now_s < end_s; now_s += 1) publisher.turn(berth);
    return api.paths.size() - before;
  }

  FakeApi api;
  double now_s = 1000;
  double random = 0.5;
  std::vector<std::string> said;
};

constexpr auto kClosed = model::SchedulingState::no_schedule;

TEST_F(KubernetesPublisher, PublishesAtOnceAndThenAtEachInterval) {
  Publisher publisher = make();
  EXPECT_TRUE(publisher.turn(with(14.2)));
  EXPECT_EQ(api.amount(), "14200");
  EXPECT_EQ(api.amount("be-memory"), "4294967296");
  EXPECT_EQ(api.node["status"]["capacity"]["berth.org/be-cpu"], "14200");
  EXPECT_EQ(api.taint(), "none");
  EXPECT_THAT(api.paths, ElementsAre("/api/v1/nodes/n1/status"));
  EXPECT_THAT(said, ElementsAre("published be-cpu 14200, be-memory 4294967296, no taint"));
  now_s += 1;
  EXPECT_EQ(turn_until(publisher, 1600, with(14.2)), 9U);
  EXPECT_EQ(said.size(), 1U);
}

TEST_F(KubernetesPublisher, PublishesNewsAfterAPauseAndSmallChangesWithTheInterval) {
  Publisher publisher = make();
  publisher.turn(with(10));
  EXPECT_EQ(turn_until(publisher, 1005, with(11)), 0U);
  EXPECT_EQ(turn_until(publisher, 1006, with(11)), 1U);
  EXPECT_EQ(api.amount(), "11000");
  EXPECT_EQ(turn_until(publisher, 1065, with(11.1)), 0U);
  EXPECT_EQ(turn_until(publisher, 1066, with(11.1)), 1U);
  EXPECT_EQ(api.amount(), "11100");
}

TEST_F(KubernetesPublisher, KeepsTheTaintWhileTheHostTakesNoWork) {
  Publisher publisher = make();
  api.node["spec"]["taints"] = json::array({{{"key", "dedicated"}, {"effect", "NoSchedule"}}});
  publisher.turn(with(10));
  now_s += 1;
  publisher.turn(with(10, kClosed));
  EXPECT_EQ(api.taint(), "cpu");
  EXPECT_EQ(api.node["spec"]["taints"].size(), 2U);
  // An operator's hand is undone at the next interval.
  api.node["spec"]["taints"].erase(1);
  turn_until(publisher, 1070, with(10, kClosed));
  EXPECT_EQ(api.taint(), "cpu");
  publisher.turn(with(10));
  EXPECT_EQ(api.taint(), "none");
  EXPECT_EQ(api.node["spec"]["taints"].size(), 1U);
}

TEST_F(KubernetesPublisher, LeavesTaintsAloneIfItIsTold) {
  Publisher publisher = make({.node = {}, .names = Names("berth.org"), .taint = false});
  publisher.turn(with(10, kClosed));
  EXPECT_EQ(api.taint(), "none");
  EXPECT_EQ(api.amount(), "0");
  EXPECT_THAT(api.paths, ElementsAre("/api/v1/nodes/n1/status"));
}

TEST_F(KubernetesPublisher, ASilentBerthdHasNothingAtOnce) {
  Publisher publisher = make();
  publisher.turn(with(10, kClosed));
  now_s += 1;
  publisher.turn(silent());
  EXPECT_EQ(api.amount(), "0");
  EXPECT_EQ(api.amount("be-memory"), "0");
  EXPECT_EQ(api.taint(), "none");
  now_s += 1;
  publisher.turn(with(10));
  EXPECT_EQ(api.amount(), "10000");
  EXPECT_THAT(said, testing::Contains("berthd does not run; best-effort work gets nothing meanwhile"));
  EXPECT_THAT(said, testing::Contains("berthd publishes its state again"));
}

TEST_F(KubernetesPublisher, PublishesToANodeThatWasMadeAnew) {
  Publisher publisher = make();
  publisher.turn(with(10, kClosed));
  const json fresh = model::json_of(
      R"({"kind":"Node","metadata":{"name":"n1","uid":"u-2","resourceVersion":"0"},"spec":{},"status":{"capacity":{},"allocatable":{}}})");
  api.node = fresh;
  turn_until(publisher, 1061, with(10, kClosed));
  EXPECT_EQ(api.amount(), "10000");
  EXPECT_EQ(api.taint(), "cpu");
  EXPECT_THAT(said, testing::Contains(HasSubstr("made anew")));
}

TEST_F(KubernetesPublisher, AnotherWritersChangeIsTakenInAtOnce) {
  Publisher publisher = make();
  int changes = 0;
  api.then = [&] {
    if (++changes > 1) return;
    api.node["spec"]["taints"] = json::array({{{"key", "other"}, {"effect", "NoSchedule"}}});
    ++api.version;
  };
  EXPECT_TRUE(publisher.turn(with(10, kClosed)));
  EXPECT_EQ(api.taint(), "cpu");
  EXPECT_EQ(api.node["spec"]["taints"].size(), 2U);
  EXPECT_EQ(api.paths.size(), 4U);
}

TEST_F(KubernetesPublisher, EndlessConflictsEndInABackoff) {
  Publisher publisher = make();
  api.instead = [](const std::string&) { return FakeApi::refusal(409); };
  EXPECT_FALSE(publisher.turn(with(10)));
  EXPECT_EQ(api.paths.size(), 3U);
  EXPECT_LE(turn_until(publisher, 1600, with(10)), 3U * 20);
  EXPECT_THAT(said, ElementsAre(HasSubstr("the API server answers 409: no")));
}

TEST_F(KubernetesPublisher, BacksOffWithJitterAndSaysItOnce) {
  Publisher publisher = make();
  api.instead = [](const std::string&) { return FakeApi::fault("connect"); };
  std::vector<double> waits;
  for (double last_s = now_s; waits.size() < 8;) {
    while (publisher.turn(with(10))) now_s += 0.25;
    waits.push_back(now_s - last_s);
    last_s = now_s;
  }
  // Between half and the whole of 1, 2, 4, ... 60 s; random() is one half.
  EXPECT_THAT(waits, ElementsAre(0, 0.75, 1.5, 3, 6, 12, 24, 45));
  EXPECT_THAT(said, ElementsAre(HasSubstr("at connect")));
  api.instead = nullptr;
  turn_until(publisher, now_s + 60, with(10));
  EXPECT_EQ(api.amount(), "10000");
  EXPECT_THAT(said, testing::Contains("published again after 8 failed attempts"));
}

TEST_F(KubernetesPublisher, WaitsAsLongAsTheServerAsks) {
  Publisher publisher = make();
  api.instead = [](const std::string&) { return FakeApi::refusal(429, 300); };
  publisher.turn(with(10));
  // 300 s, and up to half of that again, so that hosts do not come back together.
  EXPECT_EQ(turn_until(publisher, 1375, silent()), 0U);
  EXPECT_EQ(turn_until(publisher, 1376, with(10)), 1U);
}

TEST_F(KubernetesPublisher, DoesNotSayThatItTriesAgainIfItDoesNot) {
  api.instead = [](const std::string&) { return FakeApi::fault("connect"); };
  EXPECT_FALSE(make({.once = true}).turn(with(10)));
  EXPECT_FALSE(make().turn(with(10)));
  EXPECT_THAT(said, ElementsAre("cannot publish: at connect",
                                "cannot publish, and tries again, 60 s apart at most: at connect"));
}

TEST_F(KubernetesPublisher, SaysEachChangeOfTheCause) {
  Publisher publisher = make();
  for (const int status : {500, 500, 403, 403, 401, 404, 422}) {
    api.instead = [status](const std::string&) { return FakeApi::refusal(status); };
    EXPECT_FALSE(publisher.turn(with(10)));
    now_s += 60;
  }
  EXPECT_THAT(said, ElementsAre(HasSubstr("answers 500"),
                                HasSubstr("credentials are not enough: see the manifest rbac.yaml; a service "
                                          "account must be in the namespace berth-kube"),
                                HasSubstr("credentials are refused"), HasSubstr("is the node registered"),
                                HasSubstr("the domain must be the one in rbac.yaml, and the token or the "
                                          "certificate must be of this node")));
}

TEST_F(KubernetesPublisher, ARefusedTaintDoesNotKeepTheAmountsBack) {
  Publisher publisher = make();
  api.instead = [](const std::string& path) {
    return path.ends_with("/status") ? std::optional<Answer>() : FakeApi::refusal(403);
  };
  EXPECT_FALSE(publisher.turn(with(10, kClosed)));
  EXPECT_EQ(api.amount(), "10000");
  EXPECT_EQ(api.taint(), "none");
  api.instead = nullptr;
  turn_until(publisher, 1002, with(10, kClosed));
  EXPECT_EQ(api.taint(), "cpu");
}

TEST_F(KubernetesPublisher, AnAnswerThatIsNoNodeIsAFailure) {
  Publisher publisher = make();
  api.instead = [](const std::string&) {
    return Answer{.status = 200, .body = "<html>", .retry_after_s = {}, .fault_kind = {}, .fault = {}};
  };
  EXPECT_FALSE(publisher.turn(with(10)));
  EXPECT_THAT(said, ElementsAre(HasSubstr("cannot read the API server's answer")));
}

TEST_F(KubernetesPublisher, WithdrawsAllOfItsOwn) {
  Publisher publisher = make();
  api.node["status"]["allocatable"]["cpu"] = "8";
  publisher.turn(with(10, kClosed));
  EXPECT_TRUE(publisher.withdraw());
  EXPECT_EQ(api.amount(), "none");
  EXPECT_EQ(api.taint(), "none");
  EXPECT_THAT(api.node["status"]["capacity"], IsEmpty());
  EXPECT_EQ(api.node["status"]["allocatable"]["cpu"], "8");
  api.instead = [](const std::string&) { return FakeApi::fault("timeout"); };
  EXPECT_FALSE(publisher.withdraw());
  EXPECT_THAT(said, testing::Contains(HasSubstr("call `berth-kube --withdraw` once the API server answers")));
}

TEST_F(KubernetesPublisher, WithdrawsUntilItSucceeds) {
  Publisher publisher = make();
  publisher.turn(with(10));
  said.clear();
  int failures = 0;
  api.instead = [&failures](const std::string&) {
    return ++failures > 5 ? std::optional<Answer>() : FakeApi::fault("connect");
  };
  const auto pause = [this](double seconds) {
    now_s += seconds;
    return true;
  };
  EXPECT_TRUE(publisher.withdraw(25, pause));
  EXPECT_EQ(api.amount(), "none");
  EXPECT_THAT(said, ElementsAre("cannot take the published figures back, and tries again: at connect",
                                "took the published figures back"));
}

TEST_F(KubernetesPublisher, GivesTheWithdrawalUpAfterItsTimeOrASignal) {
  Publisher publisher = make();
  publisher.turn(with(10));
  api.instead = [](const std::string&) { return FakeApi::fault("connect"); };
  const double begun_s = now_s;
  EXPECT_FALSE(publisher.withdraw(25, [this](double seconds) {
    now_s += seconds;
    return true;
  }));
  EXPECT_LT(now_s, begun_s + 25);
  EXPECT_GT(now_s, begun_s + 20);
  EXPECT_THAT(said.back(), HasSubstr("They stay on the node n1, and become wrong"));
  const std::size_t before = api.paths.size();
  EXPECT_FALSE(publisher.withdraw(25, [](double) { return false; }));
  EXPECT_EQ(api.paths.size(), before + 1);
}

}  // namespace
}  // namespace berth::kubernetes
