// SPDX-License-Identifier: Apache-2.0
// The wall clock is set, by one hour and by eight, both ways: nothing but printed times changes.
#include "tests/unit/cgroup/child.h"
#include "tests/unit/daemon/daemon_fixture.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace berth::daemon {
namespace {

using cgroup::test::Child;
using nlohmann::json;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr double kHour_s = 3600;
constexpr double kTick_s = 10;
constexpr double kStart_s = 1.5e9;
// Numbers in this range are times. Amounts of memory here are smaller or larger.
constexpr double kFirstTime_s = kStart_s - 1e5;
constexpr double kLastTime_s = kStart_s + 1e5;

// All policies act: web/task is late and grows, others lend to it, memory becomes short, batch/dear is
// squeezed to its use, and then a workload is evicted.
constexpr const char* kEveryPolicy = R"(
mode = "enforce"
[sampling]
interval = "10s"
max_cpu = 1
history = 20
[log]
retention = "30m"
[straggler]
restore_hold = "60s"
[oversell]
warmup = "60s"
evict = true
[spark]
watch = false
[eviction]
evict = true
hold = "60s"
grace = "60s"
[[workload]]
match = "web/*"
class = "latency-sensitive"
isolation = "vcpus"
vcpus = 2
deadline = "30m"
[[workload]]
match = "batch/*"
class = "best-effort"
vcpus = 2
memory = "100M"
)";

// A host with a script: the same things happen at the same ticks, whatever its wall clock shows.
class Host {
 public:
  Host() {
    node.configure(kEveryPolicy);
    for (const auto& [id, child] : children) {
      node.add_group(id);
      node.put(id, "memory.current", std::to_string(50 * kMiB));
      node.put(id, "cgroup.procs", std::to_string(child->pid()));
      node.put(id, "cgroup.kill", "");
    }
    node.put("batch/dear", "memory.current", std::to_string(200 * kMiB));
    node.put("batch/dear", "memory.stat", fmt::format("inactive_file {}", 120 * kMiB));
    node.put("batch", "cpu.idle", "0");
    node.put("batch", "cpu.weight", "100");
    have_memory(800 * kMiB, 0);
  }

  void start() {
    daemon.reset();
    const os::Clock clock(
        {.boot = [this] { return up.load(); }, .wall = [this] { return up + kStart_s + set_by; }});
    auto started = Daemon::start(node.options(), node.settings(), clock);
    if (!started) throw std::runtime_error(started.error().message());
    daemon = std::move(*started);
  }
  void set_clock(double by) { set_by = set_by + by; }

  // Returns what berthd did at this tick, without times and ids.
  std::vector<std::string> tick(int number) {
    up = up + kTick_s;
    script(number);
    daemon->tick();
    return news();
  }

  // The number of samples of each workload.
  std::map<std::string, std::size_t> samples() {
    std::map<std::string, std::size_t> numbers;
    const auto snapshot = json::parse(daemon->control().snapshot_json());
    for (const auto& workload : snapshot["workloads"]) numbers[workload["id"]] = workload["usage"].size();
    return numbers;
  }

  test::FakeNode node;
  std::atomic<double> up = 5000;
  std::atomic<double> set_by = 0;
  std::map<std::string, std::unique_ptr<Child>> children = new_children();
  std::unique_ptr<Daemon> daemon;
  // The machine held a call for longer than berthd waits. berthd said so, and tries again at a later tick.
  bool stalled = false;

 private:
  static std::map<std::string, std::unique_ptr<Child>> new_children() {
    std::map<std::string, std::unique_ptr<Child>> made;
    for (const char* id : {"web/calm", "web/task", "batch/cheap", "batch/dear", "batch/lender"})
      made.emplace(id, std::make_unique<Child>());
    return made;
  }

  void have_memory(std::uint64_t available, int stalled_percent) {
    std::ofstream(node.proc() / "meminfo")
        << fmt::format("MemTotal: {} kB\nMemAvailable: {} kB\n", 1000 * kMiB / 1024, available / 1024);
    std::filesystem::create_directories(node.proc() / "pressure");
    std::ofstream(node.proc() / "pressure" / "memory") << fmt::format(
        "some avg10={0}.00 avg60=0.00 avg300=0.00 total=0\n"
        "full avg10={0}.00 avg60=0.00 avg300=0.00 total=0\n",
        stalled_percent);
  }

  void script(int number) {
    if (number % 2 == 0) {
      const auto said = daemon->control().report_progress("web/task", 0.002 * number);
      EXPECT_TRUE(said);
    }
    if (number == 28) have_memory(800 * kMiB, 40);
    if (number == 36) have_memory(10 * kMiB, 0);
    if (number == 44) have_memory(800 * kMiB, 0);
    for (const auto& [id, child] : children) {
      if (ended_.contains(id) || !evicted_.contains(id)) continue;
      EXPECT_TRUE(test::eventually([&its = *child] { return its.died_of() != 0; }));
      node.put(id, "cgroup.events", "populated 0\nfrozen 0");
      node.put(id, "cgroup.procs", "");
      ended_.insert(id);
    }
  }

  std::vector<std::string> news() {
    std::vector<std::string> list;
    const auto entries = json::parse(daemon->control().log_json(0))["entries"];
    const std::size_t before = std::exchange(known_, entries.size());
    for (std::size_t i = entries.size() - before; i-- > 0;) {
      const auto& entry = entries[i];
      const double age_s = up + kStart_s + set_by - entry["time"].get<double>();
      EXPECT_NEAR(age_s, 0, 0.01) << entry;
      if (entry["kind"] == "evict") evicted_.insert(entry["workload"].get<std::string>());
      list.push_back(entry["kind"].get<std::string>());
      for (const char* member : {"workload", "attribute", "old", "new", "policy", "result"})
        list.back() += " " + entry[member].get<std::string>();
      stalled = stalled || !entry["error"].is_null();
    }
    return list;
  }

  std::size_t known_ = 0;
  std::set<std::string> evicted_;
  std::set<std::string> ended_;
};

// The same document, but for its times, which are `by` later, for ids, which depend on them, and for how long
// evictions really took.
void expect_same_but_for_times(const json& a, const json& b, double by, const std::string& path) {
  ASSERT_EQ(a.type_name(), std::string(b.type_name())) << path;
  if (a.is_object() || a.is_array()) {
    ASSERT_EQ(a.size(), b.size()) << path << "\n" << a << "\n" << b;
    for (auto it = a.items().begin(); it != a.items().end(); ++it) {
      const auto& key = it.key();
      if (key == "decision" || key == "cgroup" || key == "eviction_durations") continue;
      if (a.is_object()) {
        ASSERT_TRUE(b.contains(key)) << path << "." << key;
      }
      expect_same_but_for_times(it.value(), a.is_object() ? b.at(key) : b.at(std::stoul(key)), by,
                                path + "." + key);
    }
  } else if (a.is_number()) {
    const double value = a.get<double>();
    const bool is_time = value > kFirstTime_s && value < kLastTime_s;
    EXPECT_NEAR(value + (is_time ? by : 0), b.get<double>(), 0.01) << path;
  } else {
    EXPECT_EQ(a, b) << path;
  }
}

class DaemonClockTest : public testing::TestWithParam<double> {
 protected:
  // Readings that follow each other at once make no sample.
  static void wait() { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }
  void expect_same(double by) {
    expect_same_but_for_times(json::parse(plain->daemon->control().snapshot_json()),
                              json::parse(set->daemon->control().snapshot_json()), by, "snapshot");
    expect_same_but_for_times(json::parse(plain->daemon->control().plan_json()),
                              json::parse(set->daemon->control().plan_json()), by, "plan");
  }

  // Their processes are forked first, as those would keep the locks of a daemon.
  void SetUp() override {
    plain = std::make_unique<Host>();
    set = std::make_unique<Host>();
    plain->start();
    set->start();
  }

  // Runs the script on both. False where a host stalled, so that the comparison says nothing.
  bool compare(double by);

  std::unique_ptr<Host> plain;  // its clock is never set
  std::unique_ptr<Host> set;
};

bool DaemonClockTest::compare(double by) {
  std::set<std::string> kinds;
  for (int number = 1; number <= 80; ++number) {
    SCOPED_TRACE(fmt::format("tick {}", number));
    wait();
    if (number == 25 || number == 50) set->set_clock(by);
    if (number == 60) set->set_clock(-2 * by);
    const auto samples_before = set->samples();
    const auto expected = plain->tick(number);
    const auto got = set->tick(number);
    if (plain->stalled || set->stalled) return false;
    EXPECT_EQ(got, expected);
    for (const auto& text : expected) kinds.insert(text.substr(0, text.find(' ')));
    expect_same(set->set_by);
    if (HasFailure()) return true;
    for (const auto& [id, samples] : set->samples()) {
      const auto before = samples_before.find(id);
      if (before != samples_before.end() && before->second < 20) {
        EXPECT_GT(samples, before->second) << id;
      }
    }
  }
  EXPECT_EQ(kinds, (std::set<std::string>{"advertise", "evict", "pin", "restore", "set-cpu-priority",
                                          "set-cpu-quota", "set-memory-high"}))
      << "not every policy had something to do";
  return true;
}

TEST_P(DaemonClockTest, EveryPolicyDecidesAsIfTheClockHadNotBeenSet) {
  for (int attempt = 1; attempt <= 20; ++attempt) {
    if (compare(GetParam())) return;
    set.reset();
    plain.reset();
    SetUp();
  }
  FAIL() << "a host stalled each time";
}

TEST_P(DaemonClockTest, ARestartAfterItWasSetTakesOverWhatWasKnown) {
  const double by = GetParam();
  const std::string request =
      R"({"schema": "berth.request/1", "id": "new.service", "vcpus": 1, "memory_request_bytes": 1048576})";
  for (Host* host : {plain.get(), set.get()}) {
    for (int number = 1; number <= 20; ++number) {
      wait();
      host->tick(number);
    }
    ASSERT_TRUE(host->daemon->control().admit(request, 100));
    host->daemon->stop();
  }
  set->set_clock(by);
  for (Host* host : {plain.get(), set.get()}) {
    host->start();
    const auto reservations = json::parse(host->daemon->control().reservations_json())["reservations"];
    ASSERT_EQ(reservations.size(), 1U);
    EXPECT_NEAR(reservations[0]["until"].get<double>() - (host->up + kStart_s + host->set_by), 100, 0.01);
    wait();
    host->up = host->up + kTick_s;
    host->daemon->tick();
    EXPECT_GE(host->samples()["batch/lender"], 18U);
    host->up = host->up + 91;
    EXPECT_EQ(json::parse(host->daemon->control().reservations_json())["reservations"].size(), 0U);
  }
}

TEST_P(DaemonClockTest, TheDecisionLogForgetsByAgeAlone) {
  for (int number = 1; number <= 20; ++number) {
    set->tick(number);
    plain->tick(number);
  }
  const auto entries = [](Host& host) {
    return json::parse(host.daemon->control().log_json(0))["entries"].size();
  };
  const auto pass = [&](double seconds, const char* id) {
    for (Host* host : {plain.get(), set.get()}) {
      host->up = host->up + seconds;
      host->node.add_group(id);
      host->daemon->tick();
    }
  };
  const std::size_t before = entries(*set);
  ASSERT_GT(before, 0U);
  set->set_clock(GetParam());
  pass(1000, "web/second");
  EXPECT_GT(entries(*set), before) << "nothing is 30 minutes old";
  // While the disk does not answer, the log's last entries are read from memory, whatever their age.
  const auto same = [&] {
    for (Host* host : {plain.get(), set.get()}) host->daemon->tick();
    return entries(*set) == entries(*plain);
  };
  EXPECT_TRUE(test::eventually(same)) << entries(*set) << " and " << entries(*plain);
  pass(1700, "web/third");
  EXPECT_TRUE(test::eventually(same)) << entries(*set) << " and " << entries(*plain);
  EXPECT_LT(entries(*plain), before) << "the first ones are 30 minutes old";
}

INSTANTIATE_TEST_SUITE_P(By, DaemonClockTest, testing::Values(-8 * kHour_s, -kHour_s, kHour_s, 8 * kHour_s),
                         [](const auto& by) {
                           return fmt::format("{}{}h", by.param < 0 ? "back" : "ahead",
                                              static_cast<int>(std::abs(by.param) / kHour_s));
                         });

}  // namespace
}  // namespace berth::daemon
