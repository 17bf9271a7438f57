// SPDX-License-Identifier: Apache-2.0
// Waits for this machine's vCPUs, and who ran meanwhile, against the kernel's own sums.
#include "ebpf/blame.h"
#include "ebpf/slices.h"
#include "tests/host/ebpf_fixture.h"

#include <deque>
#include <map>
#include <set>
#include <vector>

namespace berth::ebpf::test {
namespace {

std::uint64_t run_delay_ns(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/schedstat");
  std::uint64_t run = 0;
  std::uint64_t delay = 0;
  if (!(file >> run >> delay)) throw std::runtime_error("schedstat");
  return delay;
}

constexpr std::uint64_t kRoot = 1;

void write_to(const std::filesystem::path& file, const std::string& text) {
  std::ofstream out(file);
  out << text;
  if (!out.flush()) throw std::runtime_error("cannot write " + file.string());
}

void compute() { spin(1'000'000); }

class BlameHost : public EbpfHost {
 protected:
  void SetUp() override {
    EbpfHost::SetUp();
    if (IsSkipped()) return;
    tree->make("web");
    tree->make("hog");
    auto started = Blame::start(logs);
    ASSERT_TRUE(started) << started.error().message();
    blamer = std::move(*started);
    // As berthd has it.
    start(options());
    ASSERT_GE(collector->after_switch(), 0);
    ASSERT_TRUE(blamer->run_after(collector->after_switch()));
    web = inode(tree->path("web"));
    blamer->ask({{web, 2}});
  }
  Process& run(const char* group, void (*work)(), int cpu) {
    processes.emplace_back(work);
    pin(processes.back().pid(), cpu);
    processes.back().move_to(tree->path(group));
    return processes.back();
  }
  // Who ran, in shares of the waits of two seconds.
  std::map<std::uint64_t, double> shares(const Process& waits) {
    usleep(300'000);
    (void)blamer->read();
    const std::uint64_t before = run_delay_ns(waits.pid());
    usleep(2'000'000);
    const auto grown = blamer->read();
    delayed = static_cast<double>(run_delay_ns(waits.pid()) - before);
    std::map<std::uint64_t, double> shares;
    sum = 0;
    for (const auto& wait : grown) sum += static_cast<double>(wait.ns);
    // What else this machine does is in its root group, and no matter here.
    double of_test = 0;
    for (const auto& wait : grown) of_test += wait.by == kRoot ? 0 : static_cast<double>(wait.ns);
    for (const auto& wait : grown) {
      if (wait.by != kRoot) shares[wait.by] += static_cast<double>(wait.ns) / of_test;
    }
    for (const auto& [by, share] : shares)
      std::printf("%llx %.4f\n", static_cast<unsigned long long>(by), share);
    std::printf("sum %.1f ms, run_delay %.1f ms\n", sum / 1e6, delayed / 1e6);
    return shares;
  }

  std::unique_ptr<Blame> blamer;
  std::deque<Process> processes;
  std::uint64_t web = 0;
  double sum = 0;
  double delayed = 0;
};

TEST_F(BlameHost, AHogIsBlamedForTheWaitsBesideIt) {
  const Process& waits = run("web", compute, 0);
  run("hog", compute, 0);
  const auto by = shares(waits);
  EXPECT_NEAR(sum, delayed, 0.05 * delayed);
  ASSERT_TRUE(by.contains(inode(tree->path("hog"))));
  EXPECT_GT(by.at(inode(tree->path("hog"))), 0.8);
  const auto culprit = blamer->culprit(inode(tree->path("hog")));
  EXPECT_EQ(culprit.path, tree->id("hog"));
  EXPECT_EQ(culprit.ids, (std::vector<std::uint64_t>{inode(tree->base()), inode(tree->path("hog"))}));
}

TEST_F(BlameHost, ItCountsTheSameWhereSamplingRestsOrBeginsAgain) {
  const Process& waits = run("web", compute, 0);
  run("hog", compute, 0);
  const auto expect_hog = [&] {
    ASSERT_TRUE(blamer->run_after(collector->after_switch()));
    const auto by = shares(waits);
    EXPECT_NEAR(sum, delayed, 0.05 * delayed);
    EXPECT_GT(by.at(inode(tree->path("hog"))), 0.8);
  };
  const auto switches = [&] { return blamer->cost().switches; };
  collector->rest();
  EXPECT_EQ(collector->after_switch(), -1);
  expect_hog();
  ASSERT_TRUE(collector->begin_again());
  expect_hog();
  // Not twice on a switch.
  const std::uint64_t counted = collector->cost().switches;
  const std::uint64_t divided = switches();
  usleep(500'000);
  const auto more = static_cast<double>(collector->cost().switches - counted);
  EXPECT_NEAR(static_cast<double>(switches() - divided), more, 0.05 * more);
}

TEST_F(BlameHost, WaitsForThreadsOfItsOwnAreItsOwn) {
  tree->make("web/pool");
  const Process& waits = run("web/pool", compute, 0);
  run("web", compute, 0);
  const auto by = shares(waits);
  EXPECT_GT(by.at(web) + by.at(inode(tree->path("web/pool"))), 0.8);
}

TEST_F(BlameHost, AWaitThatMovesToAnotherProcessorIsDividedOverBoth) {
  if (sysconf(_SC_NPROCESSORS_ONLN) < 2) GTEST_SKIP() << "one processor";
  tree->make("hog2");
  const Process& waits = run("web", compute, 0);
  run("hog", compute, 0);
  run("hog2", compute, 1);
  Process mover([pid = waits.pid(), cpu = 0]() mutable {
    pin(pid, cpu ^= 1);
    usleep(1'500);
  });
  const auto by = shares(waits);
  EXPECT_NEAR(sum, delayed, 0.08 * delayed);
  EXPECT_GT(by.at(inode(tree->path("hog"))), 0.2);
  EXPECT_GT(by.at(inode(tree->path("hog2"))), 0.2);
}

TEST_F(BlameHost, TimeThatIsTakenByTheQuotaIsItsFault) {
  // Of a hybrid hierarchy, version 1 has the quotas.
  const std::filesystem::path old = "/sys/fs/cgroup/cpu" / std::filesystem::path(tree->base().filename());
  const bool hybrid = std::filesystem::exists("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  const Process& waits = run("web", compute, 0);
  if (hybrid) {
    std::filesystem::create_directory(old);
    write_to(old / "cpu.cfs_quota_us", "20000");
    write_to(old / "tasks", std::to_string(waits.pid()));
  } else {
    write_to(tree->hierarchy().root / "cgroup.subtree_control", "+cpu");
    write_to(tree->base() / "cgroup.subtree_control", "+cpu");
    write_to(tree->path("web") / "cpu.max", "20000 100000");
  }
  const auto by = shares(waits);
  processes.clear();
  if (hybrid) std::filesystem::remove(old);
  EXPECT_GT(by.at(BERTH_BY_QUOTA), 0.9);
  EXPECT_NEAR(by.at(BERTH_BY_QUOTA) * sum, 1.6e9, 0.2e9);
}

TEST_F(BlameHost, WithoutAQuestionNothingIsDivided) {
  blamer->ask({});
  run("web", compute, 0);
  const Process& waits = run("hog", compute, 0);
  EXPECT_TRUE(shares(waits).empty());
}

TEST_F(BlameHost, AUserWithManyGroupsTakesNoPlaceOfOthers) {
  tree->make("crowd");
  const Process& waits = run("web", compute, 0);
  // More groups than the user's part, and their processes beside a thread that waits.
  processes.emplace_back([path = tree->path("crowd"), number = 0]() mutable {
    const auto group = path / std::to_string(number++);
    mkdir(group.c_str(), 0755);
    const pid_t child = fork();
    if (child == 0) {
      std::ofstream(group / "cgroup.procs") << 0;
      spin(100'000);
      _exit(0);
    }
    waitpid(child, nullptr, 0);
  });
  pin(processes.back().pid(), 0);
  std::set<std::uint64_t> culprits;
  const auto crowded = [&] {
    for (const auto& wait : blamer->read()) culprits.insert(wait.by);
    return culprits.contains(inode(tree->path("crowd")));
  };
  EXPECT_TRUE(berth::test::eventually(crowded)) << culprits.size();
  EXPECT_LE(culprits.size(), 256U + 20);
  EXPECT_GE(culprits.size(), 256U);
  run("hog", compute, 0);
  const auto by = shares(waits);
  EXPECT_TRUE(by.contains(inode(tree->path("hog"))));
  // With room made, groups that come have their names again.
  blamer->make_room();
  usleep(300'000);
  std::size_t own = 0;
  for (const auto& wait : blamer->read()) {
    const auto path = blamer->culprit(wait.by).path;
    own += path.starts_with(tree->id("crowd") + "/") ? 1 : 0;
  }
  EXPECT_GT(own, 0U);
  EXPECT_LT(own, 256U);
}

TEST_F(BlameHost, AWaitOutsideTheGroupIsNotCountedAfterTheReturn) {
  if (sysconf(_SC_NPROCESSORS_ONLN) < 2) GTEST_SKIP() << "one processor";
  Process& waits = run("web", compute, 0);
  run("hog", compute, 0);
  usleep(100'000);
  waits.move_to(tree->path("hog"));
  usleep(1'500'000);
  (void)blamer->read();
  // It returns and moves on at once, mostly before it runs.
  waits.move_to(tree->path("web"));
  for (int n = 0; n < 10; ++n) pin(waits.pid(), (n + 1) % 2);
  std::uint64_t waited = 0;
  for (const auto& wait : blamer->read()) waited += wait.ns;
  EXPECT_LT(waited, 300'000'000U);
}

}  // namespace
}  // namespace berth::ebpf::test
