// SPDX-License-Identifier: Apache-2.0
#include "spark/process_finder.h"

#include "tests/no_threads.h"
#include "tests/patience.h"
#include "tests/unit/spark/fake_driver.h"
#include "tests/unit/spark/fake_proc.h"
#include "tests/unit/spark/hanging_file.h"

#include <list>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::spark {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ProcessFinderTest : public ::testing::Test {
 protected:
  void add(int pid) { proc.add(pid, test::client_driver(), "driver.scope"); }
  void hang(int pid) {
    add(pid);
    hanging.emplace_back(proc.root() / std::to_string(pid) / "cmdline");
  }
  std::vector<pid_t> found() {
    std::vector<pid_t> pids;
    for (const Process& process : finder.find().processes) pids.push_back(process.pid);
    return pids;
  }

  test::FakeProc proc;
  ProcessFinder finder{proc.root()};
  std::list<test::HangingFile> hanging;
};

TEST_F(ProcessFinderTest, AProcessThatCannotBeReadHidesNoOther) {
  add(10);
  hang(11);
  add(12);
  hang(13);
  const auto first = finder.find();
  EXPECT_EQ(first.processes.size(), 2U);
  EXPECT_THAT(first.unread, ElementsAre(11, 13));
  add(14);
  EXPECT_THAT(found(), ElementsAre(10, 12, 14)) << "those that hang are not tried again";
  EXPECT_THAT(finder.find().unread, ElementsAre(11, 13));
}

TEST_F(ProcessFinderTest, OneThatAnswersLaterIsReadAgain) {
  hang(10);
  EXPECT_THAT(finder.find().unread, ElementsAre(10));
  hanging.clear();
  add(10);
  EXPECT_TRUE(berth::test::eventually([&] { return found() == std::vector<pid_t>{10}; }));
}

TEST_F(ProcessFinderTest, AUserOrContainerWithManyOfThemIsNotReadAtAll) {
  for (std::size_t i = 0; i <= ProcessFinder::kMostHungOfParty; ++i) hang(10 + static_cast<int>(i));
  add(50);
  const auto seen = finder.find();
  EXPECT_TRUE(seen.processes.empty()) << "all belong to the user of this test, and to one cgroup";
  EXPECT_EQ(seen.unread.size(), ProcessFinder::kMostHungOfParty + 2);
}

TEST_F(ProcessFinderTest, WithoutAThreadItSaysWhyAndReadsNothing) {
  add(10);
  {
    const berth::test::NoThreads none;
    const auto seen = finder.find();
    ASSERT_TRUE(seen.failure);
    EXPECT_TRUE(seen.failure->starts_with("no thread can be had: ")) << *seen.failure;
    EXPECT_THAT(seen.processes, IsEmpty());
    EXPECT_THAT(seen.unread, ElementsAre(10));
  }
  EXPECT_THAT(found(), ElementsAre(10)) << "the next look tries again";
}

}  // namespace
}  // namespace berth::spark
