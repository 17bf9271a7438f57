// SPDX-License-Identifier: Apache-2.0
#include "spark/bystanders.h"

#include "tests/unit/spark/fake_proc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::spark {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

class BystandersTest : public ::testing::Test {
 protected:
  void add_executor(int pid, const std::string& cgroup, int parent = 1) const {
    proc.add(pid, test::standalone_executor("app", "0"), cgroup, 100, parent);
  }
  std::map<std::string, Bystanders> find() const {
    return find_bystanders(proc.root(), find_processes(proc.root()));
  }

  test::FakeProc proc;
};

TEST_F(BystandersTest, AreWhoeverLivesSomewhereAndIsNotOfSpark) {
  proc.add_plain(1, "systemd", "init.scope", 0);
  proc.add_plain(2, "kthreadd", "", 0);
  add_executor(10, "e.scope");
  proc.add_plain(30, "tail", "e.scope");
  proc.add_plain(20, "my (odd) name", "e.scope");
  EXPECT_THAT(find(), ElementsAre(Pair("e.scope", Bystanders{20, "my (odd) name", 2}),
                                  Pair("init.scope", Bystanders{1, "systemd", 1})));
}

TEST_F(BystandersTest, AreNotWhatAnExecutorHasStarted) {
  add_executor(10, "e.scope");
  proc.add_plain(11, "python3", "e.scope", 10);
  proc.add_plain(12, "python3", "e.scope", 11);
  EXPECT_THAT(find(), IsEmpty());
}

TEST_F(BystandersTest, AreNotThoseWhoHaveEnded) {
  add_executor(10, "e.scope");
  proc.add_plain(11, "defunct", "e.scope", 1, 'Z');
  EXPECT_THAT(find(), IsEmpty());
  // Only its first thread has.
  proc.add_plain(11, "threads", "e.scope", 1, 'Z', 2);
  EXPECT_THAT(find(), ElementsAre(Pair("e.scope", Bystanders{11, "threads", 1})));
}

TEST_F(BystandersTest, AreTheShellThatStartedIt) {
  proc.add_plain(5, "bash", "session.scope");
  add_executor(10, "session.scope", 5);
  EXPECT_THAT(find(), ElementsAre(Pair("session.scope", Bystanders{5, "bash", 1})));
}

TEST_F(BystandersTest, AreNotTheInitOfItsContainer) {
  proc.add_plain(4, "conmon", "runtime.scope");
  proc.set_namespaces(4, "4");
  proc.add_plain(5, "tini", "pod/c", 4);
  proc.set_namespaces(5, "5\t1");
  proc.add_plain(6, "entrypoint.sh", "pod/c", 5);
  proc.set_namespaces(6, "6\t7");
  add_executor(10, "pod/c", 6);
  EXPECT_THAT(find(), ElementsAre(Pair("runtime.scope", Bystanders{4, "conmon", 1})));
  // But other processes in the container are.
  proc.add_plain(11, "agent", "pod/c", 5);
  EXPECT_THAT(find(), ElementsAre(Pair("pod/c", Bystanders{11, "agent", 1}),
                                  Pair("runtime.scope", Bystanders{4, "conmon", 1})));
}

TEST_F(BystandersTest, ATableWithALoopEnds) {
  add_executor(10, "e.scope", 11);
  proc.add_plain(11, "a", "x.scope", 12);
  proc.add_plain(12, "b", "x.scope", 11);
  EXPECT_THAT(find(), ElementsAre(Pair("x.scope", Bystanders{11, "a", 2})));
}

TEST_F(BystandersTest, WhatCannotBeReadIsLeftOut) {
  add_executor(10, "e.scope");
  proc.write(11, "stat", "11 (x");
  proc.write(12, "stat", "12 (x) S one 2 3\n");
  proc.add_plain(13, "no group", "x");
  std::filesystem::remove(proc.root() / "13" / "cgroup");
  EXPECT_THAT(find(), IsEmpty());
}

}  // namespace
}  // namespace berth::spark
