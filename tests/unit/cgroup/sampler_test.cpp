// SPDX-License-Identifier: Apache-2.0
#include "cgroup/sampler.h"

#include "cgroup/sampler_parse.h"
#include "tests/unit/cgroup/fake_tree.h"

#include <chrono>
#include <filesystem>
#include <thread>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace berth::cgroup {
namespace {

using test::FakeTree;

std::string cpu_stat(std::uint64_t usec) {
  return "usage_usec " + std::to_string(usec) + "\nuser_usec 1\nsystem_usec 2\n";
}

std::string pressure(const std::string& avg10) {
  return "some avg10=" + avg10 + " avg60=0.00 avg300=0.00 total=1\n";
}

double monotonic_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Rates need time to pass.
void let_pass(double seconds) {
  const double end = monotonic_s() + seconds;
  while (monotonic_s() < end) std::this_thread::yield();
}

std::size_t open_files() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

class SamplerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    tree.make("a");
    tree.write("a", "cpu.stat", cpu_stat(1000));
    tree.write("a", "memory.current", "4096\n");
    tree.write("a", "cpu.pressure", pressure("1.50"));
    tree.write("a", "cpuset.cpus", "0-1\n");
    tree.write("a", "cpuset.cpus.effective", "0-1\n");
    tree.write("a", "cpu.max", "150000 100000\n");
    tree.write("a", "memory.high", "8192\n");
    tree.write("a", "memory.stat",
               "anon 1024\nfile 3072\ninactive_anon 0\ninactive_file 2048\nactive_file 1024\n");
    sampler.add("a", Cgroup::open(tree.root(), "a").value());
  }
  Sampler::Reading sample(double now = 10) { return sampler.sample(now).at("a"); }

  FakeTree tree;
  Sampler sampler;
};

TEST_F(SamplerTest, TheFirstReadingHasNoRateButEverythingElse) {
  sampler.want_caches(true);
  const auto reading = sample();
  EXPECT_FALSE(reading.sample);
  EXPECT_EQ(reading.cpu_pressure_some_avg10, 1.5);
  EXPECT_EQ(reading.cpus, (model::CpuSet{0, 1}));
  EXPECT_EQ(reading.effective_cpus, (model::CpuSet{0, 1}));
  EXPECT_EQ(reading.cpu_quota_cores, 1.5);
  EXPECT_EQ(reading.memory_high_bytes, 8192U);
  EXPECT_EQ(reading.cache_bytes, 2048U);
  EXPECT_DOUBLE_EQ(reading.cpu_time_s.value(), 1e-3);
  EXPECT_FALSE(reading.gone);
}

TEST_F(SamplerTest, OfANewWorkloadAloneTheSettingsCanBeReadBeforeTheNextSample) {
  sample(10);
  tree.make("b");
  tree.write("b", "cpu.stat", cpu_stat(1000));
  tree.write("b", "cpuset.cpus", "2\n");
  sampler.add("b", Cgroup::open(tree.root(), "b").value());
  tree.write("a", "cpuset.cpus", "3\n");
  sampler.refresh("a");
  const auto& readings = sampler.read_new();
  EXPECT_EQ(readings.at("b").cpus.to_string(), "2");
  EXPECT_EQ(readings.at("a").cpus.to_string(), "0-1");
  tree.write("b", "cpuset.cpus", "4\n");
  tree.write("b", "cpu.stat", cpu_stat(9000));
  let_pass(0.002);
  sample(11);
  EXPECT_EQ(readings.at("b").cpus.to_string(), "4") << "it is the first sample, which reads all";
  EXPECT_FALSE(readings.at("b").sample) << "and has no rate";
}

TEST_F(SamplerTest, RatesAreOverMonotonicTimeAndStampedWithTheGivenOne) {
  const double earliest = monotonic_s();
  sample(1000);
  const double begin = monotonic_s();
  let_pass(0.02);
  tree.write("a", "cpu.stat", cpu_stat(1000 + 10'000));
  const double end = monotonic_s();
  const auto reading = sample(5);  // the wall clock went back
  const double latest = monotonic_s();
  ASSERT_TRUE(reading.sample);
  EXPECT_EQ(reading.sample->time, 5);
  EXPECT_LE(reading.sample->cpu_cores, 0.01 / (end - begin));
  EXPECT_GE(reading.sample->cpu_cores, 0.01 / (latest - earliest));
  EXPECT_EQ(reading.sample->memory_bytes, 4096U);
}

TEST_F(SamplerTest, UsageThatGoesBackwardsIsNoSample) {
  sample();
  let_pass(0.002);
  tree.write("a", "cpu.stat", cpu_stat(500));
  EXPECT_FALSE(sample().sample);
  let_pass(0.002);
  tree.write("a", "cpu.stat", cpu_stat(600));
  const auto next = sample();
  ASSERT_TRUE(next.sample);
  EXPECT_GT(next.sample->cpu_cores, 0);
}

TEST_F(SamplerTest, AJumpOfTheCounterBeyondAllVcpusIsNoSample) {
  sampler.set_most_cores(8);
  sample();
  let_pass(0.002);
  tree.write("a", "cpu.stat", cpu_stat(3'600'000'000));
  const auto jumped = sample();
  EXPECT_FALSE(jumped.sample);
  EXPECT_GT(jumped.impossible_cores.value_or(0), 8);
  let_pass(0.002);
  tree.write("a", "cpu.stat", cpu_stat(3'600'001'000));
  const auto next = sample();
  EXPECT_TRUE(next.sample) << "counted from the jump on";
  EXPECT_FALSE(next.impossible_cores);
}

TEST_F(SamplerTest, AUseOfAllVcpusThatTheKernelAccountsLateIsASample) {
  sampler.set_most_cores(8);
  sample();
  let_pass(0.002);
  tree.write("a", "cpu.stat", cpu_stat(400'000));
  EXPECT_TRUE(sample().sample);
}

TEST_F(SamplerTest, MalformedUsageIsNoSample) {
  sample();
  let_pass(0.002);
  tree.write("a", "cpu.stat", "usage_usec many\n");
  EXPECT_FALSE(sample().sample);
}

TEST_F(SamplerTest, ReadingsTooCloseTogetherAreNoRate) {
  // Two in a row lie within a millisecond unless the machine stalls just then; several tries tell that apart.
  bool seen = false;
  for (int i = 0; i < 100 && !seen; ++i) {
    const double begin = monotonic_s();
    sample();
    const auto second = sample();
    seen = monotonic_s() - begin < 0.001 && !second.sample;
  }
  EXPECT_TRUE(seen);
}

TEST_F(SamplerTest, SettingsAreReadInTurnsAndAfterARefresh) {
  sample();
  sample();
  tree.write("a", "cpuset.cpus", "3\n");
  int rounds = 0;
  while (sample().cpus != model::CpuSet{3}) ASSERT_LT(++rounds, static_cast<int>(Sampler::kSettingsPeriod));
  tree.write("a", "cpuset.cpus", "5\n");
  sampler.refresh("a");
  EXPECT_EQ(sample().cpus, model::CpuSet{5});
}

TEST_F(SamplerTest, IdlePriorityIsReadWhileItIsWanted) {
  tree.write("a", "cpu.idle", "1\n");
  EXPECT_EQ(sample().value(Attribute::cpu_idle), std::nullopt);
  sampler.want(Attribute::cpu_idle, true);
  EXPECT_EQ(sample().value(Attribute::cpu_idle), Value(CpuIdle{.idle = true}));
  tree.write("a", "cpu.idle", "0\n");
  sampler.refresh("a");
  EXPECT_EQ(sample().value(Attribute::cpu_idle), Value(CpuIdle()));
}

TEST_F(SamplerTest, CpuTimeFollows) {
  sample();
  tree.write("a", "cpu.stat", cpu_stat(2'500'000));
  EXPECT_DOUBLE_EQ(sample().cpu_time_s.value(), 2.5);
}

TEST_F(SamplerTest, TheCacheIsReadOnlyWhileItIsWanted) {
  EXPECT_EQ(sample().cache_bytes, std::nullopt);
  sampler.want_caches(true);
  EXPECT_EQ(sample().cache_bytes, 2048U);
  sampler.want_caches(false);
  EXPECT_EQ(sample().cache_bytes, std::nullopt);
}

TEST_F(SamplerTest, TheCacheIsReadInTurns) {
  sampler.want_caches(true);
  sample();
  tree.write("a", "memory.stat", "inactive_file 7\n");
  EXPECT_EQ(sample().cache_bytes, 2048U);
  sampler.refresh("a");
  EXPECT_EQ(sample().cache_bytes, 7U);
  std::filesystem::remove(tree.root() / "a" / "memory.stat");
  sampler.refresh("a");
  EXPECT_EQ(sample().cache_bytes, std::nullopt);
}

TEST_F(SamplerTest, MaxMeansNoLimit) {
  tree.write("a", "cpu.max", "max 100000\n");
  tree.write("a", "memory.high", "max\n");
  const auto reading = sample();
  EXPECT_EQ(reading.cpu_quota_cores, std::nullopt);
  EXPECT_EQ(reading.memory_high_bytes, std::nullopt);
}

TEST_F(SamplerTest, ALimitThatNoHostReachesIsNoLimit) {
  tree.write("a", "cpu.max", "17592186044415 1000\n");  // the most that the kernel takes
  tree.write("a", "memory.high", "9223372036854767616\n");
  const auto reading = sample();
  EXPECT_EQ(reading.cpu_quota_cores, std::nullopt);
  EXPECT_EQ(reading.memory_high_bytes, std::nullopt);
}

TEST_F(SamplerTest, AFileThatAppearsLaterIsPickedUp) {
  std::filesystem::remove(tree.root() / "a" / "memory.current");
  std::filesystem::remove(tree.root() / "a" / "cpu.pressure");
  sample();
  let_pass(0.002);
  auto reading = sample();
  ASSERT_TRUE(reading.sample);
  EXPECT_EQ(reading.sample->memory_bytes, std::nullopt);
  EXPECT_EQ(reading.cpu_pressure_some_avg10, std::nullopt);

  tree.write("a", "memory.current", "12288\n");
  tree.write("a", "cpu.pressure", pressure("2.00"));
  for (unsigned i = 0; i < Sampler::kSettingsPeriod; ++i) {
    let_pass(0.002);
    reading = sample();
  }
  ASSERT_TRUE(reading.sample);
  EXPECT_EQ(reading.sample->memory_bytes, 12288U);
  EXPECT_EQ(reading.cpu_pressure_some_avg10, 2.0);
}

TEST_F(SamplerTest, PressureIsReadWhereUsageMoved) {
  tree.write("a", "cpu.pressure", pressure("0.00"));
  sample();
  sample();
  let_pass(0.002);
  tree.write("a", "cpu.pressure", pressure("7.00"));
  tree.write("a", "cpu.stat", cpu_stat(2000));
  EXPECT_EQ(sample().cpu_pressure_some_avg10, 7.0);
}

TEST_F(SamplerTest, AGroupWithoutAnyFileIsNotGone) {
  tree.make("bare");
  sampler.add("bare", Cgroup::open(tree.root(), "bare").value());
  for (int i = 0; i < 3; ++i) {
    const auto reading = sampler.sample(1).at("bare");
    EXPECT_FALSE(reading.gone);
    EXPECT_FALSE(reading.sample);
    EXPECT_TRUE(reading.effective_cpus.empty());
  }
}

TEST_F(SamplerTest, ARemovedGroupIsGone) {
  tree.make("b");
  sampler.add("b", Cgroup::open(tree.root(), "b").value());
  tree.remove("b");
  EXPECT_TRUE(sampler.sample(1).at("b").gone);
  EXPECT_FALSE(sampler.sample(1).at("a").gone);
  sampler.remove("b");
  EXPECT_FALSE(sampler.sample(1).contains("b"));
}

TEST_F(SamplerTest, AnotherGroupUnderTheSameIdStartsAnew) {
  sample();
  let_pass(0.002);
  tree.write("a", "cpu.stat", cpu_stat(5000));
  sampler.add("a", Cgroup::open(tree.root(), "a").value());
  EXPECT_TRUE(sample().sample) << "the same group goes on";
  tree.remove("a");
  tree.make("a");
  tree.write("a", "cpu.stat", cpu_stat(9000));
  sampler.add("a", Cgroup::open(tree.root(), "a").value());
  let_pass(0.002);
  EXPECT_FALSE(sample().sample);
}

TEST_F(SamplerTest, BeyondItsShareOfTheDescriptorsItOpensForEachReading) {
  // In a process of its own: a hard limit cannot be raised again.
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    constexpr rlim_t limit = 80;
    const rlimit few{limit, limit};
    if (setrlimit(RLIMIT_NOFILE, &few) != 0) _exit(10);
    const auto before = open_files();
    Sampler frugal;
    for (int i = 0; i < 20; ++i) {
      const std::string name = "g" + std::to_string(i);
      tree.make(name);
      tree.write(name, "cpu.stat", cpu_stat(1));
      tree.write(name, "memory.current", "1\n");
      tree.write(name, "cpu.pressure", pressure("1.00"));
      frugal.add(name, Cgroup::open(tree.root(), name).value());
    }
    frugal.sample(1);
    if (open_files() - before != 20 + limit / 8 * 3) _exit(11);
    let_pass(0.002);
    for (const auto& [name, reading] : frugal.sample(2)) {
      if (!reading.sample || reading.sample->memory_bytes != 1 || reading.cpu_pressure_some_avg10 != 1.0)
        _exit(12);
    }
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0) << "11: keeps too many or too few, 12: does not read the others";
}

TEST_F(SamplerTest, RemovingAWorkloadClosesItsFiles) {
  sampler.remove("a");
  const auto before = open_files();
  sampler.add("a", Cgroup::open(tree.root(), "a").value());
  sample();
  EXPECT_GT(open_files(), before);
  sampler.remove("a");
  EXPECT_EQ(open_files(), before);
}

TEST_F(SamplerTest, ThrottlingIsTheShareOfThePeriodsThatWereCutShort) {
  const auto cut_short = [this](int periods) {
    tree.write("a", "cpu.stat",
               cpu_stat(1000) + "nr_periods 0\nnr_throttled " + std::to_string(periods) + "\n");
  };
  cut_short(3);
  const double earliest = monotonic_s();
  EXPECT_EQ(sample().cpu_throttled, std::nullopt) << "a share of time needs two readings";
  const double begin = monotonic_s();
  let_pass(0.25);
  cut_short(4);
  const double end = monotonic_s();
  const auto share = sample().cpu_throttled;
  const double latest = monotonic_s();
  ASSERT_TRUE(share);
  EXPECT_LE(*share, 0.1 / (end - begin));
  EXPECT_GE(*share, 0.1 / (latest - earliest));
  let_pass(0.002);
  cut_short(1000);
  EXPECT_EQ(sample().cpu_throttled, 1.0) << "the timer of a period may come late";
  let_pass(0.002);
  cut_short(0);
  EXPECT_EQ(sample().cpu_throttled, std::nullopt);
}

TEST_F(SamplerTest, WhatTheQuotaTookIsInCoresOfTheTimeBetweenTwoReadings) {
  const auto lose = [this](int us) {
    tree.write("a", "cpu.stat",
               cpu_stat(1000) + "nr_throttled 1\nthrottled_usec " + std::to_string(us) + "\n");
  };
  lose(0);
  const double earliest = monotonic_s();
  EXPECT_EQ(sample().cpu_lacked, std::nullopt);
  const double begin = monotonic_s();
  let_pass(0.05);
  lose(100'000);
  const double end = monotonic_s();
  const auto lacked = sample().cpu_lacked;
  const double latest = monotonic_s();
  ASSERT_TRUE(lacked);
  EXPECT_LE(*lacked, 0.1 / (end - begin));
  EXPECT_GE(*lacked, 0.1 / (latest - earliest));
}

TEST_F(SamplerTest, WithoutAQuotaNothingIsThrottled) {
  tree.write("a", "cpu.max", "max 100000\n");
  tree.write("a", "cpu.stat", cpu_stat(1000) + "nr_throttled 3\n");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(sample().cpu_throttled, std::nullopt);
    let_pass(0.002);
  }
  tree.write("a", "cpu.max", "150000 100000\n");
  sampler.refresh("a");
  EXPECT_EQ(sample().cpu_throttled, std::nullopt);
  let_pass(0.002);
  EXPECT_EQ(sample().cpu_throttled, 0.0);
}

TEST_F(SamplerTest, CpuMaxIsToldAsItsText) {
  EXPECT_EQ(sample().cpu_max, (CpuMax{150'000, 100'000}));
  tree.write("a", "cpu.max", "max 20000\n");
  sampler.refresh("a");
  EXPECT_EQ(sample().cpu_max, (CpuMax{std::nullopt, 20'000}));
  EXPECT_EQ(sample().cpu_quota_cores, std::nullopt);
}

// A bulk reading that knows the one group of the fixture.
class SamplerBulkTest : public SamplerTest {
 protected:
  SamplerBulkTest() {
    reading.subtree.run_ns = 1'000'000'000;
    reading.accounts.memory_bytes = 12345;
    reading.accounts.throttled = 0;
    bulk.read_ns = 5'000'000'000;
    bulk.find = [this](std::uint64_t id) { return known && id == cgroup_id() ? &reading : nullptr; };
  }
  std::uint64_t cgroup_id() const { return Cgroup::open(tree.root(), "a").value()->id(); }
  // One second later the group has used `cores`, and its threads waited once, for 3 us.
  void go_on(double cores, std::uint64_t waited_ns = 1'000'000) {
    bulk.read_ns += 1'000'000'000;
    reading.subtree.run_ns += static_cast<std::uint64_t>(cores * 1e9);
    reading.subtree.run_delay_ns += waited_ns;
    reading.subtree.delay.at(2) += 1;
    reading.subtree.dispatches += 1;
  }
  Sampler::Reading sample_bulk() { return sampler.sample(10, bulk).at("a"); }

  bool known = true;
  model::CgroupReading reading;
  BulkReading bulk;
};

TEST_F(SamplerBulkTest, UsageAndMemoryComeFromItAndNotFromFiles) {
  tree.write("a", "cpu.stat", "nonsense");
  tree.write("a", "memory.current", "nonsense");
  EXPECT_FALSE(sample_bulk().sample);
  go_on(1.5);
  const auto sample = sample_bulk().sample;
  ASSERT_TRUE(sample);
  EXPECT_DOUBLE_EQ(sample->cpu_cores, 1.5);
  EXPECT_EQ(sample->memory_bytes, 12345U);
}

TEST_F(SamplerBulkTest, FiguresThatOnlyItHasAreThoseBetweenTwoReadings) {
  reading.subtree.delay.at(20) = 1000;
  sample_bulk();
  go_on(0.1);
  const auto sample = sample_bulk().sample.value();
  EXPECT_EQ(sample.runq_latency_p50_us, model::delay_quantile_us({}, {0, 0, 1}, 0.5));
  EXPECT_EQ(sample.runq_latency_us, model::delay_quantile_us({}, {0, 0, 1}, 0.99));
  EXPECT_EQ(sample.llc_mpki, std::nullopt) << "no counters were read";
}

TEST_F(SamplerBulkTest, AThreadThatRanOnDidNotWait) {
  sample_bulk();
  bulk.read_ns += 1'000'000'000;
  reading.subtree.run_ns += 1'000'000'000;
  const auto sample = sample_bulk().sample.value();
  EXPECT_EQ(sample.runq_latency_us, 0.0F);
  EXPECT_EQ(sample.runq_latency_p50_us, 0.0F);
}

TEST_F(SamplerBulkTest, CountersGiveTheCacheMisses) {
  reading.subtree.hardware = model::HardwareCounts{1000, 0, 0, 7};
  sample_bulk();
  go_on(0.1);
  reading.subtree.hardware = model::HardwareCounts{3000, 0, 0, 11};
  EXPECT_EQ(sample_bulk().sample.value().llc_mpki, 2.0);
}

TEST_F(SamplerBulkTest, TheRatesAfterAnImpossibleJumpBeginAtTheJump) {
  sampler.set_most_cores(8);
  reading.subtree.hardware = model::HardwareCounts{1000, 500, 0, 7};
  sample_bulk();
  go_on(3600);
  reading.subtree.hardware = model::HardwareCounts{3000, 3500, 0, 1007};
  ASSERT_TRUE(sample_bulk().impossible_cores);
  go_on(0.1);
  reading.subtree.hardware = model::HardwareCounts{5000, 6500, 0, 1011};
  const auto next = sample_bulk();
  ASSERT_TRUE(next.sample);
  EXPECT_DOUBLE_EQ(next.llc_misses_per_s.value(), 4.0);
  EXPECT_EQ(next.sample->llc_mpki, 2.0);
}

TEST_F(SamplerBulkTest, CountersGiveCyclesAndMissesOfOneIntervalOnly) {
  reading.subtree.hardware = model::HardwareCounts{1000, 500, 0, 7};
  EXPECT_EQ(sample_bulk().cpi, std::nullopt);
  go_on(0.1);
  reading.subtree.hardware = model::HardwareCounts{3000, 3500, 0, 11};
  const auto counted = sample_bulk();
  EXPECT_EQ(counted.cpi, 1.5);
  EXPECT_DOUBLE_EQ(counted.llc_misses_per_s.value(), 4.0);
  const auto idle = sample_bulk();
  EXPECT_EQ(idle.cpi, std::nullopt);
  EXPECT_EQ(idle.llc_misses_per_s, std::nullopt);
}

TEST_F(SamplerBulkTest, ThrottlingComesFromItToo) {
  tree.write("a", "cpu.stat", "nonsense");
  reading.accounts.throttled = 7;
  EXPECT_EQ(sample_bulk().cpu_throttled, std::nullopt);
  go_on(1.5);
  *reading.accounts.throttled += 4;
  EXPECT_DOUBLE_EQ(sample_bulk().cpu_throttled.value(), 0.4);
}

TEST_F(SamplerBulkTest, ThrottlingThatItDoesNotCountComesFromTheFile) {
  reading.accounts.throttled.reset();
  tree.write("a", "cpu.stat", cpu_stat(1000) + "nr_throttled 3\n");
  sample_bulk();
  go_on(1.5);
  tree.write("a", "cpu.stat", cpu_stat(1000) + "nr_throttled 8\n");
  EXPECT_DOUBLE_EQ(sample_bulk().cpu_throttled.value(), 0.5);
}

TEST_F(SamplerBulkTest, CpuTimeIsTheKernelsOwnCountFromThereOrFromTheFile) {
  EXPECT_DOUBLE_EQ(sample_bulk().cpu_time_s.value(), 1e-3);
  reading.accounts.usage_ns = 3'000'000'000;
  EXPECT_DOUBLE_EQ(sample_bulk().cpu_time_s.value(), 3);
}

TEST_F(SamplerBulkTest, AGroupItDoesNotKnowIsReadFromFiles) {
  known = false;
  sample_bulk();
  let_pass(0.005);
  tree.write("a", "cpu.stat", cpu_stat(3000));
  const auto sample = sample_bulk().sample;
  ASSERT_TRUE(sample);
  EXPECT_EQ(sample->memory_bytes, 4096U);
  EXPECT_EQ(sample->runq_latency_us, std::nullopt);
}

TEST_F(SamplerBulkTest, WithoutAccountsAFileGivesTheMemory) {
  reading.accounts = {};
  sample_bulk();
  go_on(0.5);
  const auto sample = sample_bulk().sample;
  ASSERT_TRUE(sample);
  EXPECT_DOUBLE_EQ(sample->cpu_cores, 0.5);
  EXPECT_EQ(sample->memory_bytes, 4096U);
}

// The kernel's own usage is not read anew each time.
TEST_F(SamplerBulkTest, EverySampleIsOfWhatWasCountedSinceTheOneBefore) {
  reading.accounts.usage_ns = 1;
  sample_bulk();
  for (const double cores : {0.5, 1.5, 0.25}) {
    go_on(cores);
    EXPECT_DOUBLE_EQ(sample_bulk().sample.value().cpu_cores, cores);
  }
}

TEST_F(SamplerBulkTest, WhatTwoSourcesCountedMakesNoRate) {
  sample_bulk();
  known = false;
  tree.write("a", "cpu.stat", cpu_stat(900'000'000));
  EXPECT_FALSE(sample_bulk().sample) << "from the bulk reading to the file";
  known = true;
  go_on(1);
  EXPECT_FALSE(sample_bulk().sample) << "and back";
  go_on(1);
  EXPECT_TRUE(sample_bulk().sample);
}

TEST_F(SamplerBulkTest, PressureIsReadOnlyWhereThreadsWaited) {
  tree.write("a", "cpu.pressure", pressure("0.00"));
  sample_bulk();
  tree.write("a", "cpu.pressure", pressure("2.00"));
  go_on(1, 1000);
  EXPECT_EQ(sample_bulk().cpu_pressure_some_avg10, 0.0);
  go_on(1, 10'000'000);
  EXPECT_EQ(sample_bulk().cpu_pressure_some_avg10, 2.0);
}

TEST_F(SamplerBulkTest, AVanishedGroupIsGoneThoughTheLastReadingHadIt) {
  sample_bulk();
  tree.remove("a");
  known = false;
  EXPECT_TRUE(sample_bulk().gone);
}

TEST(ControlFiles, UsageIsFoundWhereverItsLineStands) {
  EXPECT_EQ(parse_cpu_usage_usec("usage_usec 42\nuser_usec 1\n"), 42U);
  EXPECT_EQ(parse_cpu_usage_usec("user_usec 1\nusage_usec 18446744073709551615"), 18446744073709551615U);
  EXPECT_EQ(parse_cpu_usage_usec("usage_usec 18446744073709551616"), std::nullopt);
  EXPECT_EQ(parse_cpu_usage_usec("usage_usec -1"), std::nullopt);
  EXPECT_EQ(parse_cpu_usage_usec("usage_usec"), std::nullopt);
  EXPECT_EQ(parse_cpu_usage_usec(""), std::nullopt);
}

TEST(ControlFiles, ThrottledPeriodsAreThoseOfTheGroupsOwnQuota) {
  EXPECT_EQ(parse_nr_throttled("usage_usec 9\nnr_periods 8\nnr_throttled 7\nthrottled_usec 6\n"), 7U);
  EXPECT_EQ(parse_nr_throttled("usage_usec 9\nuser_usec 1\n"), std::nullopt);
  EXPECT_EQ(parse_nr_throttled("nr_throttled -1\n"), std::nullopt);
}

TEST(ControlFiles, TheCacheNotUsedOfLateIsOneLineOfMemoryStat) {
  EXPECT_EQ(parse_inactive_file("anon 1\ninactive_file 20\nactive_file 3\n"), 20U);
  EXPECT_EQ(parse_inactive_file("xinactive_file 20\n"), std::nullopt);
  EXPECT_EQ(parse_inactive_file("inactive_file -1\n"), std::nullopt);
  EXPECT_EQ(parse_inactive_file(""), std::nullopt);
}

TEST(ControlFiles, BytesGoAsFarAsDoublesAreExact) {
  EXPECT_EQ(parse_bytes("9007199254740992\n"), 9007199254740992U);
  EXPECT_EQ(parse_bytes("9007199254740993\n"), std::nullopt);
  EXPECT_EQ(parse_bytes("18446744073709551615\n"), std::nullopt);
  EXPECT_EQ(parse_bytes("max\n"), std::nullopt);
}

TEST(ControlFiles, PressureIsAPercentage) {
  EXPECT_EQ(parse_some_avg10("some avg10=12.34 avg60=0.00 avg300=0.00 total=1\nfull avg10=9.00"), 12.34);
  EXPECT_EQ(parse_some_avg10("full avg10=9.00 avg60=0 avg300=0 total=1\n"), std::nullopt);
  EXPECT_EQ(parse_some_avg10("some avg10=nan"), std::nullopt);
  EXPECT_EQ(parse_some_avg10("some avg10=101.00"), std::nullopt);
  EXPECT_EQ(parse_some_avg10("some avg10="), std::nullopt);
}

TEST(ControlFiles, PopulatedIsOneOrZero) {
  EXPECT_EQ(parse_populated("populated 1\nfrozen 0\n"), true);
  EXPECT_EQ(parse_populated("frozen 1\npopulated 0\n"), false);
  EXPECT_EQ(parse_populated("populated\n"), std::nullopt);
  EXPECT_EQ(parse_populated(""), std::nullopt);
}

}  // namespace
}  // namespace berth::cgroup
