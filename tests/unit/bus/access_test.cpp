// SPDX-License-Identifier: Apache-2.0
// The rights of users to change things, and the answers to users without them.
#include "daemon/serve/polkit.h"
#include "fixture.h"
#include "tests/paths.h"

#include <atomic>
#include <limits>
#include <map>
#include <string>

#include <unistd.h>

namespace berth::test {

using Access = BusServiceTest;
using Settings = std::map<std::string, std::string>;

constexpr const char* kWeb = "system.slice/web@1.service";

TEST_F(Access, RootChangesWithoutPolkit) {
  const Outcome outcome = with_client([] { return Client().change("SetMode", std::string("enforce")); });
  EXPECT_EQ(outcome.error_name, "") << outcome.text;
  EXPECT_EQ(control_.mode_now, "enforce");
}

TEST_F(Access, EveryChangeReachesTheDaemon) {
  with_client([] {
    Client client;
    client.change("SetWorkload", std::string(kWeb), Settings{{"vcpus", "2"}});
    client.change("Restore");
    return 0;
  });
  EXPECT_EQ(control_.settings[kWeb], (Settings{{"vcpus", "2"}}));
  EXPECT_EQ(control_.restores, 1);
}

TEST_F(Access, OthersReadWithoutAsking) {
  const Outcome outcome = with_client_as(kNobody, [] { return Client().change("GetStatus"); });
  EXPECT_EQ(outcome.error_name, "") << outcome.text;
  EXPECT_EQ(outcome.text, control_.status_json());
}

TEST_F(Access, OthersAreRefusedWhereThereIsNoPolkit) {
  const Outcome outcome =
      with_client_as(kNobody, [] { return Client().change("SetMode", std::string("enforce")); });
  EXPECT_EQ(outcome.error_name, bus::kAccessDenied);
  EXPECT_NE(outcome.text.find("only root"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("polkit"), std::string::npos) << outcome.text;
  EXPECT_EQ(control_.mode_now, "observe");
}

TEST_F(Access, EveryChangeIsRefusedToOthers) {
  const auto outcomes = with_client_as(kNobody, [] {
    Client client;
    return std::vector<Outcome>{client.change("SetMode", std::string("enforce")),
                                client.change("SetWorkload", std::string(kWeb), Settings{{"vcpus", "2"}}),
                                client.change("Restore"),
                                client.change("ImportProfiles", std::string("{}")),
                                client.change("ForgetProfile", std::string("web")),
                                client.change("Reload"),
                                client.change("Blame", std::string("web")),
                                client.change("Admit", std::string("{}"), 0.0),
                                client.change("CancelReservation", std::string("job"))};
  });
  EXPECT_TRUE(control_.cancelled.empty());
  EXPECT_TRUE(control_.asked.empty());
  EXPECT_TRUE(control_.blamed.empty());
  EXPECT_TRUE(control_.imported.empty());
  EXPECT_TRUE(control_.forgotten.empty());
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.error_name, bus::kAccessDenied) << outcome.text;
  EXPECT_EQ(control_.mode_now, "observe");
  EXPECT_TRUE(control_.settings.empty());
  EXPECT_EQ(control_.restores, 0);
}

TEST_F(Access, PolkitIsAskedAboutTheSenderAndTheAction) {
  auto polkit = FakePolkit::start(FakePolkit::Answer::yes);
  const auto [outcome, sender] = with_client_as(kNobody, [] {
    Client client;
    const Outcome answered = client.change("SetMode", std::string("enforce"));
    return std::pair(answered, std::string(client.connection().getUniqueName()));
  });
  EXPECT_EQ(outcome.error_name, "") << outcome.text;
  EXPECT_EQ(control_.mode_now, "enforce");
  ASSERT_EQ(polkit->questions().size(), 1U);
  const FakePolkit::Question question = polkit->questions().front();
  EXPECT_EQ(question.subject_kind, "system-bus-name");
  EXPECT_EQ(question.subject_name, sender);
  EXPECT_EQ(question.action, "org.berth.node1.manage");
  EXPECT_EQ(question.flags, 0U);
}

TEST_F(Access, AdmissionHasAnActionOfItsOwn) {
  auto polkit = FakePolkit::start(FakePolkit::Answer::yes);
  const Outcome outcome =
      with_client_as(kNobody, [] { return Client().change("Admit", std::string("{\"vcpus\": 1}"), 30.0); });
  EXPECT_EQ(outcome.text, control_.admission) << outcome.error_name;
  ASSERT_EQ(polkit->questions().size(), 1U);
  EXPECT_EQ(polkit->questions().front().action, "org.berth.node1.admit");
  ASSERT_EQ(control_.asked.size(), 1U);
  EXPECT_EQ(control_.asked[0], std::pair(std::string("{\"vcpus\": 1}"), 30.0));
}

TEST_F(Access, WhoMayAskForAPlaceMayGiveItUp) {
  auto polkit = FakePolkit::start(FakePolkit::Answer::yes);
  const auto outcomes = with_client_as(kNobody, [] {
    Client client;
    return std::vector<Outcome>{client.change("CancelReservation", std::string("job")),
                                client.change("CancelReservation", std::string("other")),
                                client.change("CancelReservation", std::string(4097, 'x'))};
  });
  EXPECT_EQ(outcomes[0].text, "d-0123456789ab") << outcomes[0].error_name;
  EXPECT_EQ(outcomes[1].error_name, bus::kNotFound);
  EXPECT_EQ(outcomes[2].error_name, bus::kInvalidInput);
  EXPECT_EQ(control_.cancelled, std::vector<std::string>{"job"});
  ASSERT_EQ(polkit->questions().size(), 2U);
  EXPECT_EQ(polkit->questions().front().action, "org.berth.node1.admit");
}

TEST_F(Access, ProfilesAreReadByEverybodyAndChangedByManagers) {
  const auto polkit = FakePolkit::start(FakePolkit::Answer::yes);
  const auto [read, outcomes] = with_client_as(kNobody, [] {
    Client client;
    const std::string both = client.get("GetProfiles") + client.get("GetModels");
    return std::pair(both, std::vector<Outcome>{client.change("ImportProfiles", std::string("{}")),
                                                client.change("ForgetProfile", std::string("web")),
                                                client.change("ForgetProfile", std::string("other")),
                                                client.change("ImportProfiles", std::string(524289, 'x')),
                                                client.change("ForgetProfile", std::string(4097, 'x'))});
  });
  EXPECT_EQ(read, control_.profiles_json() + control_.models_json());
  EXPECT_EQ(outcomes[0].error_name, "") << outcomes[0].text;
  EXPECT_EQ(outcomes[1].error_name, "") << outcomes[1].text;
  EXPECT_EQ(outcomes[2].error_name, bus::kNotFound);
  EXPECT_EQ(outcomes[3].error_name, bus::kInvalidInput);
  EXPECT_EQ(outcomes[4].error_name, bus::kInvalidInput);
  EXPECT_EQ(control_.imported, std::vector<std::string>{"{}"});
  EXPECT_EQ(control_.forgotten, std::vector<std::string>{"web"});
  ASSERT_EQ(polkit->questions().size(), 3U);
  EXPECT_EQ(polkit->questions().front().action, "org.berth.node1.manage");
}

TEST_F(Access, EverybodyMaySeeForWhomAPlaceIsKept) {
  const std::string shown = with_client_as(kNobody, [] { return Client().get("GetReservations"); });
  EXPECT_EQ(shown, control_.reservations);
}

TEST_F(Access, ARequestThatIsNoneOrTooLongIsRefused) {
  const auto outcomes = with_client([] {
    Client client;
    return std::vector<Outcome>{client.change("Admit", std::string("no"), 0.0),
                                client.change("Admit", std::string(200'000, '{'), 0.0)};
  });
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.error_name, bus::kInvalidInput) << outcome.text;
  EXPECT_TRUE(control_.asked.empty());
}

TEST_F(Access, PolkitMayAskForAPasswordOnlyIfTheCallAllowsIt) {
  auto polkit = FakePolkit::start(FakePolkit::Answer::yes);
  with_client_as(kNobody, [] { return Client().change_interactively("SetMode", std::string("enforce")); });
  ASSERT_EQ(polkit->questions().size(), 1U);
  EXPECT_EQ(polkit->questions().front().flags, 1U);
}

TEST_F(Access, PolkitsNoIsARefusal) {
  auto polkit = FakePolkit::start(FakePolkit::Answer::no);
  const Outcome outcome = with_client_as(kNobody, [] { return Client().change("Restore"); });
  EXPECT_EQ(outcome.error_name, bus::kAccessDenied) << outcome.text;
  EXPECT_EQ(control_.restores, 0);
}

TEST_F(Access, AMissingPasswordIsItsOwnError) {
  auto polkit = FakePolkit::start(FakePolkit::Answer::challenge);
  const Outcome outcome = with_client_as(kNobody, [] { return Client().change("Reload"); });
  EXPECT_EQ(outcome.error_name, bus::kInteractionRequired) << outcome.text;
}

TEST_F(Access, RootIsNotHeldUpByASilentPolkit) {
  auto polkit = FakePolkit::start(FakePolkit::Answer::never);
  const Outcome outcome = with_client([] { return Client().change("SetMode", std::string("enforce")); });
  EXPECT_EQ(outcome.error_name, "") << outcome.text;
  EXPECT_TRUE(polkit->questions().empty());
}

TEST_F(Access, AClientThatLeavesWhilePolkitThinksDisturbsNobody) {
  auto polkit = FakePolkit::start(FakePolkit::Answer::never);
  with_client_as(kNobody, [] {
    Client client;
    auto manager = client.proxy(bus::kManagerPath);
    manager->callMethodAsync("SetMode")
        .onInterface(kManagerInterface)
        .withArguments(std::string("enforce"))
        .uponReplyInvoke([](bus::ReplyError) {});
    client.pump([tries = 0]() mutable { return ++tries > 3; });
    return 0;
  });
  serve_until([&] { return polkit->questions().size() == 1; });
  polkit->release(false);
  const std::string status = with_client([] { return Client().get("GetStatus"); });
  EXPECT_EQ(status, control_.status_json());
  EXPECT_EQ(service_->link(), daemon::Link::up);
  EXPECT_EQ(control_.mode_now, "observe");
}

TEST_F(Access, ReadsAreAnsweredWhilePolkitThinks) {
  auto polkit = FakePolkit::start(FakePolkit::Answer::never);
  auto waiting = std::async(std::launch::async, [] {
    become(kNobody);
    return Client().change("SetMode", std::string("enforce"));
  });
  serve_until([&] { return polkit->questions().size() == 1; });
  EXPECT_EQ(with_client([] { return Client().get("GetStatus"); }), control_.status_json());
  polkit->release(true);
  serve_until([&] { return waiting.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
  EXPECT_EQ(waiting.get().error_name, "");
  EXPECT_EQ(control_.mode_now, "enforce");
}

TEST_F(Access, OneUsersQuestionsAreLimitedAndKeepNobodyFromTheirs) {
  constexpr std::size_t kAllowed = daemon::Polkit::kMaxPerUser;
  constexpr std::size_t kCalls = kAllowed + 5;
  constexpr uid_t kSomebodyElse = 1;
  auto polkit = FakePolkit::start(FakePolkit::Answer::never);
  std::atomic<std::size_t> refused = 0;
  std::atomic<std::size_t> granted = 0;
  auto flood = std::async(std::launch::async, [&] {
    become(kNobody);
    Client client;
    auto manager = client.proxy(bus::kManagerPath);
    for (std::size_t i = 0; i < kCalls; ++i) {
      manager->callMethodAsync("SetMode")
          .onInterface(kManagerInterface)
          .withArguments(std::string("enforce"))
          .uponReplyInvoke([&](bus::ReplyError error) {
            if (!error) ++granted;
            if (error && error->getName() == bus::kLimitsExceeded) ++refused;
          });
    }
    return client.pump([&] { return granted + refused == kCalls; });
  });
  serve_until([&] { return refused == kCalls - kAllowed && polkit->questions().size() == kAllowed; });
  EXPECT_EQ(granted, 0U);
  // Another user is asked about, and root served.
  auto other = std::async(std::launch::async, [] {
    become(kSomebodyElse);
    return Client().change("SetMode", std::string("enforce"));
  });
  serve_until([&] { return polkit->questions().size() == kAllowed + 1; });
  EXPECT_EQ(with_client([] { return Client().change("Restore"); }).error_name, "");
  polkit->release(true);
  const auto ready = [](const auto& future) {
    return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  };
  serve_until([&] { return ready(flood) && ready(other); });
  EXPECT_TRUE(flood.get());
  EXPECT_EQ(other.get().error_name, "");
  EXPECT_EQ(granted, kAllowed);
}

TEST_F(Access, QuestionsOfAllUsersAreLimitedAndKeepNobodyFromRoot) {
  constexpr std::size_t kEach = daemon::Polkit::kMaxPerUser;
  constexpr std::size_t kUsers = daemon::Polkit::kMaxPending / kEach;
  auto polkit = FakePolkit::start(FakePolkit::Answer::never);
  std::vector<std::future<bool>> users;
  for (std::size_t user = 1; user <= kUsers; ++user) {
    users.push_back(std::async(std::launch::async, [user] {
      become(static_cast<uid_t>(user));
      Client client;
      auto manager = client.proxy(bus::kManagerPath);
      std::size_t granted = 0;
      for (std::size_t i = 0; i < kEach; ++i) {
        manager->callMethodAsync("SetMode")
            .onInterface(kManagerInterface)
            .withArguments(std::string("enforce"))
            .uponReplyInvoke([&granted](bus::ReplyError error) { granted += error ? 0U : 1U; });
      }
      return client.pump([&granted] { return granted == kEach; });
    }));
  }
  serve_until([&] { return polkit->questions().size() == daemon::Polkit::kMaxPending; });
  const auto change = [] { return Client().change("SetMode", std::string("enforce")); };
  EXPECT_EQ(with_client_as(kNobody, change).error_name, bus::kLimitsExceeded);
  EXPECT_EQ(with_client(change).error_name, "");
  polkit->release(true);
  for (auto& user : users) {
    serve_until([&] { return user.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
    EXPECT_TRUE(user.get());
  }
  EXPECT_EQ(polkit->questions().size(), daemon::Polkit::kMaxPending);
}

TEST_F(Access, WhatIsTooLongIsRefusedBeforePolkitIsAsked) {
  auto polkit = FakePolkit::start(FakePolkit::Answer::never);
  const auto outcomes = with_client_as(kNobody, [] {
    Client client;
    const std::string longest(4097, 'x');
    Settings many;
    for (int i = 0; i <= 64; ++i) many[std::to_string(i)] = "1";
    return std::vector<Outcome>{client.change("SetMode", longest),
                                client.change("SetWorkload", longest, Settings{}),
                                client.change("SetWorkload", std::string(kWeb), Settings{{longest, "2"}}),
                                client.change("SetWorkload", std::string(kWeb), Settings{{"vcpus", longest}}),
                                client.change("SetWorkload", std::string(kWeb), many),
                                client.change("ReportProgress", longest, 0.5),
                                client.change("Evict", longest),
                                client.change("Explain", longest)};
  });
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.error_name, bus::kInvalidInput) << outcome.text;
  EXPECT_TRUE(polkit->questions().empty());
}

TEST_F(Access, ErrorsHaveTheirNames) {
  const auto outcomes = with_client([] {
    Client client;
    return std::vector<Outcome>{
        client.change("SetMode", std::string("panic")),
        client.change("SetWorkload", std::string("no/such"), Settings{{"vcpus", "2"}}),
        client.change("Reload"), client.change("Evict", std::string(kWeb))};
  });
  EXPECT_EQ(outcomes[3].error_name, bus::kRefused);
  EXPECT_NE(outcomes[3].text.find("latency-sensitive"), std::string::npos);
  EXPECT_EQ(outcomes[0].error_name, bus::kInvalidInput);
  EXPECT_EQ(outcomes[0].text, "there is no mode \"panic\"");
  EXPECT_EQ(outcomes[1].error_name, bus::kNotFound);
  EXPECT_EQ(outcomes[2].error_name, bus::kFailed);
  EXPECT_EQ(outcomes[2].text, "the disk is on fire");
}

Outcome report(const std::string& workload, double fraction) {
  return Client().change("ReportProgress", workload, fraction);
}

TEST_F(Access, AProcessSpeaksForTheWorkloadItRunsInWithoutPolkit) {
  auto polkit = FakePolkit::start(FakePolkit::Answer::no);
  control_.homes[{getpid(), kNobody}] = kWeb;
  const Outcome outcome = with_client_as(kNobody, [] { return report(kWeb, 0.25); });
  EXPECT_EQ(outcome.error_name, "") << outcome.text;
  EXPECT_EQ(control_.progress[kWeb], 0.25);
  EXPECT_TRUE(polkit->questions().empty());
}

TEST_F(Access, NobodyNeedsToKnowTheNameOfHisOwnWorkload) {
  control_.homes[{getpid(), kNobody}] = kWeb;
  EXPECT_EQ(with_client_as(kNobody, [] { return report("", 0.5); }).error_name, "");
  EXPECT_EQ(control_.progress[kWeb], 0.5);
  EXPECT_EQ(with_client([] { return report("", 0.6); }).error_name, bus::kNotFound);  // root runs elsewhere
  control_.homes[{getpid(), 0}] = kWeb;
  EXPECT_EQ(with_client([] { return report("", 0.7); }).error_name, "");
  EXPECT_EQ(control_.progress[kWeb], 0.7);
}

TEST_F(Access, WhoRunsInNoWorkloadIsTold) {
  const Outcome outcome = with_client_as(kNobody, [] { return report("", 0.5); });
  EXPECT_EQ(outcome.error_name, bus::kNotFound);
  EXPECT_NE(outcome.text.find("runs in no workload"), std::string::npos) << outcome.text;
}

TEST_F(Access, OnesOwnWorkloadIsNoKeyToAnother) {
  control_.add("system.slice/other.service");
  control_.homes[{getpid(), kNobody}] = "system.slice/other.service";
  const Outcome outcome = with_client_as(kNobody, [] { return report(kWeb, 0.25); });
  EXPECT_EQ(outcome.error_name, bus::kAccessDenied);
  EXPECT_TRUE(control_.progress.empty());
}

TEST_F(Access, AProcessOfAnotherUserIsAnother) {
  control_.homes[{getpid(), kNobody - 1}] = kWeb;
  EXPECT_EQ(with_client_as(kNobody, [] { return report(kWeb, 0.25); }).error_name, bus::kAccessDenied);
  EXPECT_TRUE(control_.progress.empty());
}

TEST_F(Access, PolkitIsAskedWhetherStrangersMayReport) {
  auto polkit = FakePolkit::start(FakePolkit::Answer::yes);
  EXPECT_EQ(with_client_as(kNobody, [] { return report(kWeb, 0.25); }).error_name, "");
  EXPECT_EQ(control_.progress[kWeb], 0.25);
  ASSERT_EQ(polkit->questions().size(), 1U);
  EXPECT_EQ(polkit->questions().front().action, "org.berth.node1.report-progress");
}

TEST_F(Access, RootReportsOfAnyWorkload) {
  auto polkit = FakePolkit::start(FakePolkit::Answer::never);
  EXPECT_EQ(with_client([] { return report(kWeb, 1); }).error_name, "");
  EXPECT_EQ(control_.progress[kWeb], 1);
  EXPECT_EQ(with_client([] { return report("no/such", 1); }).error_name, bus::kNotFound);
}

TEST_F(Access, AProgressThatIsNoneIsInvalid) {
  for (const double bad : {-0.1, 1.1, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_EQ(with_client([bad] { return report(kWeb, bad); }).error_name, bus::kInvalidInput) << bad;
  }
  EXPECT_TRUE(control_.progress.empty());
}

TEST_F(Access, EverybodyMayAskWhy) {
  const Outcome outcome =
      with_client_as(kNobody, [] { return Client().change("Explain", std::string(kWeb)); });
  EXPECT_EQ(outcome.error_name, "") << outcome.text;
  EXPECT_EQ(outcome.text, control_.explain_json(kWeb).value());
  EXPECT_EQ(with_client([] { return Client().change("Explain", std::string("no/such")); }).error_name,
            bus::kNotFound);
}

TEST_F(Access, LogLevelIsForRootAlone) {
  const auto set = [] {
    Client client;
    try {
      client.proxy(bus::kLogControlPath)
          ->setProperty("LogLevel")
          .onInterface("org.freedesktop.LogControl1")
          .toValue(std::string("debug"));
    } catch (const sdbus::Error& error) {
      return std::string(error.getName());
    }
    return std::string();
  };
  EXPECT_EQ(with_client_as(kNobody, set), bus::kAccessDenied);
  EXPECT_EQ(control_.level, "info");
  EXPECT_EQ(with_client(set), "");
  EXPECT_EQ(control_.level, "debug");
}

TEST_F(Access, LogLevelsGoByTheirSyslogNames) {
  const auto set = [](const char* level) {
    return [level] {
      Client client;
      auto log = client.proxy(bus::kLogControlPath);
      try {
        log->setProperty("LogLevel").onInterface("org.freedesktop.LogControl1").toValue(std::string(level));
      } catch (const sdbus::Error& error) {
        return std::string(error.getName());
      }
      const sdbus::Variant now = log->getProperty("LogLevel").onInterface("org.freedesktop.LogControl1");
      return now.get<std::string>();
    };
  };
  EXPECT_EQ(with_client(set("err")), "err");
  EXPECT_EQ(control_.level, "error");
  EXPECT_EQ(with_client(set("notice")), "info");
  EXPECT_EQ(with_client(set("emerg")), "crit");
  EXPECT_EQ(with_client(set("loud")), bus::kInvalidInput);
  EXPECT_EQ(control_.level, "critical");
}

TEST_F(Access, PolkitIsSeenComingAndGoing) {
  EXPECT_TRUE(service_->polkit_problem()) << "this bus has none";
  {
    auto polkit = FakePolkit::start(FakePolkit::Answer::yes);
    serve_until([&] { return !service_->polkit_problem(); });
    service_.reset();
    start_service();
    EXPECT_FALSE(service_->polkit_problem()) << "it was there before";
  }
  serve_until([&] { return service_->polkit_problem().has_value(); });
  EXPECT_NE(service_->polkit_problem()->find("org.freedesktop.PolicyKit1"), std::string::npos);
}

TEST_F(Access, PolkitThatTheBusCanStartIsThere) {
  service_.reset();
  bus_.reset();
  bus_ = std::make_unique<PrivateBus>(BERTH_BUS_DIR "/org.berth.Node1.conf", "org.freedesktop.PolicyKit1");
  start_service();
  EXPECT_FALSE(service_->polkit_problem());
}

}  // namespace berth::test
