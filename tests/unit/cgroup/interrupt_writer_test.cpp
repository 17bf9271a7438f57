// SPDX-License-Identifier: Apache-2.0
#include "cgroup/interrupt_writer.h"

#include "cgroup/restore.h"
#include "tests/patience.h"
#include "tests/unit/os/fake_interrupts.h"
#include "tests/unit/os/fake_irqbalance.h"
#include "write_fixture.h"

#include <chrono>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::cgroup {
namespace {

using model::CpuSet;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using namespace std::chrono_literals;
using berth::test::kPatience;
using Ban = InterruptWriter::Ban;

CpuSet set(const char* cpus) { return *CpuSet::parse(cpus); }

class InterruptWriterTest : public testing::Test {
 protected:
  ScratchDirectory scratch;
  berth::test::FakeInterrupts files{scratch.path() / "proc"};
  std::unique_ptr<UndoJournal> journal = open();
  std::unique_ptr<InterruptWriter> writer = make();

  std::filesystem::path run() const { return scratch.path() / "irqbalance"; }
  std::unique_ptr<UndoJournal> open() const {
    return std::move(*UndoJournal::open(scratch.path(), "boot-1"));
  }
  std::unique_ptr<InterruptWriter> make() const {
    return std::make_unique<InterruptWriter>(*journal, files.directory(), run(), scratch.path() / "sys");
  }
  // As by another process, after the first one was killed.
  void start_again() {
    writer.reset();
    journal.reset();
    journal = open();
    writer = make();
  }
  InterruptsBack restore() { return writer->restore_all(kPatience); }
  model::Result<Ban> ban(const CpuSet& cpus) { return writer->ban(cpus, kPatience); }
  std::map<int, model::Error> move(int number, const char* now, const char* to) {
    const InterruptWriter::Move move{number, set(now), set(to)};
    return *writer->move(std::span(&move, 1));
  }
};

TEST_F(InterruptWriterTest, MovesAndPutsBack) {
  files.put(24, "0-7");
  EXPECT_THAT(move(24, "0-7", "0-1,4-7"), IsEmpty());
  EXPECT_EQ(files.cpus(24), "0-1,4-7");
  EXPECT_THAT(restore().restored, ElementsAre(24));
  EXPECT_EQ(files.cpus(24), "0-7");
  EXPECT_EQ(journal->size(), 0U);
}

TEST_F(InterruptWriterTest, PutsBackWhatWasBeforeTheFirstOfSeveralMoves) {
  files.put(24, "0-7");
  move(24, "0-7", "0-5");
  move(24, "0-5", "0-3");
  EXPECT_EQ(writer->held(24)->original, set("0-7"));
  start_again();
  EXPECT_THAT(restore().restored, ElementsAre(24));
  EXPECT_EQ(files.cpus(24), "0-7");
}

TEST_F(InterruptWriterTest, LeavesWhatAnotherProgramChangedSince) {
  files.put(24, "0-7");
  move(24, "0-7", "0-5");
  files.put(24, "3");
  const auto back = restore();
  EXPECT_THAT(back.restored, IsEmpty());
  ASSERT_THAT(back.left, SizeIs(1));
  EXPECT_FALSE(back.left[0].kept);
  EXPECT_THAT(back.left[0].reason, HasSubstr("another program has changed it"));
  EXPECT_EQ(files.cpus(24), "3");
  EXPECT_EQ(journal->size(), 0U);
}

TEST_F(InterruptWriterTest, AMoveThatAKillPreventedIsNoChangeOfAnotherProgram) {
  files.put(24, "0-5");
  const std::vector<HostRecord> records{{"irq/24", "0-7", "0-3", "0-5"}};
  ASSERT_TRUE(journal->record(records));
  start_again();
  EXPECT_THAT(restore().restored, ElementsAre(24));
  EXPECT_EQ(files.cpus(24), "0-7");
}

TEST_F(InterruptWriterTest, ForgetsInterruptsThatHaveGone) {
  files.put(24, "0-7");
  move(24, "0-7", "0-5");
  files.remove(24);
  const auto back = restore();
  EXPECT_THAT(back.restored, IsEmpty());
  EXPECT_THAT(back.left, IsEmpty());
  EXPECT_EQ(journal->size(), 0U);
}

TEST_F(InterruptWriterTest, OneThatTheKernelRefusesIsNotRecorded) {
  files.put_fixed(9);
  const auto errors = move(9, "0-1", "1");
  ASSERT_TRUE(errors.contains(9));
  EXPECT_EQ(journal->size(), 0U);
}

TEST_F(InterruptWriterTest, ARestoreWithoutADaemonPutsBackInterruptsAndIrqbalance) {
  berth::test::FakeIrqbalance irqbalance(run(), 7, {1});
  files.put(24, "0-7");
  put_file(scratch.path() / "proc/sys/kernel/random/boot_id", "boot-1\n");
  EXPECT_EQ(ban({2, 3}), Ban::pending);
  move(24, "0-7", "0-5");
  ASSERT_TRUE(berth::test::eventually([&] { return irqbalance.banned() == set("1-3"); }));
  writer.reset();
  journal.reset();
  RestorePaths paths;
  paths.cgroup_root = scratch.path() / "tree";
  std::filesystem::create_directories(paths.cgroup_root);
  paths.proc_root = files.proc_root();
  paths.irqbalance_dir = run();
  paths.runtime_dir = scratch.path();
  const auto report = restore_host(paths);
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_THAT(report->interrupts.restored, ElementsAre(24));
  EXPECT_TRUE(report->interrupts.irqbalance);
  EXPECT_EQ(files.cpus(24), "0-7");
  ASSERT_TRUE(berth::test::eventually([&] { return irqbalance.banned() == set("1"); }));
}

TEST_F(InterruptWriterTest, WithoutIrqbalanceThereIsNobodyToTell) {
  EXPECT_EQ(ban({2, 3}), Ban::absent);
  EXPECT_EQ(journal->size(), 0U);
}

TEST_F(InterruptWriterTest, IrqbalanceKeepsWhatItHadBannedBefore) {
  berth::test::FakeIrqbalance irqbalance(run(), 7, {1});
  EXPECT_EQ(ban({2, 3}), Ban::pending);
  EXPECT_EQ(ban({4}), Ban::pending);
  ASSERT_TRUE(berth::test::eventually([&] { return irqbalance.banned() == set("1,4"); }));
  restore();
  ASSERT_TRUE(berth::test::eventually([&] { return irqbalance.banned() == set("1"); }));
  EXPECT_EQ(irqbalance.last_words(), "1");
}

TEST_F(InterruptWriterTest, AnIrqbalanceIsToldOnceItsAnswerShowsTheBan) {
  berth::test::FakeIrqbalance irqbalance(run(), 7);
  irqbalance.lag(true);
  EXPECT_EQ(ban({2, 3}), Ban::pending);
  EXPECT_EQ(ban({2, 3}), Ban::pending);
  irqbalance.lag(false);
  EXPECT_EQ(ban({2, 3}), Ban::told);
  EXPECT_EQ(irqbalance.last_words(), "2-3");
}

TEST_F(InterruptWriterTest, AnIrqbalanceThatFollowsLateGetsItsOwnBack) {
  berth::test::FakeIrqbalance irqbalance(run(), 7);
  irqbalance.lag(true);
  EXPECT_EQ(ban({2, 3}), Ban::pending);
  EXPECT_TRUE(restore().irqbalance);
  ASSERT_TRUE(berth::test::eventually([&] { return irqbalance.last_words() == "NULL"; }));
}

TEST_F(InterruptWriterTest, ARestoreThatIrqbalanceHasNotFollowedYetIsToldOnceAndKeptOnRecord) {
  berth::test::FakeIrqbalance irqbalance(run(), 7);
  ban({2, 3});
  EXPECT_EQ(ban({2, 3}), Ban::told);
  irqbalance.lag(true);
  EXPECT_TRUE(restore().irqbalance);
  EXPECT_EQ(journal->size(), 1U);
  EXPECT_EQ(journal->to_put_back(), 0U);
  const auto again = restore();
  EXPECT_FALSE(again.irqbalance);
  EXPECT_THAT(again.left, IsEmpty());
  irqbalance.lag(false);
  restore();
  EXPECT_EQ(journal->size(), 0U);
}

TEST_F(InterruptWriterTest, ABanBeforeIrqbalanceFollowedTheRestoreKeepsTheOriginal) {
  berth::test::FakeIrqbalance irqbalance(run(), 7);
  ban({2, 3});
  EXPECT_EQ(ban({2, 3}), Ban::told);
  irqbalance.lag(true);
  restore();
  start_again();
  // Less than it bans still: it is told, as it is about to follow the restore.
  EXPECT_EQ(ban({2}), Ban::pending);
  ASSERT_TRUE(berth::test::eventually([&] { return irqbalance.last_words() == "2"; }));
  restore();
  ASSERT_TRUE(berth::test::eventually([&] { return irqbalance.last_words() == "NULL"; }));
}

TEST_F(InterruptWriterTest, SeveralBansBeforeIrqbalanceFollowsAreBerthsOwn) {
  berth::test::FakeIrqbalance irqbalance(run(), 7);
  ban({2, 3});
  EXPECT_EQ(ban({2, 3}), Ban::told);
  irqbalance.lag(true);
  EXPECT_EQ(ban({4}), Ban::pending);
  EXPECT_EQ(ban({5}), Ban::pending);
  start_again();
  const auto back = restore();
  EXPECT_THAT(back.left, IsEmpty());
  EXPECT_TRUE(back.irqbalance);
  ASSERT_TRUE(berth::test::eventually([&] { return irqbalance.last_words() == "NULL"; }));
}

TEST_F(InterruptWriterTest, CpusThatIrqbalanceBansBesideThoseOfBerthAreNoChangeOfAnotherProgram) {
  berth::test::FakeIrqbalance irqbalance(run(), 7);
  ban({2, 3});
  EXPECT_EQ(ban({2, 3}), Ban::told);
  irqbalance.set_banned({2, 3, 6});  // as of a hot one
  EXPECT_EQ(ban({2, 3}), Ban::told);
  EXPECT_TRUE(restore().irqbalance);
  irqbalance.set_banned({6});
  restore();
  EXPECT_EQ(journal->size(), 0U);
}

TEST_F(InterruptWriterTest, AnIrqbalanceThatAnotherProgramToldOtherwiseIsLeft) {
  berth::test::FakeIrqbalance irqbalance(run(), 7);
  ban({2, 3});
  EXPECT_EQ(ban({2, 3}), Ban::told);
  irqbalance.set_banned({5});
  EXPECT_EQ(ban({2, 3}), Ban::foreign);
  EXPECT_EQ(ban({4}), Ban::foreign);
  restore();
  EXPECT_EQ(irqbalance.banned(), set("5"));
  EXPECT_EQ(journal->size(), 0U);
}

TEST_F(InterruptWriterTest, AListThatIrqbalanceCannotTakeIsRefusedAndNotRecorded) {
  berth::test::FakeIrqbalance irqbalance(run(), 7);
  CpuSet even;
  for (int cpu = 0; cpu < 400; cpu += 2) even.insert(cpu);
  EXPECT_EQ(ban(even).error().kind(), model::ErrorKind::invalid_input);
  EXPECT_EQ(journal->size(), 0U);
  EXPECT_EQ(irqbalance.last_words(), "");
}

TEST_F(InterruptWriterTest, AnInterruptWhoseVcpusAllWentOfflineIsPutBackWhereverTheKernelPutIt) {
  files.put(24, "0-7");
  move(24, "0-7", "2-3");
  put_file(scratch.path() / "sys/devices/system/cpu/online", "0-1,4-7\n");
  files.put(24, "0-1,4-7");
  EXPECT_THAT(restore().restored, ElementsAre(24));
  EXPECT_EQ(files.cpus(24), "0-7");
}

TEST_F(InterruptWriterTest, ANewIrqbalanceIsToldToo) {
  {
    berth::test::FakeIrqbalance former(run(), 7);
    EXPECT_EQ(ban({2, 3}), Ban::pending);
  }
  berth::test::FakeIrqbalance later(run(), 8, {6});
  EXPECT_EQ(ban({2, 3}), Ban::pending);
  ASSERT_TRUE(berth::test::eventually([&] { return later.banned() == set("2-3,6"); }));
  EXPECT_THAT(journal->host(), SizeIs(1));
}

TEST_F(InterruptWriterTest, AnIrqbalanceThatDoesNotAnswerIsToldLater) {
  berth::test::FakeIrqbalance irqbalance(run(), 7);
  irqbalance.hang(true);
  EXPECT_EQ(writer->ban({2, 3}, 1ms).error().kind(), model::ErrorKind::transient);
  irqbalance.hang(false);
  ASSERT_TRUE(berth::test::eventually([&] { return ban({2, 3}) == Ban::told; }));
  ASSERT_TRUE(berth::test::eventually([&] { return irqbalance.banned() == set("2-3"); }));
}

}  // namespace
}  // namespace berth::cgroup
