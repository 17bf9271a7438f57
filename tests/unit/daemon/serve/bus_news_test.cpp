// SPDX-License-Identifier: Apache-2.0
// The signals that a listener on the bus gets, and its return after the bus was lost.
#include "daemon/daemon.h"
#include "tests/unit/daemon/fake_node.h"

#include <algorithm>
#include <cstddef>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace berth::daemon {
namespace {

struct Heard {
  std::vector<std::string> news;
  std::vector<LogEntry> decided;
  Link link = Link::up;
  std::optional<std::string> polkit_problem;
  int started = 0;
};

class Recorder final : public Listener {
 public:
  explicit Recorder(Heard& heard) : heard_(heard) {}
  Link link() const override { return heard_.link; }
  std::string problem() const override { return "the cable was cut"; }
  std::optional<std::string> polkit_problem() const override { return heard_.polkit_problem; }
  void workload_appeared(const std::string& id) override { heard_.news.push_back("appeared " + id); }
  void workload_vanished(const std::string& id) override { heard_.news.push_back("vanished " + id); }
  void workload_changed(const std::string& id) override { heard_.news.push_back("changed " + id); }
  void changed(const LogEntry& entry) override {
    const std::string decided = entry.decision.starts_with("d-") ? "" : " undecided";
    const std::string values = entry.attribute + " " + entry.old_value + " -> " + entry.new_value + decided;
    if (entry.kind == "advertise") {
      heard_.news.push_back(values);
    } else if (entry.kind == "evict") {
      heard_.news.push_back("evicted " + entry.workload + " " + entry.attribute + " " + entry.old_value +
                            " " + entry.decision);
    } else if (entry.attribute != "cpuset.cpus") {
      heard_.news.push_back(entry.workload + " " + values);
    } else if (entry.kind == "pin") {
      heard_.news.push_back("pinned " + entry.workload + " " + entry.new_value + decided);
    } else {
      heard_.news.push_back("unpinned " + entry.workload);
    }
  }
  void straggler_found(const StragglerNews& news) override {
    heard_.news.push_back("straggler " + news.workload + ": " + news.reason + " " + news.decision);
  }
  void relocation_needed(const StragglerNews& news) override {
    heard_.news.push_back("relocate " + news.workload + " " + news.decision);
  }
  void decided(const LogEntry& entry) override { heard_.decided.push_back(entry); }
  void mode_changed() override { heard_.news.emplace_back("mode"); }
  void node_changed() override { heard_.news.emplace_back("node"); }

 private:
  Heard& heard_;
};

class BusNewsTest : public testing::Test {
 protected:
  void start() {
    auto started = Daemon::start(node.options(), node.settings(), test::fake_clock([this] { return now; }));
    if (!started) throw std::runtime_error(started.error().message());
    daemon = std::move(*started);
    daemon->serve_bus([this](Control&) -> model::Result<std::unique_ptr<Listener>> {
      ++heard.started;
      if (!bus_there) return model::fail(model::ErrorKind::unavailable, "no bus here");
      heard.link = link;
      return std::make_unique<Recorder>(heard);
    });
  }
  nlohmann::json capability(const std::string& name) {
    const auto status = nlohmann::json::parse(daemon->control().status_json());
    for (const auto& item : status["capabilities"]) {
      if (item["name"] == name) return item;
    }
    return {};
  }
  std::vector<std::string> tick() {
    heard.news.clear();
    now += 1;
    daemon->tick();
    return heard.news;
  }

  test::FakeNode node;
  Heard heard;
  bool bus_there = true;
  Link link = Link::up;  // of a bus that was begun with
  std::unique_ptr<Daemon> daemon;
  double now = 1000;
};

using News = std::vector<std::string>;

TEST_F(BusNewsTest, AQuietTickIsNoNews) {
  node.add_group("batch/x");
  start();
  tick();
  EXPECT_EQ(tick(), News{});
  node.use_cpu("batch/x", 1e-6);  // little, however close the ticks are
  EXPECT_EQ(tick(), News{}) << "figures are not news";
}

TEST_F(BusNewsTest, WorkloadsThatComeGoAndChange) {
  start();
  tick();
  node.add_group("batch/x");
  ASSERT_TRUE(test::eventually([&] { return !tick().empty(); }));
  EXPECT_EQ(heard.news, (News{"appeared batch/x", "node"}));
  ASSERT_TRUE(daemon->control().set_workload("batch/x", {{"service", "shop"}}));
  EXPECT_EQ(tick(), News{"changed batch/x"});
  node.restart_group("batch/x");
  ASSERT_TRUE(test::eventually([&] { return !tick().empty(); }));
  EXPECT_EQ(heard.news, (News{"vanished batch/x", "appeared batch/x"}));
  node.remove_group("batch/x");
  ASSERT_TRUE(test::eventually([&] { return !tick().empty(); }));
  EXPECT_EQ(heard.news, (News{"vanished batch/x", "node"}));
}

TEST_F(BusNewsTest, PinsAndModes) {
  node.add_group("web/a");
  start();
  tick();
  heard.news.clear();
  ASSERT_TRUE(daemon->set_mode("enforce"));
  EXPECT_EQ(heard.news, News{"mode"});
  const auto news = tick();
  ASSERT_NE(node.cpus("web/a"), "");
  EXPECT_EQ(news, (News{"changed web/a", "pinned web/a " + node.cpus("web/a")}));
  EXPECT_EQ(daemon->control().workload("web/a")->pinned_cpus, node.cpus("web/a")) << "known when it is told";
  heard.news.clear();
  ASSERT_TRUE(daemon->set_mode("observe"));
  EXPECT_EQ(heard.news, (News{"changed web/a", "unpinned web/a", "mode"}));
}

TEST_F(BusNewsTest, EveryEntryOfTheLogIsTold) {
  node.add_group("web/a");
  start();
  tick();
  ASSERT_TRUE(test::eventually([&] {
    tick();
    return !heard.decided.empty();
  }));
  EXPECT_EQ(heard.decided.back().result, "observed");
  ASSERT_TRUE(daemon->set_mode("enforce"));
  tick();
  // An answer to a call, between two ticks.
  ASSERT_TRUE(daemon->control().admit(R"({"schema":"berth.request/1","id":"job","vcpus":1})", 0));
  EXPECT_EQ(heard.decided.back().kind, "admit");
  auto log = nlohmann::json::parse(*daemon->control().find_log_json({}, 0)).at("entries");
  std::reverse(log.begin(), log.end());
  // The bus comes with the first tick.
  ASSERT_GE(log.size(), heard.decided.size());
  log.erase(log.begin(), log.end() - static_cast<std::ptrdiff_t>(heard.decided.size()));
  for (std::size_t i = 0; i < heard.decided.size(); ++i) {
    EXPECT_EQ(log[i].at("kind"), heard.decided[i].kind) << i;
    EXPECT_EQ(log[i].at("reason"), heard.decided[i].reason) << i;
    EXPECT_EQ(log[i].at("time"), heard.decided[i].time) << i;
  }
  EXPECT_FALSE(daemon->control().find_log_json({{"colour", "red"}}, 0));
  EXPECT_EQ(
      nlohmann::json::parse(*daemon->control().find_log_json({{"kind", "admit"}}, 0)).at("entries").size(),
      1U);
}

LogEntry change_of(const std::string& kind, const std::string& attribute, const std::string& result) {
  LogEntry entry;
  entry.workload = "batch/x";
  entry.kind = kind;
  entry.attribute = attribute;
  entry.old_value = "a";
  entry.new_value = "b";
  entry.result = result;
  entry.decision = kind == "restore" ? "" : "d-1";
  return entry;
}

TEST_F(BusNewsTest, LimitsAndStragglers) {
  start();
  tick();
  auto observer = Observer::start(node.hierarchy(), {}, node.proc(), node.sys(), 60);
  ASSERT_TRUE(observer);
  Recorder recorder(heard);
  BusNews news;
  news.start(daemon->control(), **observer);
  heard.news.clear();
  StragglersNews stragglers;
  stragglers.found.push_back({"web/a", "late", {}, "d-2"});
  stragglers.relocate.push_back({"web/b", "too big", {}, ""});
  news.tell(recorder, daemon->control(), **observer,
            {change_of("set-cpu-quota", "cpu.max", "applied"),
             change_of("set-memory-high", "memory.high", "failed"),
             change_of("set-cpu-quota", "cpu.max", "observed"), change_of("foreign", "cpu.max", "applied"),
             change_of("restore", "memory.high", "restored"), change_of("restore", "cpuset.cpus", "restored"),
             change_of("restore", "memory.high", "left")},
            stragglers);
  EXPECT_EQ(heard.news, (News{"batch/x cpu.max a -> b", "batch/x memory.high a -> b undecided",
                              "unpinned batch/x", "straggler web/a: late d-2", "relocate web/b "}));
}

TEST_F(BusNewsTest, ALostBusIsTakenUpAgain) {
  node.add_group("web/a");
  start();
  tick();
  EXPECT_EQ(heard.started, 1);
  heard.link = Link::lost;
  bus_there = false;
  tick();
  EXPECT_NE(daemon->control().status_json().find("the cable was cut"), std::string::npos);
  for (int i = 0; i < 25; ++i) tick();
  EXPECT_EQ(heard.started, 3) << "every 10 s";
  EXPECT_NE(daemon->control().status_json().find("no bus here"), std::string::npos);
  bus_there = true;
  for (int i = 0; i < 10; ++i) tick();
  EXPECT_EQ(heard.started, 4);
  node.add_group("web/b");
  ASSERT_TRUE(test::eventually([&] { return !tick().empty(); }));
}

TEST_F(BusNewsTest, ABusThatNeverAnswersIsGivenUpAndTriedAgain) {
  link = Link::connecting;
  start();
  EXPECT_TRUE(daemon->bus_settled()) << "nothing is under way";
  tick();
  EXPECT_FALSE(daemon->bus_settled());
  EXPECT_EQ(capability("bus")["available"], false);
  heard.link = Link::lost;
  EXPECT_TRUE(daemon->bus_settled());
  EXPECT_NE(capability("bus")["detail"].get<std::string>().find("the cable was cut"), std::string::npos);
  for (int i = 0; i < 9; ++i) tick();
  EXPECT_EQ(heard.started, 1);
  link = Link::up;
  for (int i = 0; i < 3; ++i) tick();
  EXPECT_EQ(heard.started, 2);
  EXPECT_EQ(capability("bus")["available"], true);
}

TEST_F(BusNewsTest, ATrialEndsWithTheConnectionOfItsCaller) {
  start();
  tick();
  ASSERT_TRUE(daemon->control().begin_trial({"1/:1.7", 123, 0}, "", "mode = \"enforce\"\n"));
  ASSERT_TRUE(daemon->control().use_trial_side("1/:1.7", "b", 1000));
  tick();
  EXPECT_EQ(daemon->control().mode(), "enforce");
  heard.link = Link::lost;
  tick();
  EXPECT_EQ(daemon->control().mode(), "observe");
  EXPECT_TRUE(nlohmann::json::parse(daemon->control().status_json())["trial"].is_null());
}

TEST_F(BusNewsTest, PolkitIsThereWhereTheBusHasIt) {
  bus_there = false;
  start();
  tick();
  EXPECT_EQ(capability("polkit")["available"], false);
  bus_there = true;
  for (int i = 0; i < 11; ++i) tick();
  EXPECT_EQ(capability("polkit")["available"], true);
  heard.polkit_problem = "nobody there";
  EXPECT_EQ(capability("polkit")["available"], false);
  EXPECT_EQ(capability("polkit")["detail"], "nobody there; only root may change things over the bus");
}

}  // namespace
}  // namespace berth::daemon
