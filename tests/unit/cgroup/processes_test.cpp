// SPDX-License-Identifier: Apache-2.0
#include "cgroup/processes.h"

#include "child.h"
#include "fake_tree.h"
#include "own_mounts.h"
#include "tests/patience.h"

#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace berth::cgroup {
namespace {

using test::Child;

class ProcessesTest : public testing::Test {
 protected:
  std::shared_ptr<Cgroup> group(const std::string& procs) {
    tree.make("a");
    tree.write("a", "cgroup.procs", procs);
    return *Cgroup::open(tree.root(), "a");
  }
  static bool dies(Child& child) {
    return berth::test::eventually([&] { return child.died_of() != 0; });
  }
  test::FakeTree tree;
};

TEST_F(ProcessesTest, AreThoseOfTheGroupAndOfAllBelowIt) {
  Child own;
  Child inner;
  const auto a = group(std::to_string(own.pid()) + "\n");
  tree.make("a/b");
  tree.make("a/b/c");
  tree.write("a/b/c", "cgroup.procs", std::to_string(inner.pid()) + "\n");
  const auto found = Processes::of(*a);
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->all().size(), 2U);
  EXPECT_TRUE(found->contains(own.pid()));
  EXPECT_TRUE(found->contains(inner.pid()));
  EXPECT_FALSE(found->contains(getpid()));
  EXPECT_TRUE(found->any_alive());
}

TEST_F(ProcessesTest, OfAThreadedGroupAreThoseOfItsThreads) {
  Child child;
  const auto a = group("");
  std::filesystem::remove(tree.root() / "a/cgroup.procs");
  std::filesystem::create_directory(tree.root() / "a/cgroup.procs");  // any error but that it is gone
  tree.write("a", "cgroup.threads", std::to_string(child.pid()) + "\n");
  const auto found = Processes::of(*a);
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_TRUE(found->contains(child.pid()));
  tree.write_proc("71/status", "Name:\tx\nUmask:\t0022\nTgid:\t70\nNgid:\t0\n");
  tree.write("a", "cgroup.threads", "71\n72\n");
  EXPECT_EQ(pids_below(*a, tree.proc()), (std::vector<pid_t>{70}));
}

// A delegated owner may make as many groups as it likes, and the event loop walks them.
TEST_F(ProcessesTest, VeryDeepAndVeryWideTreesAreCutOff) {
  Child shallow;
  Child deep;
  const auto a = group(std::to_string(shallow.pid()) + "\n");
  std::string path = "a";
  for (int level = 0; level < 100; ++level) tree.make(path += "/b");
  tree.write(path, "cgroup.procs", std::to_string(deep.pid()) + "\n");
  EXPECT_EQ(pids_below(*a), (std::vector<pid_t>{shallow.pid()}));

  for (int wide = 0; wide < 5000; ++wide)
    std::filesystem::create_directory(tree.root() / "a" / ("w" + std::to_string(wide)));
  std::string procs;
  for (int number = 1; number <= 100'000; ++number) procs += std::to_string(number) + '\n';
  tree.write("a", "cgroup.procs", procs);
  EXPECT_EQ(pids_below(*a).size(), 65'536U);
}

// Its owner could name any process there, and berth would end it.
TEST_F(ProcessesTest, AFileSystemThatIsMountedBelowNamesNone) {
  Child own;
  Child innocent;
  const auto a = group(std::to_string(own.pid()) + "\n");
  tree.make("a/mine");
  std::optional<bool> named;
  const bool mounted = test::with_mount_at(tree.root() / "a/mine", [&] {
    tree.write("a/mine", "cgroup.procs", std::to_string(innocent.pid()) + "\n");
    named = Processes::of(*a)->contains(innocent.pid());
  });
  if (!mounted) GTEST_SKIP() << "mounting needs root";
  EXPECT_EQ(named, false);
}

TEST_F(ProcessesTest, NumbersThatAreNobodysAreLeftOut) {
  Child child;
  const pid_t ended = child.pid();
  child.kill_and_reap();
  const auto found =
      Processes::of(*group("0\nnonsense\n-5\n99999999999999\n" + std::to_string(ended) + "\n"));
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->empty());
  EXPECT_FALSE(found->any_alive());
}

TEST_F(ProcessesTest, OneThatIsNotReapedYetIsNoneAnyMore) {
  Child child;
  ::kill(child.pid(), SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child.pid()), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(Processes::of(*group(std::to_string(child.pid()) + "\n"))->empty());
}

TEST_F(ProcessesTest, AGroupThatVanishedIsGone) {
  const auto a = group("");
  tree.remove("a");
  const auto found = Processes::of(*a);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind(), model::ErrorKind::gone);
}

TEST_F(ProcessesTest, ASignalReachesEachOfThem) {
  Child first;
  Child second;
  const auto found =
      Processes::of(*group(std::to_string(first.pid()) + "\n" + std::to_string(second.pid()) + "\n"));
  ASSERT_TRUE(found->signal(SIGTERM));
  EXPECT_TRUE(dies(first));
  EXPECT_TRUE(dies(second));
  EXPECT_EQ(first.died_of(), SIGTERM);
  EXPECT_FALSE(found->any_alive());
  EXPECT_TRUE(found->signal(SIGTERM)) << "who has ended needs no signal";
}

TEST_F(ProcessesTest, OneThatEndedIsNotTakenForWhoeverHasItsNumberNow) {
  Child child;
  const auto found = Processes::of(*group(std::to_string(child.pid()) + "\n"));
  ASSERT_EQ(found->all().size(), 1U);
  child.kill_and_reap();
  const auto sent = signal_process(found->all().front(), SIGTERM);
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().kind(), model::ErrorKind::gone);
}

TEST_F(ProcessesTest, PopulatedIsAsTheKernelSays) {
  const auto a = group("");
  tree.write("a", "cgroup.events", "populated 1\nfrozen 0\n");
  EXPECT_TRUE(is_populated(*a).value());
  tree.write("a", "cgroup.events", "populated 0\nfrozen 0\n");
  EXPECT_FALSE(is_populated(*a).value());
  tree.remove("a");
  EXPECT_EQ(is_populated(*a).error().kind(), model::ErrorKind::gone);
}

TEST_F(ProcessesTest, AllAreKilledByTheGroupItself) {
  const auto a = group("");
  tree.write("a", "cgroup.kill", "");
  ASSERT_TRUE(kill_all(*a));
  EXPECT_EQ(a->read("cgroup.kill").value(), "1");
}

TEST_F(ProcessesTest, WithoutThatFileByASignalThatCannotBeIgnored) {
  Child child([] { std::signal(SIGTERM, SIG_IGN); });
  ASSERT_TRUE(kill_all(*group(std::to_string(child.pid()) + "\n")));
  EXPECT_TRUE(dies(child));
  EXPECT_EQ(child.died_of(), SIGKILL);
}

TEST_F(ProcessesTest, AGroupThatTookOverThePathIsNotKilled) {
  const auto a = group("");
  tree.write("a", "cgroup.kill", "");
  std::filesystem::rename(tree.root() / "a", tree.root() / "was-a");
  tree.make("a");
  tree.write("a", "cgroup.kill", "");
  ASSERT_TRUE(kill_all(*a));
  EXPECT_EQ((*Cgroup::open(tree.root(), "a"))->read("cgroup.kill").value(), "");
}

}  // namespace
}  // namespace berth::cgroup
