// SPDX-License-Identifier: Apache-2.0
// Compares the counts at the context switch with the kernel's own figures.
#include "tests/host/ebpf_fixture.h"

#include <functional>
#include <vector>

#include <sys/wait.h>

namespace berth::ebpf::test {
namespace {

// /proc/PID/schedstat: time run, time waited, both ns, and dispatches.
struct SchedStat {
  std::uint64_t run_ns = 0, delay_ns = 0, dispatches = 0;
};
SchedStat schedstat(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/schedstat");
  SchedStat read;
  if (!(file >> read.run_ns >> read.delay_ns >> read.dispatches)) throw std::runtime_error("schedstat");
  return read;
}

// Run time of a group that leaves little to chance.
constexpr std::uint64_t kEnoughNs = 500'000'000;

// Off every processor, so that all clocks of the kernel stand.
void freeze(const std::vector<Process>& processes) {
  for (const Process& process : processes) kill(process.pid(), SIGSTOP);
  for (const Process& process : processes) {
    int status = 0;
    waitpid(process.pid(), &status, WUNTRACED);
    // The stop is reported shortly before the process has left its processor.
    while (true) {
      std::ifstream file("/proc/" + std::to_string(process.pid()) + "/stat");
      std::string all((std::istreambuf_iterator<char>(file)), {});
      if (all.find(") T ") != std::string::npos) break;
      usleep(1000);
    }
  }
  usleep(20'000);
}

void thaw(const std::vector<Process>& processes) {
  for (const Process& process : processes) kill(process.pid(), SIGCONT);
}

// `count` processes in one group for 2 s and until they have run for 0.5 s, moved about by `disturb`; what
// was counted against what the kernel says, as fractions of the latter.
class AccuracyTest : public EbpfHost {
 protected:
  void measure(int count, const std::function<void(std::vector<Process>&)>& disturb) {
    Options with = options();
    if (few_places) with.tasks = 8;
    start(with);
    if (!collector) return;
    tree->make("a");
    const std::uint64_t id = inode(tree->path("a"));
    std::vector<Process> processes;
    for (int i = 0; i < count; ++i) {
      processes.emplace_back([i] {
        // Some compute, some sleep in between.
        spin(2'000'000);
        if (i % 2) usleep(300);
      });
      processes.back().move_to(tree->path("a"));
    }
    freeze(processes);
    const CgroupReading before = reading(id);
    SchedStat kernel_before = sum(processes);
    const std::uint64_t usage_before = usage_ns(tree->path("a"));
    thaw(processes);
    const double end = now_s() + 2;
    ASSERT_TRUE(berth::test::eventually([&] {
      disturb(processes);
      return now_s() > end && usage_ns(tree->path("a")) > usage_before + kEnoughNs;
    })) << "the machine is too busy to compare";
    freeze(processes);
    const CgroupReading after = reading(id);
    const SchedStat kernel_after = sum(processes);
    const std::uint64_t usage_after = usage_ns(tree->path("a"));

    const auto run = static_cast<double>(kernel_after.run_ns - kernel_before.run_ns);
    const auto delay = static_cast<double>(kernel_after.delay_ns - kernel_before.delay_ns);
    const auto usage = static_cast<double>(usage_after - usage_before);
    ASSERT_GT(run, 2e8) << "the machine is too busy to compare";
    ASSERT_GT(delay, 1e8) << "nothing waited";
    EXPECT_NEAR(static_cast<double>(after.subtree.run_ns - before.subtree.run_ns), run, 0.005 * run);
    EXPECT_NEAR(static_cast<double>(after.subtree.run_delay_ns - before.subtree.run_delay_ns), delay,
                0.005 * delay);
    EXPECT_NEAR(static_cast<double>(after.subtree.run_ns - before.subtree.run_ns), usage, 0.005 * usage);
    const auto dispatches = static_cast<double>(kernel_after.dispatches - kernel_before.dispatches);
    EXPECT_NEAR(static_cast<double>(after.subtree.dispatches - before.subtree.dispatches), dispatches,
                0.005 * dispatches + 2);
    if (after.accounts.usage_ns && before.accounts.usage_ns) {
      EXPECT_NEAR(static_cast<double>(*after.accounts.usage_ns - *before.accounts.usage_ns), usage, 2000);
    }
    // The histogram holds every dispatch, and its mean is the sum's.
    std::uint64_t entries = 0;
    for (std::size_t bucket = 0; bucket < model::kDelayBuckets; ++bucket) {
      entries += after.subtree.delay[bucket] - before.subtree.delay[bucket];
    }
    EXPECT_NEAR(static_cast<double>(entries), dispatches, 0.005 * dispatches + 2);
    std::printf(
        "run %+.4f %%, delay %+.4f %%, usage %+.4f %%, %.0f dispatches, p50 %.1f us, p99 %.1f us\n",
        100 * (static_cast<double>(after.subtree.run_ns - before.subtree.run_ns) / run - 1),
        100 * (static_cast<double>(after.subtree.run_delay_ns - before.subtree.run_delay_ns) / delay - 1),
        100 * (static_cast<double>(after.subtree.run_ns - before.subtree.run_ns) / usage - 1), dispatches,
        model::delay_quantile_us(before.subtree.delay, after.subtree.delay, 0.5).value_or(-1),
        model::delay_quantile_us(before.subtree.delay, after.subtree.delay, 0.99).value_or(-1));
  }
  bool few_places = false;  // for tasks, so that most have storage instead

 private:
  static SchedStat sum(const std::vector<Process>& processes) {
    SchedStat all;
    for (const Process& process : processes) {
      const SchedStat one = schedstat(process.pid());
      all.run_ns += one.run_ns;
      all.delay_ns += one.delay_ns;
      all.dispatches += one.dispatches;
    }
    return all;
  }
};

TEST_F(AccuracyTest, PinnedProcessesRunAndWaitAsTheKernelSays) {
  measure(4, [first = true](std::vector<Process>& processes) mutable {
    if (std::exchange(first, false)) {
      for (const Process& process : processes) pin(process.pid(), 0);
    }
    usleep(10'000);
  });
}

TEST_F(AccuracyTest, MigratingProcessesRunAndWaitAsTheKernelSays) {
  const int cpus = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  if (cpus < 2) GTEST_SKIP() << "one processor";
  measure(2 * cpus + 1, [cpus, turn = 0](std::vector<Process>& processes) mutable {
    for (const Process& process : processes) pin(process.pid(), turn++ % cpus);
    usleep(2'000);
  });
}

TEST_F(AccuracyTest, TasksThatFindTheirPlaceTakenAreCountedToo) {
  few_places = true;
  measure(40, [](std::vector<Process>&) { usleep(10'000); });
}

// With so few places, and addresses that the kernel gives out again at once.
TEST_F(EbpfHost, TasksThatComeAndGoAreCreditedWhatTheyUsedThemselves) {
  Options with = options();
  with.tasks = 8;
  start(with);
  if (!collector) return;
  tree->make("a");
  const std::uint64_t id = inode(tree->path("a"));
  std::vector<Process> breeders;
  breeders.emplace_back([] {
    const pid_t child = fork();
    if (child == 0) {
      spin(100'000);
      _exit(0);
    }
    waitpid(child, nullptr, 0);
  });
  breeders.back().move_to(tree->path("a"));
  freeze(breeders);
  const CgroupReading before = reading(id);
  const std::uint64_t usage_before = usage_ns(tree->path("a"));
  thaw(breeders);
  const double end = now_s() + 2;
  ASSERT_TRUE(berth::test::eventually([&] {
    return now_s() > end && usage_ns(tree->path("a")) > usage_before + kEnoughNs;
  })) << "the machine is too busy to compare";
  freeze(breeders);
  const CgroupReading after = reading(id);
  const auto usage = static_cast<double>(usage_ns(tree->path("a")) - usage_before);
  ASSERT_GT(usage, 2e8) << "the machine is too busy to compare";
  EXPECT_GT(after.subtree.dispatches - before.subtree.dispatches, 500U);
  EXPECT_NEAR(static_cast<double>(after.subtree.run_ns - before.subtree.run_ns), usage, 0.005 * usage);
}

TEST_F(EbpfHost, ATaskThatNeverLeavesItsProcessorIsCountedToo) {
  start(options());
  if (!collector) return;
  tree->make("a");
  const std::uint64_t id = inode(tree->path("a"));
  Process burner([] {});
  burner.move_to(tree->path("a"));
  // The burner runs on while a busy machine stops the test: what the kernel says is read before and after
  // each reading.
  struct Moment {
    std::uint64_t usage_before, run_ns, usage_after;
  };
  const auto moment = [&] {
    Moment now{};
    now.usage_before = usage_ns(tree->path("a"));
    now.run_ns = reading(id).subtree.run_ns;
    now.usage_after = usage_ns(tree->path("a"));
    return now;
  };
  const Moment first = moment();
  ASSERT_TRUE(
      berth::test::eventually([&] { return usage_ns(tree->path("a")) > first.usage_after + kEnoughNs; }));
  const Moment last = moment();
  const auto run = static_cast<double>(last.run_ns - first.run_ns);
  const auto least = static_cast<double>(last.usage_before - first.usage_after);
  const auto most = static_cast<double>(last.usage_after - first.usage_before);
  // All stand at the last tick or switch; 10 ms is more than a tick.
  EXPECT_GE(run, 0.995 * least - 1e7);
  EXPECT_LE(run, 1.005 * most + 1e7);
}

}  // namespace
}  // namespace berth::ebpf::test
