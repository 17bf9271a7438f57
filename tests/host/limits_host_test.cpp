// SPDX-License-Identifier: Apache-2.0
// Limits through a real systemd and a real kernel, without a policy: run by tests/vm/test_limits.py in a
// guest.
#include "cgroup/sampler.h"
#include "config/config.h"
#include "daemon/enforce/actuators.h"
#include "daemon/enforce/enforcer.h"
#include "daemon/ledger/overrides.h"
#include "daemon/observe/observer.h"
#include "daemon/observe/pressure_watch.h"
#include "tests/patience.h"

#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

namespace berth::daemon {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr const char* kUnit = "berth-test-limits.service";
constexpr const char* kId = "system.slice/berth-test-limits.service";
const fs::path kGroup = fs::path("/sys/fs/cgroup") / kId;
constexpr const char* kRules = R"(
[[workload]]
match = "system.slice/berth-test-limits.service"
class = "best-effort"
[[workload]]
match = "system.slice/berth-test-limits.service/own"
class = "best-effort"
)";

std::string output_of(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");  // NOLINT(cert-env33-c): our own words
  if (pipe == nullptr) throw std::runtime_error(command);
  std::array<char, 4096> buffer{};
  std::string text;
  while (const auto size = fread(buffer.data(), 1, buffer.size(), pipe)) text.append(buffer.data(), size);
  const int status = pclose(pipe);
  if (status != 0) throw std::runtime_error(command + ": " + std::to_string(status) + " " + text);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::string content(const fs::path& file) {
  std::ifstream stream(file);
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::string shown(const char* property) {
  return output_of(std::string("systemctl show -P ") + property + " " + kUnit);
}

// The runtime properties that systemd keeps for the unit, without the transient unit's own settings.
std::set<std::string> drop_ins() {
  std::set<std::string> names;
  for (const char* root : {"/run/systemd/system.control", "/run/systemd/transient"}) {
    std::error_code none;
    for (const auto& file : fs::directory_iterator(fs::path(root) / (std::string(kUnit) + ".d"), none)) {
      names.insert(file.path().filename());
    }
  }
  return names;
}

// The state of a berthd, with plans that the test makes.
struct Engine {
  explicit Engine(const fs::path& state) {
    auto found = cgroup::find_hierarchy({}, "/proc");
    if (!found) throw std::runtime_error(found.error().message());
    auto opened = Actuators::open(*found, state, "/sys", Actuators::Units::through_systemd);
    if (!opened) throw std::runtime_error(opened.error().message());
    actuators = std::move(*opened);
    auto started = Observer::start(*found, config::parse(kRules, "rules").value().rules, "/proc", "/sys", 60);
    if (!started) throw std::runtime_error(started.error().message());
    observer = std::move(*started);
    std::optional<std::string> ignored;
    overrides.emplace(state, ignored);
    enforcer.emplace(actuators->writer(), [this](const std::string& id) { observer->read_again(id); });
  }

  std::vector<LogEntry> look(config::ForeignWriter on_foreign = config::ForeignWriter::yield) {
    now += 1;
    observer->take_changes();
    auto entries = enforcer->follow(observer->found(), now);
    observer->read_again(kId);
    observer->read(now);
    auto more = enforcer->check(observer->readings(), observer->found(), observer->groups(),
                                observer->others(), on_foreign, now);
    entries.insert(entries.end(), more.begin(), more.end());
    observer->assemble(
        {.holdings = enforcer->holdings(), .left_alone = enforcer->left_alone(), .overrides = *overrides});
    return entries;
  }
  std::vector<LogEntry> apply(const std::vector<model::Action::What>& wanted) {
    model::Plan plan;
    plan.time = now;
    for (const auto& what : wanted) plan.actions.push_back({what, "straggler", "d-1", "because"});
    return enforcer->apply(plan, observer->snapshot(), observer->found(), observer->groups(),
                           observer->others(), 5s);
  }
  std::vector<LogEntry> quota(std::optional<double> cores) {
    return apply({model::Set{kId, model::CpuQuota{cores}}});
  }
  std::vector<LogEntry> memory(std::optional<std::uint64_t> bytes) {
    return apply({model::Set{kId, model::MemoryHigh{bytes}}});
  }

  std::unique_ptr<Actuators> actuators;
  std::unique_ptr<Observer> observer;
  std::optional<Overrides> overrides;
  std::optional<Enforcer> enforcer;
  double now = 1000;
};

class LimitsHostTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0 || !fs::exists("/run/systemd/system")) GTEST_SKIP() << "needs root and systemd";
    std::string name = "/tmp/berth-limits-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    state = name;
  }
  void TearDown() override {
    std::system((std::string("systemctl stop ") + kUnit + " 2>/dev/null").c_str());  // NOLINT(cert-env33-c)
    fs::remove("/run/systemd/system/" + std::string(kUnit));
    fs::remove_all("/run/systemd/system.control/" + std::string(kUnit) +
                   ".d");                    // what a test's somebody else set
    std::system("systemctl daemon-reload");  // NOLINT(cert-env33-c)
    fs::remove_all(state);
  }
  static void start_transient(const std::string& properties = "",
                              const std::string& command = "sleep infinity") {
    output_of("systemd-run --quiet --collect --unit=" + std::string(kUnit) + " " + properties + " " +
              command);
  }
  // Starts the unit with a cgroup "own" below it that is no unit, after a line of shell. Without a cgroup
  // where it did not come up.
  cgroup::FoundWorkload start_group_of_its_own(const std::string& line = "") const {
    std::ofstream(state / "delegated.sh") << "cd " << kGroup.string() << R"(
mkdir own main
echo $$ > main/cgroup.procs
echo "+cpu +memory" > cgroup.subtree_control
)" << line << R"(
sh -c 'echo $$ > own/cgroup.procs; exec sleep infinity' &
wait
)";
    start_transient("-p Delegate=yes", "sh " + (state / "delegated.sh").string());
    const fs::path procs = kGroup / "own/cgroup.procs";
    cgroup::FoundWorkload group;
    if (!berth::test::eventually([&] { return fs::exists(procs) && !content(procs).empty(); })) return group;
    group.identity.id = std::string(kId) + "/own";
    if (auto found = cgroup::Cgroup::open("/sys/fs/cgroup", group.identity.id)) group.cgroup = *found;
    return group;
  }
  static void start_configured(const std::string& settings) {
    std::ofstream("/run/systemd/system/" + std::string(kUnit))
        << "[Service]\nExecStart=/usr/bin/sleep infinity\n"
        << settings;
    output_of("systemctl daemon-reload && systemctl start " + std::string(kUnit));
  }
  Engine& start() {
    engine.reset();
    engine = std::make_unique<Engine>(state);
    engine->look();
    return *engine;
  }
  static std::string cpu_max() { return content(kGroup / "cpu.max"); }
  static std::string memory_high() { return content(kGroup / "memory.high"); }

  fs::path state;
  std::unique_ptr<Engine> engine;
};

constexpr std::uint64_t kMemory = 256ULL << 20;

TEST_F(LimitsHostTest, LimitsOfAUnitAreRuntimePropertiesAndLeaveNothingBehind) {
  start_transient();
  const auto before = drop_ins();
  Engine& berth = start();
  const auto entries =
      berth.apply({model::Set{kId, model::CpuQuota{1.5}}, model::Set{kId, model::MemoryHigh{kMemory}}});
  for (const auto& entry : entries) EXPECT_EQ(entry.result, "applied") << entry.error.value_or("");
  EXPECT_EQ(cpu_max(), "150000 100000");
  EXPECT_EQ(memory_high(), std::to_string(kMemory));
  EXPECT_EQ(shown("CPUQuotaPerSecUSec"), "1.500000s");
  EXPECT_EQ(shown("MemoryHigh"), std::to_string(kMemory));
  EXPECT_NE(drop_ins(), before);
  berth.look();
  EXPECT_EQ(berth.observer->snapshot().workloads.at(0).cpu_quota_cores, 1.5);

  berth.quota(1.2345);
  EXPECT_EQ(cpu_max(), "123000 100000") << "whole percents, which is what systemd's drop-in holds";
  output_of("systemctl daemon-reload");
  EXPECT_TRUE(berth.look().empty());
  EXPECT_TRUE(berth.look().empty()) << "and so nobody changed it";
  EXPECT_EQ(cpu_max(), "123000 100000");

  berth.apply(
      {model::Set{kId, model::CpuQuota{std::nullopt}}, model::Set{kId, model::MemoryHigh{std::nullopt}}});
  EXPECT_TRUE(!fs::exists(kGroup / "cpu.max") || cpu_max() == "max 100000");
  EXPECT_EQ(memory_high(), "max");
  EXPECT_EQ(drop_ins(), before);
  EXPECT_EQ(shown("NeedDaemonReload"), "no");
  EXPECT_EQ(berth.actuators->journal().size(), 0U);
}

TEST_F(LimitsHostTest, ABurstIsLeftAloneAndBoundsTheQuota) {
  start_transient("-p CPUQuota=200%");
  std::ofstream(kGroup / "cpu.max.burst") << 50000;
  Engine& berth = start();
  berth.quota(1);
  EXPECT_EQ(cpu_max(), "100000 100000");
  EXPECT_EQ(content(kGroup / "cpu.max.burst"), "50000");
  const auto entries = berth.quota(0.4);
  ASSERT_FALSE(entries.empty());
  EXPECT_EQ(entries[0].result, "failed");
  EXPECT_NE(entries[0].error.value_or("").find("cpu.max.burst is 50000 us"), std::string::npos)
      << entries[0].error.value_or("");
  EXPECT_EQ(cpu_max(), "200000 100000") << "what cannot be managed is not kept where berth once put it";
  EXPECT_EQ(content(kGroup / "cpu.max.burst"), "50000");
  EXPECT_TRUE(berth.enforcer->left_alone().empty());
}

TEST_F(LimitsHostTest, AUnitsOwnLimitsAndPeriodComeBack) {
  start_configured("CPUQuota=350%\nCPUQuotaPeriodSec=20ms\nMemoryHigh=1G\n");
  ASSERT_EQ(cpu_max(), "70000 20000");
  Engine& berth = start();
  berth.apply({model::Set{kId, model::CpuQuota{0.5}}, model::Set{kId, model::MemoryHigh{kMemory}}});
  EXPECT_EQ(cpu_max(), "10000 20000");
  EXPECT_EQ(memory_high(), std::to_string(kMemory));
  berth.look();
  berth.apply({model::Set{kId, model::CpuQuota{3.5}}, model::Set{kId, model::MemoryHigh{1ULL << 30}}});
  EXPECT_EQ(cpu_max(), "70000 20000");
  EXPECT_EQ(memory_high(), std::to_string(1ULL << 30));
  EXPECT_TRUE(drop_ins().empty());
  EXPECT_EQ(shown("NeedDaemonReload"), "no");
}

TEST_F(LimitsHostTest, LimitsFollowAUnitThatRestarts) {
  start_configured("");
  Engine& berth = start();
  berth.apply({model::Set{kId, model::CpuQuota{0.5}}, model::Set{kId, model::MemoryHigh{kMemory}}});
  const auto run = berth.observer->cgroup_id(kId);
  output_of("systemctl restart " + std::string(kUnit));
  ASSERT_TRUE(berth::test::eventually([&] {
    berth.look();
    return berth.observer->cgroup_id(kId) != run &&
           berth.enforcer->holdings().of(model::Attribute::cpu_quota).count(kId) == 1;
  }));
  EXPECT_EQ(cpu_max(), "50000 100000");
  EXPECT_EQ(berth.enforcer->holdings().of(model::Attribute::memory_high).at(kId).cgroup_id,
            berth.observer->cgroup_id(kId));
  EXPECT_TRUE(berth.enforcer->left_alone().empty());
  berth.apply(
      {model::Set{kId, model::CpuQuota{std::nullopt}}, model::Set{kId, model::MemoryHigh{std::nullopt}}});
  EXPECT_EQ(memory_high(), "max");
  EXPECT_TRUE(drop_ins().empty());
}

TEST_F(LimitsHostTest, WhatAKilledDaemonHeldIsPutBackByTheNext) {
  start_configured("MemoryHigh=1G\n");
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Engine doomed(state);
    doomed.look();
    doomed.apply({model::Set{kId, model::CpuQuota{0.5}}, model::Set{kId, model::MemoryHigh{kMemory}}});
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_EQ(cpu_max(), "50000 100000");
  ASSERT_EQ(memory_high(), std::to_string(kMemory));
  Engine next(state);
  EXPECT_EQ(next.actuators->journal().size(), 2U);
  const auto report = next.actuators->writer().restore_all();
  EXPECT_EQ(report.restored.size(), 2U);
  EXPECT_TRUE(report.left.empty());
  EXPECT_EQ(memory_high(), std::to_string(1ULL << 30));
  EXPECT_TRUE(!fs::exists(kGroup / "cpu.max") || cpu_max() == "max 100000");
  EXPECT_TRUE(drop_ins().empty());
}

TEST_F(LimitsHostTest, AForeignWriterIsYieldedToAndTheOtherLimitGivenBack) {
  start_configured("");
  Engine& berth = start();
  berth.apply({model::Set{kId, model::CpuQuota{0.5}}, model::Set{kId, model::MemoryHigh{kMemory}}});
  output_of("systemctl set-property --runtime " + std::string(kUnit) + " CPUQuota=80%");
  // systemd writes the attributes of a unit a moment after it has answered.
  ASSERT_TRUE(berth::test::eventually([] { return cpu_max() == "80000 100000"; }));
  EXPECT_TRUE(berth.look().empty()) << "may be systemd on its way";
  const auto entries = berth.look();
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].kind + " " + entries[0].attribute + " " + entries[0].result, "foreign cpu.max left");
  EXPECT_EQ(entries[1].kind + " " + entries[1].attribute + " " + entries[1].result,
            "restore memory.high restored");
  EXPECT_EQ(cpu_max(), "80000 100000");
  EXPECT_EQ(memory_high(), "max");
  EXPECT_EQ(berth.actuators->journal().size(), 0U);
  EXPECT_EQ(drop_ins(), std::set<std::string>{"50-CPUQuota.conf"}) << "theirs, not berth's";
}

TEST_F(LimitsHostTest, AForeignWriterIsOverruledWhereConfigured) {
  start_configured("");
  Engine& berth = start();
  berth.memory(kMemory);
  output_of("systemctl set-property --runtime " + std::string(kUnit) + " MemoryHigh=2G");
  ASSERT_TRUE(berth::test::eventually([] { return memory_high() == std::to_string(2ULL << 30); }));
  berth.look(config::ForeignWriter::reassert);
  berth.look(config::ForeignWriter::reassert);
  EXPECT_EQ(memory_high(), std::to_string(kMemory));
  berth.memory(std::nullopt);
  EXPECT_EQ(memory_high(), "max");
  EXPECT_TRUE(drop_ins().empty());
}

TEST_F(LimitsHostTest, AGroupThatIsNoUnitIsWrittenDirectly) {
  const cgroup::FoundWorkload group = start_group_of_its_own();
  ASSERT_TRUE(group.cgroup);
  const fs::path own = kGroup / "own";
  Engine& berth = start();
  auto& writer = berth.actuators->writer();
  ASSERT_TRUE(writer.set(group, cgroup::CpuMax{12345, 20000}));
  ASSERT_TRUE(writer.set(group, cgroup::memory_high(kMemory)));
  EXPECT_EQ(content(own / "cpu.max"), "12345 20000");
  EXPECT_EQ(content(own / "memory.high"), std::to_string(kMemory));
  EXPECT_EQ(writer.restore_all().restored.size(), 2U);
  EXPECT_EQ(content(own / "cpu.max"), "max 100000");
  EXPECT_EQ(content(own / "memory.high"), "max");
}

// The kernel drops the weight of an idle group, refuses another one, and gives its default afterwards.
TEST_F(LimitsHostTest, IdlePriorityOfAUnitGivesItsWeightBack) {
  start_configured("CPUWeight=300\n");
  ASSERT_EQ(content(kGroup / "cpu.weight"), "300");
  Engine& berth = start();
  for (const auto& entry : berth.apply({model::Set{kId, model::LowPriority::idle}}))
    EXPECT_EQ(entry.result, "applied") << entry.error.value_or("");
  EXPECT_EQ(content(kGroup / "cpu.idle"), "1");
  EXPECT_NE(content(kGroup / "cpu.weight"), "300");
  output_of("systemctl daemon-reload");
  EXPECT_TRUE(berth.look().empty());
  EXPECT_TRUE(berth.look().empty());
  EXPECT_EQ(content(kGroup / "cpu.idle"), "1");
  berth.apply({model::GiveBack{kId, model::Attribute::cpu_idle}});
  EXPECT_EQ(content(kGroup / "cpu.idle"), "0");
  EXPECT_EQ(content(kGroup / "cpu.weight"), "300");
  EXPECT_TRUE(drop_ins().empty());
  EXPECT_EQ(shown("NeedDaemonReload"), "no");
  EXPECT_EQ(berth.actuators->journal().size(), 0U);
}

TEST_F(LimitsHostTest, IdlePriorityOfAGroupThatIsNoUnitGivesItsWeightBack) {
  const cgroup::FoundWorkload group = start_group_of_its_own("echo 250 > own/cpu.weight");
  ASSERT_TRUE(group.cgroup);
  const fs::path own = kGroup / "own";
  Engine& berth = start();
  auto& writer = berth.actuators->writer();
  ASSERT_TRUE(writer.set(group, cgroup::CpuIdle{.idle = true}));
  EXPECT_EQ(content(own / "cpu.idle"), "1");
  EXPECT_FALSE(group.cgroup->write("cpu.weight", "250")) << "the kernel takes no weight of an idle group";
  ASSERT_TRUE(group.cgroup->write("cpu.idle", "0"));
  EXPECT_EQ(content(own / "cpu.weight"), "100") << "a restore that was cut short here";
  EXPECT_EQ(writer.restore_all().restored.size(), 1U);
  EXPECT_EQ(content(own / "cpu.idle"), "0");
  EXPECT_EQ(content(own / "cpu.weight"), "250");
}

TEST_F(LimitsHostTest, AQuotaThatIsTooSmallShowsAsThrottlingAndAsPressureThatWakes) {
  start_transient("", "sh -c 'while :; do :; done'");
  Engine& berth = start();
  berth.quota(0.2);
  berth.look();
  model::Workload workload;
  // A share of the time between two looks.
  EXPECT_TRUE(berth::test::eventually([&] {
    std::this_thread::sleep_for(500ms);
    berth.look();
    workload = berth.observer->snapshot().workloads.at(0);
    return workload.cpu_throttled.value_or(0) > 0.5;
  }));
  EXPECT_EQ(workload.held_cpu.value().cause, model::HeldCause::lent);

  sd_event* event = nullptr;
  ASSERT_GE(sd_event_new(&event), 0);
  std::vector<std::string> risen;
  {
    PressureWatch watch("/proc", 0.1);
    watch.attach(event, [&](const std::string& what) { risen.push_back(what); });
    watch.follow(berth.observer->snapshot(), berth.observer->found());
    EXPECT_TRUE(watch.capability().available) << watch.capability().detail;
    EXPECT_TRUE(berth::test::eventually([&] {
      if (risen.empty()) sd_event_run(event, 500'000);
      return !risen.empty();
    }));
    watch.detach();
  }
  sd_event_unref(event);
  ASSERT_FALSE(risen.empty());
  EXPECT_EQ(risen.front(), kId);
}

}  // namespace
}  // namespace berth::daemon
