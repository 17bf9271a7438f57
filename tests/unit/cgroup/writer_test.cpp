// SPDX-License-Identifier: Apache-2.0
#include "cgroup/writer.h"

#include "cgroup/direct_owner.h"
#include "cgroup/host_lock.h"
#include "cgroup/restore.h"
#include "child_process.h"
#include "values.h"
#include "write_fixture.h"

#include <csignal>
#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace berth::cgroup {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class WriterTest : public testing::Test {
 protected:
  ControlTree tree;
  ScratchDirectory state;
  PatientOwner direct{tree.root()};
  std::unique_ptr<UndoJournal> journal = open();

  std::unique_ptr<UndoJournal> open() const {
    auto opened = UndoJournal::open(state.path(), "boot");
    if (!opened) throw std::runtime_error(opened.error().message());
    return std::move(*opened);
  }
  Writer writer() { return {tree.root(), *journal, direct, nullptr}; }
  // As the next berthd finds it.
  RestoreReport restore_anew() {
    journal.reset();
    journal = open();
    return writer().restore_all();
  }
};

TEST_F(WriterTest, SetsAndRestores) {
  tree.make("a", "0-7", "max 100000", "max");
  Writer writer = this->writer();
  const FoundWorkload group = tree.found("a");
  const SetResult set = writer.set(group, cpus("3,2"));
  ASSERT_TRUE(set && *set);
  EXPECT_EQ(to_text((*set)->before), "0-7");
  EXPECT_EQ(to_text((*set)->after), "2-3");
  ASSERT_TRUE(writer.set(group, quota("50000 100000")));
  ASSERT_TRUE(writer.set(group, memory("8192")));
  EXPECT_EQ(text(writer.original(group, Attribute::cpus)), "0-7");

  const RestoreReport report = writer.restore_all();
  EXPECT_THAT(report.restored, SizeIs(3));
  EXPECT_EQ(tree.get("a", "cpuset.cpus"), "0-7");
  EXPECT_EQ(tree.get("a", "cpu.max"), "max 100000");
  EXPECT_EQ(tree.get("a", "memory.high"), "max");
  EXPECT_THAT(journal->records(), IsEmpty());
}

TEST_F(WriterTest, WhatAlreadyHoldsIsNotWrittenNorRecorded) {
  tree.make("a", "2-3");
  const SetResult set = writer().set(tree.found("a"), cpus("2-3"));
  ASSERT_TRUE(set);
  EXPECT_FALSE(*set);
  EXPECT_THAT(journal->records(), IsEmpty());
}

TEST_F(WriterTest, SecondSetKeepsTheFirstOriginal) {
  tree.make("a", "0-7");
  Writer writer = this->writer();
  const FoundWorkload group = tree.found("a");
  ASSERT_TRUE(writer.set(group, cpus("2")));
  ASSERT_TRUE(writer.set(group, cpus("3")));
  writer.restore_all();
  EXPECT_EQ(tree.get("a", "cpuset.cpus"), "0-7");
}

TEST_F(WriterTest, AnEmptySetOfVcpusIsRefusedBeforeAnythingIsTouched) {
  tree.make("a", "0-7");
  const FoundWorkload group = tree.found("a");
  const SetResult set = writer().set(group, cpus(""));
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().kind(), model::ErrorKind::invalid_input);
  EXPECT_THAT(journal->records(), IsEmpty());
  EXPECT_EQ(tree.get("a", "cpuset.cpus"), "0-7");
}

// The kernel may hold a write before the value is in force, too.
TEST_F(WriterTest, AWriteThatTheKernelDoesLateIsStillOnRecord) {
  tree.make("a");
  const FoundWorkload group = tree.found("a");
  std::promise<void> begin;
  DirectOwner held{tree.root(), "/sys",
                   [begun = begin.get_future().share()](const Cgroup& cgroup, const std::string& text) {
                     begun.wait();
                     return cgroup.write("memory.high", text);
                   },
                   0ms};
  Writer writer{tree.root(), *journal, held, nullptr};
  EXPECT_FALSE(writer.set(group, memory("8192")));
  const SetResult other = writer.set(group, memory("4096"));
  begin.set_value();
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().kind(), model::ErrorKind::transient);
  EXPECT_EQ(text(writer.written(group, Attribute::memory_high)), "8192");
  ASSERT_TRUE(berth::test::eventually([&] { return tree.get("a", "memory.high") == "8192"; }));
  EXPECT_EQ(writer.drift(group, memory("8192")), Drift::none);
  EXPECT_THAT(restore_anew().left, IsEmpty());
  EXPECT_EQ(tree.get("a", "memory.high"), "max");
}

TEST_F(WriterTest, VanishedGroupIsGoneAndLeavesNoRecord) {
  tree.make("a");
  const FoundWorkload group = tree.found("a");
  tree.remove("a");
  const SetResult set = writer().set(group, cpus("1"));
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().kind(), model::ErrorKind::gone);
  EXPECT_THAT(journal->records(), IsEmpty());
}

TEST_F(WriterTest, RefusedWriteIsTakenBack) {
  tree.make("a", "0-3");
  tree.put("a", "cpuset.cpus.effective", "0-3");
  const SetResult set = writer().set(tree.found("a"), cpus("3-4"));
  ASSERT_FALSE(set);
  EXPECT_THAT(set.error().message(), HasSubstr("setting cpuset.cpus of \"a\" to \"3-4\""));
  EXPECT_THAT(set.error().message(), HasSubstr("granted 0-3"));
  EXPECT_EQ(tree.get("a", "cpuset.cpus"), "0-3");
  EXPECT_THAT(journal->records(), IsEmpty());
}

TEST_F(WriterTest, RefusedSecondWriteKeepsTheFirst) {
  tree.make("a", "0-7");
  tree.put("a", "cpuset.cpus.effective", "0-3");
  Writer writer = this->writer();
  const FoundWorkload group = tree.found("a");
  ASSERT_TRUE(writer.set(group, cpus("1")));
  EXPECT_FALSE(writer.set(group, cpus("5")));
  EXPECT_EQ(tree.get("a", "cpuset.cpus"), "1");
  writer.restore_all();
  EXPECT_EQ(tree.get("a", "cpuset.cpus"), "0-7");
}

TEST_F(WriterTest, WhatSomebodyElseChangedIsLeftAndSaid) {
  tree.make("a", "0-7");
  Writer writer = this->writer();
  ASSERT_TRUE(writer.set(tree.found("a"), cpus("2")));
  tree.put("a", "cpuset.cpus", "6");
  const RestoreReport report = writer.restore_all();
  EXPECT_THAT(report.restored, IsEmpty());
  ASSERT_THAT(report.left, SizeIs(1));
  EXPECT_EQ(report.left[0].reason,
            "another program has changed it: it is \"6\", berth wrote \"2\", before that it was \"0-7\"");
  EXPECT_EQ(tree.get("a", "cpuset.cpus"), "6");
  EXPECT_THAT(journal->records(), IsEmpty());
}

TEST_F(WriterTest, DriftTellsForeignFromOwn) {
  tree.make("a", "0-7");
  Writer writer = this->writer();
  const FoundWorkload group = tree.found("a");
  EXPECT_EQ(writer.drift(group, cpus("0-7")), Drift::none) << "never written";
  ASSERT_TRUE(writer.set(group, cpus("2")));
  EXPECT_EQ(writer.drift(group, cpus("2")), Drift::none);
  EXPECT_EQ(writer.drift(group, cpus("6")), Drift::foreign);
  EXPECT_EQ(writer.drift(group, cpus("0-7")), Drift::foreign);
}

TEST_F(WriterTest, DisownedValueStays) {
  tree.make("a", "0-7");
  Writer writer = this->writer();
  ASSERT_TRUE(writer.set(tree.found("a"), cpus("2")));
  tree.put("a", "cpuset.cpus", "6");
  ASSERT_TRUE(writer.disown("a", Attribute::cpus));
  EXPECT_THAT(writer.restore_all().left, IsEmpty());
  EXPECT_EQ(tree.get("a", "cpuset.cpus"), "6");
}

TEST_F(WriterTest, ReassertedValueIsRestoredToTheFirstOriginal) {
  tree.make("a", "0-7");
  Writer writer = this->writer();
  const FoundWorkload group = tree.found("a");
  ASSERT_TRUE(writer.set(group, cpus("2")));
  tree.put("a", "cpuset.cpus", "6");
  const SetResult again = writer.set(group, cpus("2"));
  ASSERT_TRUE(again && *again);
  EXPECT_EQ(to_text((*again)->before), "6");
  writer.restore_all();
  EXPECT_EQ(tree.get("a", "cpuset.cpus"), "0-7");
}

TEST_F(WriterTest, RestoresOneAttributeOfOneGroup) {
  tree.make("a", "0-7");
  tree.make("b", "0-7");
  Writer writer = this->writer();
  for (const char* path : {"a", "b"}) {
    ASSERT_TRUE(writer.set(tree.found(path), cpus("2")));
    ASSERT_TRUE(writer.set(tree.found(path), memory("8192")));
  }
  ASSERT_TRUE(writer.restore("a", Attribute::cpus));
  EXPECT_EQ(tree.get("a", "cpuset.cpus"), "0-7");
  EXPECT_EQ(tree.get("a", "memory.high"), "8192");
  EXPECT_EQ(tree.get("b", "cpuset.cpus"), "2");
  EXPECT_FALSE(writer.restore("a", Attribute::cpus)) << "nothing is changed there any more";
}

TEST_F(WriterTest, VanishedGroupIsReportedGoneAndItsSuccessorLeftAlone) {
  tree.make("a", "0-7");
  Writer writer = this->writer();
  const FoundWorkload group = tree.found("a");
  ASSERT_TRUE(writer.set(group, cpus("2")));
  std::filesystem::rename(tree.root() / "a", tree.root() / "old");
  tree.make("a", "2");
  const RestoreReport report = writer.restore_all();
  EXPECT_THAT(report.gone, testing::ElementsAre("a"));
  EXPECT_EQ(tree.get("a", "cpuset.cpus"), "2");
  EXPECT_THAT(journal->records(), IsEmpty());
}

TEST_F(WriterTest, DepartedGroupIsForgotten) {
  tree.make("a", "0-7");
  Writer writer = this->writer();
  ASSERT_TRUE(writer.set(tree.found("a"), cpus("2")));
  tree.remove("a");
  const auto report = writer.restore("a", Attribute::cpus);
  ASSERT_TRUE(report);
  EXPECT_THAT(report->gone, SizeIs(1));
  EXPECT_THAT(journal->records(), IsEmpty());
}

TEST_F(WriterTest, NewestIsRestoredFirst) {
  Writer writer = this->writer();
  for (const char* path : {"b", "c", "a"}) {
    tree.make(path, "0-7");
    ASSERT_TRUE(writer.set(tree.found(path), cpus("2")));
  }
  const RestoreReport report = writer.restore_all();
  ASSERT_THAT(report.restored, SizeIs(3));
  EXPECT_EQ(report.restored[0].workload, "a");
  EXPECT_EQ(report.restored[2].workload, "b");
}

TEST_F(WriterTest, WhatThereIsNoTimeToRestoreIsKeptForTheNextCall) {
  Writer writer = this->writer();
  for (const char* path : {"a", "b"}) {
    tree.make(path, "0-7");
    ASSERT_TRUE(writer.set(tree.found(path), cpus("2")));
  }
  const RestoreReport none = writer.restore_all(std::chrono::milliseconds(-1));
  EXPECT_THAT(none.left, SizeIs(2));
  EXPECT_THAT(none.left, testing::Each(testing::Field(&RestoreReport::Left::kept, true)));
  EXPECT_EQ(tree.get("a", "cpuset.cpus"), "2");
  EXPECT_THAT(writer.restore_all().restored, SizeIs(2));
  EXPECT_EQ(tree.get("a", "cpuset.cpus"), "0-7");
}

TEST_F(WriterTest, GroupThatRefusesTheOriginalKeepsItsRecord) {
  tree.make("a", "0-7");
  Writer writer = this->writer();
  ASSERT_TRUE(writer.set(tree.found("a"), cpus("2")));
  std::filesystem::remove(tree.root() / "a/cpuset.cpus");
  const RestoreReport report = writer.restore_all();
  ASSERT_THAT(report.left, SizeIs(1)) << "the controller was taken away";
  EXPECT_TRUE(report.restored.empty());
}

TEST_F(WriterTest, ManyAreSetInOrderWithOneResultEach) {
  std::vector<FoundWorkload> groups;
  for (int i = 0; i < 150; ++i) {
    const std::string path = "g" + std::to_string(i);
    tree.make(path, "0-7");
    groups.push_back(tree.found(path));
  }
  tree.remove("g70");
  std::vector<Request> requests;
  for (const FoundWorkload& group : groups) requests.push_back({&group, cpus("2")});
  requests.push_back({&groups[0], cpus("3")});  // the same once more
  requests.push_back({&groups[1], cpus("")});
  Writer writer = this->writer();
  const auto results = writer.set_many(requests, 60s);
  ASSERT_THAT(results, SizeIs(requests.size()));
  for (std::size_t i = 0; i < 150; ++i) EXPECT_EQ(results[i].has_value(), i != 70) << i;
  EXPECT_TRUE(results[150]);
  EXPECT_FALSE(results[151]);
  EXPECT_EQ(tree.get("g0", "cpuset.cpus"), "3");
  EXPECT_EQ(tree.get("g149", "cpuset.cpus"), "2");
  restore_anew();
  EXPECT_EQ(tree.get("g0", "cpuset.cpus"), "0-7");
  EXPECT_EQ(tree.get("g149", "cpuset.cpus"), "0-7");
}

TEST_F(WriterTest, WhatDoesNotFitIntoTheTimeIsPostponed) {
  tree.make("a", "0-7");
  const FoundWorkload group = tree.found("a");
  const Request request{&group, cpus("2")};
  const auto results = writer().set_many(std::span(&request, 1), -1ms);
  ASSERT_FALSE(results[0]);
  EXPECT_EQ(results[0].error().kind(), model::ErrorKind::transient);
  EXPECT_THAT(results[0].error().message(), HasSubstr("postponed"));
  EXPECT_EQ(tree.get("a", "cpuset.cpus"), "0-7");
}

TEST_F(WriterTest, NothingIsWrittenThatCannotBeRecorded) {
  tree.make("a", "0-7");
  journal.reset();  // a forked child shares the lock
  const ChildEnd end = in_child([&]() -> std::string {
    journal = open();
    signal(SIGXFSZ, SIG_IGN);
    const auto size = std::filesystem::file_size(state.path() / "undo.db-wal");
    const rlimit limit{size, size};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return "setrlimit";
    const SetResult set = writer().set(tree.found("a"), cpus("2"));
    return set ? "set" : set.error().message();
  });
  EXPECT_THAT(end.said, HasSubstr("not changing cpuset.cpus of \"a\": its original cannot be recorded"));
  EXPECT_EQ(tree.get("a", "cpuset.cpus"), "0-7");
}

TEST_F(WriterTest, UnitsRecordWaitsForSystemd) {
  tree.make("web.service", "2");
  const UndoRecord record{"web.service", 1, "systemd", "web.service", cpus(""), "setting \n", cpus("2"), {}};
  ASSERT_TRUE(journal->record(record));
  const RestoreReport report = writer().restore_all();
  ASSERT_THAT(report.left, SizeIs(1));
  EXPECT_THAT(report.left[0].reason, HasSubstr("cannot reach systemd now; restore again later"));
  EXPECT_THAT(journal->records(), SizeIs(1));
}

TEST_F(WriterTest, HostIsRestoredWithoutADaemon) {
  const ScratchDirectory proc;
  put_file(proc.path() / "sys/kernel/random/boot_id", "boot\n");
  tree.make("a", "0-7");
  ASSERT_TRUE(writer().set(tree.found("a"), cpus("2")));
  RestorePaths paths;
  paths.runtime_dir = state.path();
  paths.cgroup_root = tree.root();
  paths.proc_root = proc.path();
  const auto refused = restore_host(paths);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), model::ErrorKind::refused) << "berthd still holds the journal";
  journal.reset();
  const auto report = restore_host(paths);
  ASSERT_TRUE(report);
  EXPECT_THAT(report->restored, SizeIs(1));
  EXPECT_EQ(tree.get("a", "cpuset.cpus"), "0-7");
}

TEST_F(WriterTest, ARestoreTellsOfADamagedJournal) {
  const ScratchDirectory proc;
  put_file(proc.path() / "sys/kernel/random/boot_id", "the next boot\n");
  tree.make("a", "0-7");
  ASSERT_TRUE(writer().set(tree.found("a"), cpus("2")));
  journal.reset();
  put_file(state.path() / "undo.db", std::string(8192, 'x'));
  RestorePaths paths;
  paths.runtime_dir = state.path();
  paths.cgroup_root = tree.root();
  paths.proc_root = proc.path();
  const auto report = restore_host(paths);
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_THAT(report->warnings, testing::ElementsAre(HasSubstr("undo.db.damaged")));
}

// The kernel moves processes in /proc alone; here it is enough whether a leaf, which is empty, is removed.
TEST_F(WriterTest, LeavesArePutBackUnlessARunningDaemonKeepsThem) {
  const ScratchDirectory proc;
  put_file(proc.path() / "sys/kernel/random/boot_id", "boot\n");
  RestorePaths paths;
  paths.runtime_dir = state.path();
  paths.cgroup_root = tree.root();
  paths.proc_root = proc.path();
  const auto leaf = tree.root() / "worker.berth-executor-7-70";
  std::filesystem::create_directory(leaf);
  EXPECT_FALSE(restore_host(paths));
  EXPECT_TRUE(std::filesystem::exists(leaf)) << "berthd still holds the journal";
  journal.reset();
  const auto report = restore_host(paths);
  ASSERT_TRUE(report);
  ASSERT_THAT(report->leaves, SizeIs(1));
  EXPECT_EQ(report->leaves[0].origin, "worker");
  EXPECT_FALSE(std::filesystem::exists(leaf));
  std::filesystem::create_directory(leaf);
  paths.proc_root = "/nonexistent";
  EXPECT_FALSE(restore_host(paths)) << "nobody knows of which boot the journal is";
  EXPECT_FALSE(std::filesystem::exists(leaf));
}

// Where the daemon could not open its journal, too.
TEST_F(WriterTest, ARestoreIsRefusedBesideADaemonThatHasTheHostsLockAlone) {
  const ScratchDirectory proc;
  const ScratchDirectory runtime;
  put_file(proc.path() / "sys/kernel/random/boot_id", "boot\n");
  RestorePaths paths;
  paths.runtime_dir = runtime.path();
  paths.cgroup_root = tree.root();
  paths.proc_root = proc.path();
  const auto leaf = tree.root() / "worker.berth-executor-7-70";
  std::filesystem::create_directory(leaf);
  {
    const auto daemon = lock_host(tree.root(), runtime.path());
    ASSERT_TRUE(daemon) << daemon.error().message();
    const auto refused = restore_host(paths);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind(), model::ErrorKind::refused);
    EXPECT_THAT(refused.error().message(), HasSubstr("this host is held by another berthd (pid "));
    EXPECT_TRUE(std::filesystem::exists(leaf));
  }
  EXPECT_TRUE(restore_host(paths));
  EXPECT_FALSE(std::filesystem::exists(leaf));
}

TEST_F(WriterTest, HostThatWasNeverChangedIsLeftUntouched) {
  const ScratchDirectory empty;
  RestorePaths paths;
  paths.runtime_dir = empty.path();
  paths.cgroup_root = tree.root();
  const auto report = restore_host(paths);
  ASSERT_TRUE(report);
  EXPECT_THAT(report->restored, IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(empty.path() / "undo.db")) << "none is made by looking for one";
}

}  // namespace
}  // namespace berth::cgroup
