// SPDX-License-Identifier: Apache-2.0
// Reads, properties, signals, and the life of the connection.
#include "daemon/serve/bus_service_workloads.h"
#include "fixture.h"
#include "tests/paths.h"

#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <manager_proxy.h>
#include <workload_proxy.h>

namespace berth::test {

using Service = BusServiceTest;

constexpr const char* kWeb = "system.slice/web@1.service";
constexpr const char* kDb = "system.slice/db.service";

namespace {

// A change that berth made, as the decision log has it.
daemon::LogEntry change(const std::string& kind, const std::string& workload, const std::string& attribute,
                        const std::string& before, const std::string& after, const std::string& decision,
                        const std::string& reason = "") {
  daemon::LogEntry entry;
  entry.decision = decision;
  entry.kind = kind;
  entry.workload = workload;
  entry.attribute = attribute;
  entry.old_value = before;
  entry.new_value = after;
  entry.reason = reason;
  return entry;
}

using Changes = std::map<bus::PropertyName, sdbus::Variant>;

// Hears everything the manager says.
class Ear final : public sdbus::ProxyInterfaces<org::berth::Node1::Manager_proxy, sdbus::Properties_proxy,
                                                sdbus::ObjectManager_proxy> {
 public:
  explicit Ear(Client& client)
      : ProxyInterfaces(client.connection(), bus::ServiceName{bus::kServiceName},
                        sdbus::ObjectPath{bus::kManagerPath}) {
    registerProxy();
  }
  ~Ear() { unregisterProxy(); }

  std::vector<std::string> heard;

 private:
  void onPinned(const std::string& workload, const std::string& cpus, const std::string& decision) override {
    heard.push_back("pinned " + workload + " " + cpus + " " + decision);
  }
  void onUnpinned(const std::string& workload, const std::string& decision) override {
    heard.push_back("unpinned " + workload + " " + decision);
  }
  void onQuotaChanged(const std::string& workload, const std::string& attribute, const std::string& before,
                      const std::string& after, const std::string& decision) override {
    heard.push_back(workload + " " + attribute + " " + before + " -> " + after + " " + decision);
  }
  void onEvicted(const std::string& workload, const std::string& step, const uint64_t& memory_bytes,
                 const std::string& decision) override {
    heard.push_back("evicted " + workload + " " + step + " " + std::to_string(memory_bytes) + " " + decision);
  }
  void onStragglerFound(const std::string& workload, const std::string& reason,
                        const std::string& decision) override {
    heard.push_back("straggler " + workload + " " + reason + " " + decision);
  }
  void onRelocationNeeded(const std::string& workload, const double& cpu_cores, const uint64_t& memory_bytes,
                          const std::string& decision) override {
    heard.push_back("relocate " + workload + " " + std::to_string(cpu_cores) + " " +
                    std::to_string(memory_bytes) + " " + decision);
  }
  void onSchedulingStateChanged(const std::string& resource, const std::string& before,
                                const std::string& after, const std::string& reason,
                                const std::string& decision) override {
    heard.push_back(resource + " " + before + " -> " + after + " " + reason + " " + decision);
  }
  void onDecided(const double& time, const std::map<std::string, std::string>& entry) override {
    std::string line = "decided " + std::to_string(time);
    for (const auto& [name, value] : entry) line += " " + name + "=" + value;
    heard.push_back(line);
  }
  void onPropertiesChanged(const bus::InterfaceName&, const Changes& changed,
                           const std::vector<bus::PropertyName>&) override {
    std::string line = "changed";
    for (const auto& [name, value] : changed) line += " " + name;
    heard.push_back(line);
  }
  void onInterfacesAdded(const sdbus::ObjectPath& path,
                         const std::map<bus::InterfaceName, Changes>& interfaces) override {
    heard.push_back("added " + path + " " + std::to_string(interfaces.size()) + " with " +
                    interfaces.begin()->second.at(bus::PropertyName{"Id"}).get<std::string>());
  }
  void onInterfacesRemoved(const sdbus::ObjectPath& path,
                           const std::vector<bus::InterfaceName>& interfaces) override {
    heard.push_back("removed " + path + " " + interfaces.front());
  }
};

class WorkloadEar final
    : public sdbus::ProxyInterfaces<org::berth::Node1::Workload_proxy, sdbus::Properties_proxy> {
 public:
  WorkloadEar(Client& client, const std::string& id)
      : ProxyInterfaces(client.connection(), bus::ServiceName{bus::kServiceName},
                        sdbus::ObjectPath{daemon::workload_path(id)}) {
    registerProxy();
  }
  ~WorkloadEar() { unregisterProxy(); }

  std::vector<std::vector<std::string>> heard;

 private:
  void onPropertiesChanged(const bus::InterfaceName&, const Changes& changed,
                           const std::vector<bus::PropertyName>&) override {
    std::vector<std::string> names;
    for (const auto& [name, value] : changed) names.push_back(name);
    heard.push_back(names);
  }
};

template <typename T>
T property(Client& client, const std::string& path, const char* interface, const char* name) {
  const sdbus::Variant value = client.proxy(path)->getProperty(name).onInterface(interface);
  return value.get<T>();
}

std::vector<std::string> managed_objects(Client& client) {
  std::map<sdbus::ObjectPath, std::map<std::string, std::map<std::string, sdbus::Variant>>> objects;
  client.proxy(bus::kManagerPath)
      ->callMethod("GetManagedObjects")
      .onInterface("org.freedesktop.DBus.ObjectManager")
      .storeResultsTo(objects);
  std::vector<std::string> ids;
  for (const auto& [path, interfaces] : objects) {
    const auto workload = interfaces.find(kWorkloadInterface);
    if (workload != interfaces.end()) ids.push_back(workload->second.at("Id").get<std::string>());
  }
  return ids;
}

}  // namespace

TEST_F(Service, ReadsAnswerWhatTheDaemonSays) {
  const auto replies = with_client([] {
    Client client;
    return std::vector<std::string>{client.get("GetWorkloads"),
                                    client.get("GetTopology"),
                                    client.get("GetSnapshot"),
                                    client.get("GetPlan"),
                                    client.change("GetLog", std::uint32_t{7}).text,
                                    client.get("GetMetrics")};
  });
  EXPECT_EQ(replies, (std::vector<std::string>{control_.workloads_json(), control_.topology_json(),
                                               control_.snapshot_json(), control_.plan_json(),
                                               control_.log_json(7), control_.metrics_text()}));
}

TEST_F(Service, TellsASnapshotSinceATime) {
  const auto ask = [this](double since) {
    return with_client([&] { return Client().change("GetSnapshotSince", since); });
  };
  control_.ticks = {"one", "two"};
  EXPECT_EQ(ask(1.5).text, "one");
  EXPECT_EQ(ask(0).text, "two");
  EXPECT_EQ(control_.asked_since, (std::vector<double>{1.5, 0}));
  for (const double wrong :
       {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
    EXPECT_EQ(ask(wrong).error_name, bus::kInvalidInput) << wrong;
  EXPECT_EQ(control_.asked_since.size(), 2U);
}

TEST_F(Service, FindsInTheLog) {
  using Filter = std::map<std::string, std::string>;
  const auto find = [this](const Filter& filter) {
    return with_client([&] { return Client().change("FindLog", filter, std::uint32_t{7}); });
  };
  control_.log_found = R"({"entries":["one"]})";
  const Filter all{{"since", "1.5"}, {"workload", "web"}, {"policy", "eviction"}, {"kind", "evict"}};
  EXPECT_EQ(find(all).text, control_.log_found);
  ASSERT_EQ(control_.searches.size(), 1U);
  EXPECT_EQ(control_.searches[0], std::pair(all, std::size_t{7}));
  for (const Filter& wrong : {Filter{{"colour", "red"}}, Filter{{"since", "noon"}}, Filter{{"since", "nan"}},
                              Filter{{"kind", ""}}, Filter{{"workload", std::string(100'000, 'x')}}}) {
    EXPECT_EQ(find(wrong).error_name, bus::kInvalidInput) << wrong.begin()->first;
  }
  Filter many;
  for (int i = 0; i < 100; ++i) many[std::to_string(i)] = "x";
  EXPECT_EQ(find(many).error_name, bus::kInvalidInput);
  EXPECT_EQ(control_.searches.size(), 1U);
}

TEST_F(Service, TellsEveryEntryOfTheLog) {
  std::atomic<bool> listening = false;
  auto ear = std::async(std::launch::async, [&listening] {
    Client client;
    Ear listener(client);
    listening = true;
    client.pump([&] { return listener.heard.size() >= 2; });
    return listener.heard;
  });
  serve_until([&] { return listening.load(); });
  daemon::LogEntry entry;
  entry.time = 1.5;
  entry.kind = "pin";
  entry.workload = kWeb;
  entry.result = "observed";
  service_->decided(entry);
  entry.reason = "\xff\n";
  entry.error = "broken";
  service_->decided(entry);
  serve_until([&] { return ear.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
  const std::string web = kWeb;
  EXPECT_EQ(ear.get(),
            (std::vector<std::string>{
                "decided 1.500000 kind=pin result=observed workload=" + web,
                "decided 1.500000 error=broken kind=pin reason=\\xff\\n result=observed workload=" + web}));
}

TEST_F(Service, AnExceptionInTheDaemonIsAnErrorReply) {
  control_.plan_throws = true;
  const Outcome outcome = with_client([] { return Client().change("GetPlan"); });
  EXPECT_EQ(outcome.error_name, bus::kFailed);
  EXPECT_EQ(outcome.text, "no plan today");
}

TEST_F(Service, ManagerPropertiesAreCurrent) {
  control_.counts_now = {.latency_sensitive = 3, .best_effort = 5, .left_alone = 1};
  const auto unknown_score = with_client([] {
    Client client;
    return property<double>(client, bus::kManagerPath, kManagerInterface, "ScoreNode");
  });
  EXPECT_TRUE(std::isnan(unknown_score));
  control_.score = 0.25;
  const auto [version, score, ls, be, pool] = with_client([] {
    Client client;
    return std::tuple(
        property<std::string>(client, bus::kManagerPath, kManagerInterface, "Version"),
        property<double>(client, bus::kManagerPath, kManagerInterface, "ScoreNode"),
        property<std::uint32_t>(client, bus::kManagerPath, kManagerInterface, "LatencySensitiveWorkloads"),
        property<std::uint32_t>(client, bus::kManagerPath, kManagerInterface, "BestEffortWorkloads"),
        property<std::string>(client, bus::kManagerPath, kManagerInterface, "BestEffortCPUs"));
  });
  EXPECT_EQ(version, "1.2.3");
  EXPECT_EQ(score, 0.25);
  EXPECT_EQ(ls, 3U);
  EXPECT_EQ(be, 5U);
  EXPECT_EQ(pool, "0-7");
}

TEST_F(Service, WorkloadFiguresNotKnownAreMarkedSo) {
  const auto [cores, memory, score] = with_client([] {
    Client client;
    const std::string path = daemon::workload_path(kWeb);
    return std::tuple(property<double>(client, path, kWorkloadInterface, "CPUCores"),
                      property<std::uint64_t>(client, path, kWorkloadInterface, "MemoryBytes"),
                      property<double>(client, path, kWorkloadInterface, "Score"));
  });
  EXPECT_TRUE(std::isnan(cores));
  EXPECT_EQ(memory, std::numeric_limits<std::uint64_t>::max());
  EXPECT_TRUE(std::isnan(score));
}

TEST_F(Service, ObjectManagerListsTheWorkloads) {
  control_.add(kDb);
  service_->workload_appeared(kDb);
  const auto ids = with_client([] {
    Client client;
    return managed_objects(client);
  });
  EXPECT_EQ(ids, (std::vector<std::string>{kDb, kWeb}));
}

TEST_F(Service, SignalsTellWhatChangedOnceAndInOrder) {
  const std::string path = daemon::workload_path(kDb);
  std::atomic<bool> listening = false;
  auto ear = std::async(std::launch::async, [&listening] {
    Client client;
    Ear listener(client);
    listening = true;
    client.pump([&] { return !listener.heard.empty() && listener.heard.back().starts_with("removed"); });
    return listener.heard;
  });
  serve_until([&] { return listening.load(); });

  control_.add(kDb);
  control_.counts_now.latency_sensitive = 1;
  service_->workload_appeared(kDb);
  service_->node_changed();
  service_->changed(change("pin", kDb, "cpuset.cpus", "", "0-3", "d-1"));
  service_->mode_changed();  // it did not
  settle();
  control_.mode_now = "enforce";
  control_.pool = "4-7";
  service_->mode_changed();
  service_->node_changed();
  settle();
  service_->changed(change("set-cpu-quota", kWeb, "cpu.max", "max 100000", "200000 100000", "d-3"));
  service_->changed(change("evict", kWeb, "terminate", "4096", "", "d-3"));
  service_->straggler_found({kWeb, "late", {}, "d-3"});
  service_->relocation_needed({kWeb, "too big", {1.5, 4096}, ""});
  settle();
  control_.said.memory = {.factor = 1.2, .state = model::SchedulingState::no_schedule};
  service_->changed(change("advertise", "", "memory", "schedule", "no-schedule", "d-4", "full"));
  service_->node_changed();
  settle();
  service_->changed(change("unpin", kDb, "cpuset.cpus", "0-3", "", "d-2"));
  control_.views.erase(kDb);
  service_->workload_vanished(kDb);
  serve_until([&] { return ear.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
  EXPECT_EQ(
      ear.get(),
      (std::vector<std::string>{
          "added " + path + " 1 with " + kDb, "pinned " + std::string(kDb) + " 0-3 d-1",
          "changed LatencySensitiveWorkloads", "changed BestEffortCPUs Mode",
          std::string(kWeb) + " cpu.max max 100000 -> 200000 100000 d-3",
          "evicted " + std::string(kWeb) + " terminate 4096 d-3",
          "straggler " + std::string(kWeb) + " late d-3", "relocate " + std::string(kWeb) + " 1.500000 4096 ",
          "memory schedule -> no-schedule full d-4", "changed MemoryFactor MemoryState",
          "unpinned " + std::string(kDb) + " d-2", "removed " + path + " org.berth.Node1.Workload"}));
}

// sd-bus refuses a string that is not UTF-8, or has a noncharacter, and the whole message with it. berth
// would take the bus for lost.
TEST_F(Service, TextThatTheBusRefusesIsEscapedAndDoesNotEndTheConnection) {
  const std::string hostile = "\xff\x1b[2J\xEF\xBF\xBE\xE2\x80\xAE";
  const std::string plain = "\\xff\\x1b[2J\\ufffe\\u202e";
  std::atomic<bool> listening = false;
  auto ear = std::async(std::launch::async, [&listening] {
    Client client;
    Ear listener(client);
    listening = true;
    client.pump([&] { return listener.heard.size() >= 3; });
    return listener.heard;
  });
  serve_until([&] { return listening.load(); });
  control_.add(kDb).left_alone_reason = hostile;
  service_->workload_appeared(kDb);
  service_->straggler_found({kWeb, hostile, {}, "d-3"});
  service_->changed(change("advertise", "", "memory", "schedule", "no-schedule", "d-4", hostile));
  serve_until([&] { return ear.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
  EXPECT_EQ(ear.get(), (std::vector<std::string>{"added " + daemon::workload_path(kDb) + " 1 with " + kDb,
                                                 "straggler " + std::string(kWeb) + " " + plain + " d-3",
                                                 "memory schedule -> no-schedule " + plain + " d-4"}));
  EXPECT_EQ(service_->link(), daemon::Link::up) << service_->problem();
  const auto reason = with_client([] {
    Client client;
    return property<std::string>(client, daemon::workload_path(kDb), kWorkloadInterface, "LeftAloneReason");
  });
  EXPECT_EQ(reason, plain);
}

TEST_F(Service, ARefusalIsEscapedAndShort) {
  control_.refusal = "\xff\n" + std::string(100'000, 'x') + " end";
  const Outcome outcome = with_client([] { return Client().change("Reload"); });
  EXPECT_EQ(outcome.error_name, bus::kFailed);
  EXPECT_TRUE(outcome.text.starts_with("\\xff\\nxxx") && outcome.text.ends_with("x end")) << outcome.text;
  EXPECT_LT(outcome.text.size(), 5000U);
}

TEST_F(Service, LimitsAreThereOrMarkedAsNone) {
  const std::string path = daemon::workload_path(kWeb);
  const auto limits = [&] {
    return with_client([&] {
      Client client;
      return std::tuple(property<double>(client, path, kWorkloadInterface, "CPUQuota"),
                        property<double>(client, path, kWorkloadInterface, "OriginalCPUQuota"),
                        property<std::string>(client, path, kWorkloadInterface, "CPUHeld"),
                        property<std::uint64_t>(client, path, kWorkloadInterface, "MemoryHigh"),
                        property<std::uint64_t>(client, path, kWorkloadInterface, "OriginalMemoryHigh"),
                        property<std::string>(client, path, kWorkloadInterface, "MemoryHeld"));
    });
  };
  constexpr auto kNone = std::numeric_limits<std::uint64_t>::max();
  const auto none = limits();
  EXPECT_TRUE(std::isnan(std::get<0>(none)) && std::isnan(std::get<1>(none)));
  EXPECT_EQ(std::get<3>(none), kNone);
  EXPECT_EQ(std::get<4>(none), kNone);
  auto& view = control_.views[kWeb];
  view.cpu_quota = 2.5;
  view.original_cpu_quota = 2;
  view.cpu_held = "extended";
  view.memory_high = 8192;
  view.memory_held = "lent";
  EXPECT_EQ(limits(), std::tuple(2.5, 2.0, std::string("extended"), 8192U, kNone, std::string("lent")));
}

TEST_F(Service, AWorkloadsChangesAreOneSignalATick) {
  std::atomic<bool> listening = false;
  auto ear = std::async(std::launch::async, [&listening] {
    Client client;
    WorkloadEar listener(client, kWeb);
    listening = true;
    client.pump([&] { return listener.heard.size() == 2; });
    return listener.heard;
  });
  serve_until([&] { return listening.load(); });

  control_.views[kWeb].cpu_cores = 1.5;  // measured figures are not announced
  service_->workload_changed(kWeb);
  settle();
  control_.views[kWeb].pinned_cpus = "0-3";
  service_->workload_changed(kWeb);
  control_.views[kWeb].vcpus = 2;
  service_->workload_changed(kWeb);
  settle();
  control_.views[kWeb].managed = false;
  control_.views[kWeb].left_alone_reason = "read-only";
  service_->workload_changed(kWeb);
  serve_until([&] { return ear.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
  EXPECT_EQ(ear.get(),
            (std::vector<std::vector<std::string>>{{"PinnedCPUs", "VCPUs"}, {"LeftAloneReason", "Managed"}}));
}

TEST_F(Service, ManyCallsAtOnceAreAllAnswered) {
  constexpr int kCalls = 3000;
  const int answered = with_client([] {
    Client client;
    auto manager = client.proxy(bus::kManagerPath);
    auto log = client.proxy(bus::kLogControlPath);
    int replies = 0;
    for (int i = 0; i < kCalls; ++i) {
      if (i % 100 == 0) {
        // Has the service make a blocking call of its own, into which other messages fall.
        log->callMethodAsync("Set")
            .onInterface("org.freedesktop.DBus.Properties")
            .withArguments(std::string("org.freedesktop.LogControl1"), std::string("LogLevel"),
                           sdbus::Variant{std::string("info")})
            .uponReplyInvoke([&replies](bus::ReplyError error) { replies += error ? 0 : 1; });
        continue;
      }
      manager->callMethodAsync("GetStatus")
          .onInterface(kManagerInterface)
          .uponReplyInvoke(
              [&replies](bus::ReplyError error, const std::string&) { replies += error ? 0 : 1; });
    }
    client.pump([&] { return replies == kCalls; });
    return replies;
  });
  EXPECT_EQ(answered, kCalls);
}

TEST_F(Service, AnIdleBusDoesNotWakeTheLoop) {
  with_client([] { return Client().get("GetStatus"); });
  // Messages that the client leaves behind may come late. After that the loop sleeps for 300 ms at a stretch.
  EXPECT_TRUE(eventually([this] { return sd_event_run(event_, 300'000) == 0; }));
}

TEST_F(Service, AThousandWorkloadsComeAndGo) {
  for (int i = 0; i < 1000; ++i) {
    const std::string id = "machine.slice/job-" + std::to_string(i) + ".scope";
    control_.add(id);
    service_->workload_appeared(id);
  }
  EXPECT_EQ(with_client([] { return Client().get("GetStatus"); }), control_.status_json());
  for (int i = 0; i < 1000; ++i) {
    const std::string id = "machine.slice/job-" + std::to_string(i) + ".scope";
    control_.views.erase(id);
    service_->workload_vanished(id);
  }
  EXPECT_EQ(with_client([] { return Client().get("GetStatus"); }), control_.status_json());
  EXPECT_EQ(service_->link(), daemon::Link::up);
}

TEST_F(Service, ALostBusIsNoticedAndAnotherOneServed) {
  bus_->stop();
  serve_until([&] { return service_->link() == daemon::Link::lost; });
  EXPECT_NE(service_->problem(), "");
  service_->changed(change("pin", kWeb, "cpuset.cpus", "", "0-3", "d-1"));
  service_->workload_vanished(kWeb);
  service_->mode_changed();

  bus_ = std::make_unique<PrivateBus>(BERTH_BUS_DIR "/org.berth.Node1.conf");
  start_service();
  EXPECT_EQ(with_client([] { return Client().get("GetStatus"); }), control_.status_json());
}

TEST_F(Service, TheLastSignalsGoOutBeforeTheServiceEnds) {
  constexpr std::size_t kSignals = 5000;  // more than a socket holds
  std::atomic<bool> listening = false;
  auto ear = std::async(std::launch::async, [&listening] {
    Client client;
    Ear listener(client);
    listening = true;
    client.pump([&] { return listener.heard.size() == kSignals; });
    return listener.heard.size();
  });
  serve_until([&] { return listening.load(); });
  for (std::size_t i = 0; i < kSignals; ++i)
    service_->changed(change("unpin", kWeb, "cpuset.cpus", "0-3", "", "d-" + std::to_string(i)));
  service_.reset();
  EXPECT_EQ(ear.get(), kSignals);
}

TEST_F(Service, ABusLostWhilePolkitThinksIsSurvived) {
  auto polkit = FakePolkit::start(FakePolkit::Answer::never);
  auto waiting = std::async(std::launch::async, [] {
    become(kNobody);
    return Client().change("SetMode", std::string("enforce"));
  });
  serve_until([&] { return polkit->questions().size() == 1; });
  bus_->stop();
  serve_until([&] { return service_->link() == daemon::Link::lost; });
  serve_until([&] { return waiting.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
  EXPECT_NE(waiting.get().error_name, "");
  EXPECT_EQ(control_.mode_now, "observe");
  service_.reset();
}

TEST_F(Service, WithoutABusStartSaysSo) {
  service_.reset();
  bus_->stop();
  const auto service = daemon::BusService::start(event_, control_);
  ASSERT_FALSE(service);
  EXPECT_EQ(service.error().kind(), model::ErrorKind::unavailable);
  EXPECT_NE(service.error().message().find("system bus"), std::string::npos) << service.error().message();
}

TEST_F(Service, ASecondDaemonIsToldThatTheNameIsTaken) {
  auto second = std::async(std::launch::async, problem_of_another);
  serve_until([&] { return second.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
  EXPECT_NE(second.get().find("does another berthd run"), std::string::npos);
}

TEST_F(Service, OnlyRootMayOwnTheName) {
  service_.reset();
  auto started = std::async(std::launch::async, [] {
    become(kNobody);
    return problem_of_another();
  });
  EXPECT_NE(started.get().find("does not let this user own org.berth.Node1"), std::string::npos);
}

TEST_F(Service, ASilentBusIsGivenUpInTimeAndHoldsUpNobody) {
  service_.reset();
  const SilentBus silent;
  std::unique_ptr<daemon::BusService> service;
  // Longer than a second is a wait for the bus, or a busy machine. Some of many tries tell these apart.
  EXPECT_TRUE(eventually([&] {
    const auto before = std::chrono::steady_clock::now();
    auto started = daemon::BusService::start(event_, control_);
    EXPECT_TRUE(started);
    if (!started) return false;
    service = std::move(*started);
    EXPECT_EQ(service->link(), daemon::Link::connecting);
    service->workload_vanished(kWeb);
    service->mode_changed();
    return std::chrono::steady_clock::now() - before < std::chrono::seconds(1);
  }));
  ASSERT_TRUE(service);
  serve_until([&] { return service->link() == daemon::Link::lost; });
  EXPECT_NE(service->problem().find("did not answer for 2 s"), std::string::npos) << service->problem();
}

TEST_F(Service, WhatHappensBeforeTheBusAnswersIsThereAfterwards) {
  service_.reset();
  auto service = daemon::BusService::start(event_, control_);
  ASSERT_TRUE(service) << service.error().message();
  control_.add(kDb);
  (*service)->workload_appeared(kDb);
  control_.views.erase(kWeb);
  (*service)->workload_vanished(kWeb);
  serve_until([&] { return (*service)->link() == daemon::Link::up; });
  const auto paths = with_client([] {
    Client client;
    return managed_objects(client);
  });
  EXPECT_EQ(paths, std::vector<std::string>{kDb});
}

TEST_F(Service, OnlyTheEscapedPathOfALivingWorkloadIsAnObject) {
  control_.add("web/a");
  service_->workload_appeared("web/a");
  const auto id_at = [this](const std::string& path) {
    return with_client([path] {
      Client client;
      try {
        return property<std::string>(client, path, kWorkloadInterface, "Id");
      } catch (const sdbus::Error& error) {
        return std::string(error.getName());
      }
    });
  };
  const std::string prefix = bus::kWorkloadPrefix;
  EXPECT_EQ(id_at(prefix + "/web_2fa"), "web/a");
  const std::string none = "org.freedesktop.DBus.Error.UnknownObject";
  for (const char* path : {"/web", "/web/a", "/web_2Fa", "/web_2fa/b", "/no_5fsuch", "/_"}) {
    EXPECT_EQ(id_at(prefix + path), none) << path;
  }
  control_.views.erase("web/a");
  service_->workload_vanished("web/a");
  EXPECT_EQ(id_at(prefix + "/web_2fa"), none);
}

}  // namespace berth::test
