// SPDX-License-Identifier: Apache-2.0
#include "cgroup/undo_journal.h"

#include "cgroup/restore.h"
#include "child_process.h"
#include "tests/silent_mount.h"
#include "values.h"
#include "write_fixture.h"

#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

namespace berth::cgroup {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

UndoRecord direct(const std::string& path, std::uint64_t id = 1) {
  return {path, id, "direct", "", cpus("0-7"), "", cpus("2-3"), std::nullopt};
}

UndoRecord of_unit(const std::string& path, std::uint64_t id) {
  return {path, id, "systemd", "web.service", cpus(""), "setting \n", cpus("2-3"), std::nullopt};
}

class UndoJournalTest : public testing::Test {
 protected:
  ScratchDirectory state;

  std::unique_ptr<UndoJournal> open(const std::string& boot = "boot-1") const {
    auto journal = UndoJournal::open(state.path(), boot);
    if (!journal) throw std::runtime_error(journal.error().message());
    return std::move(*journal);
  }
};

TEST_F(UndoJournalTest, KeepsRecordsAcrossReopening) {
  open()->record(direct("a", UINT64_MAX));
  const auto journal = open();
  ASSERT_THAT(journal->records(), SizeIs(1));
  EXPECT_EQ(journal->records()[0], direct("a", UINT64_MAX));
}

TEST_F(UndoJournalTest, IsNotSaidToBeMissingWhereItCannotBeSeen) {
  EXPECT_EQ(UndoJournal::exists(state.path()).value(), false);
  open();
  EXPECT_EQ(UndoJournal::exists(state.path()).value(), true);

  const auto loop = state.path() / "loop";  // fails for root too
  std::filesystem::create_symlink(loop, loop);
  const auto unseen = UndoJournal::exists(loop);
  ASSERT_FALSE(unseen);
  EXPECT_THAT(unseen.error().message(), HasSubstr("cannot look at " + (loop / "undo.db").string()));
}

TEST_F(UndoJournalTest, WhoMayNotEnterItsDirectoryIsToldToBeRoot) {
  if (geteuid() != 0) GTEST_SKIP() << "another user's directory needs root";
  open();
  std::filesystem::permissions(state.path(), std::filesystem::perms::owner_all);
  constexpr uid_t kNobody = 65534;
  ASSERT_EQ(seteuid(kNobody), 0);
  const auto unseen = UndoJournal::exists(state.path());
  RestorePaths paths;
  paths.runtime_dir = state.path();
  const auto restored = restore_host(paths);
  ASSERT_EQ(seteuid(0), 0);
  ASSERT_FALSE(unseen);
  EXPECT_EQ(unseen.error().kind(), model::ErrorKind::permission);
  EXPECT_THAT(unseen.error().message(), HasSubstr("undo.db: Permission denied; run as root"));
  ASSERT_FALSE(restored) << "nothing to restore, it said";
  EXPECT_EQ(restored.error().message(), unseen.error().message());
}

TEST_F(UndoJournalTest, KeepsTheFirstOriginal) {
  auto journal = open();
  ASSERT_TRUE(journal->record(direct("a")));
  UndoRecord again = direct("a");
  again.original = cpus("2-3");
  again.note = "other";
  again.written = cpus("4-5");
  again.previous = cpus("2-3");
  ASSERT_TRUE(journal->record(again));
  journal.reset();
  const auto record = open()->find("a", 1, Attribute::cpus);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->original, cpus("0-7"));
  EXPECT_EQ(record->note, "");
  EXPECT_EQ(record->written, cpus("4-5"));
  EXPECT_EQ(record->previous, cpus("2-3"));
}

TEST_F(UndoJournalTest, UnitKeepsItsRecordWhenItGetsAnotherGroup) {
  auto journal = open();
  ASSERT_TRUE(journal->record(of_unit("system.slice/web.service", 1)));
  UndoRecord restarted = of_unit("system.slice/web.service", 2);
  restarted.original = cpus("2-3");
  ASSERT_TRUE(journal->record(restarted));
  EXPECT_THAT(journal->records(), SizeIs(1));
  EXPECT_EQ(journal->find_unit("web.service", Attribute::cpus)->original, cpus(""));
  EXPECT_FALSE(journal->find("system.slice/web.service", 1, Attribute::cpus));
  EXPECT_TRUE(journal->find("system.slice/web.service", 2, Attribute::cpus));
}

TEST_F(UndoJournalTest, GroupsOfOnePathAreToldApart) {
  const auto journal = open();
  ASSERT_TRUE(journal->record(direct("a", 1)));
  ASSERT_TRUE(journal->record(direct("a", 2)));
  ASSERT_TRUE(journal->record(direct("ab", 3)));
  EXPECT_THAT(journal->find_path("a"), SizeIs(2));
  ASSERT_TRUE(journal->forget("a", 1, Attribute::cpus));
  EXPECT_THAT(journal->find_path("a"), SizeIs(1));
}

TEST_F(UndoJournalTest, OldestComesFirstAfterReopening) {
  {
    const auto journal = open();
    for (const char* path : {"z", "a", "m"}) ASSERT_TRUE(journal->record(direct(path)));
  }
  const auto records = open()->records();
  ASSERT_THAT(records, SizeIs(3));
  EXPECT_EQ(records[0].path, "z");
  EXPECT_EQ(records[2].path, "m");
}

TEST_F(UndoJournalTest, RecordsOfAnEarlierBootAreVoid) {
  open("boot-1")->record(direct("a"));
  EXPECT_THAT(open("boot-2")->records(), SizeIs(0));
  EXPECT_THAT(open("boot-1")->records(), SizeIs(0)) << "dropped for good";
}

TEST_F(UndoJournalTest, ForgetsForGood) {
  {
    const auto journal = open();
    ASSERT_TRUE(journal->record(direct("a")));
    ASSERT_TRUE(journal->forget("a", 1, Attribute::cpus));
    ASSERT_TRUE(journal->forget("never", 1, Attribute::cpus)) << "nothing to forget is no error";
  }
  EXPECT_THAT(open()->records(), SizeIs(0));
}

TEST_F(UndoJournalTest, BatchIsAllOrNothing) {
  const auto journal = open();
  std::vector<UndoRecord> records{direct("a"), direct("b"), direct("a")};  // the third clashes with the first
  EXPECT_FALSE(journal->record(records));
  EXPECT_THAT(journal->records(), SizeIs(0));
  records.pop_back();
  EXPECT_TRUE(journal->record(records));
  EXPECT_THAT(journal->records(), SizeIs(2));
}

TEST_F(UndoJournalTest, PathsNeedNotBeText) {
  UndoRecord odd = direct(std::string("a'\"\xff;--\n", 8));
  open()->record(odd);
  ASSERT_THAT(open()->records(), SizeIs(1));
  EXPECT_EQ(open()->records()[0], odd);
}

TEST_F(UndoJournalTest, SecondOpenerIsToldWhoHoldsIt) {
  const auto journal = open();
  const auto second = UndoJournal::open(state.path(), "boot-1");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind(), model::ErrorKind::refused);
  EXPECT_THAT(second.error().message(), HasSubstr("pid " + std::to_string(getpid())));
}

TEST_F(UndoJournalTest, KilledHolderLeavesItToTheNext) {
  const ChildEnd end = in_child([&]() -> std::string {
    const auto journal = open();
    (void)journal->record(direct("a"));
    kill(getpid(), SIGKILL);
    return {};
  });
  ASSERT_TRUE(end.killed());
  EXPECT_THAT(open()->records(), SizeIs(1));
}

// It keeps SQLite's own locks.
TEST_F(UndoJournalTest, KilledHolderThatHangsLeavesItToTheNext) {
  const auto point = state.path() / "point";
  std::filesystem::create_directory(point);
  test::HangingProcess holder(point, [&] {
    auto journal = open();
    (void)journal->record(direct("a"));
    return journal;
  });
  if (!holder.hangs()) GTEST_SKIP() << "this machine does not let even root mount a FUSE file system";
  ASSERT_TRUE(holder.is_killed());
  const auto heir = open();
  EXPECT_THAT(heir->records(), SizeIs(1));
  (void)heir->forget("a", 1, Attribute::cpus);
  EXPECT_THAT(heir->records(), SizeIs(0));
}

TEST_F(UndoJournalTest, MissingDirectoryIsNamed) {
  const auto journal = UndoJournal::open(state.path() / "none", "boot-1");
  ASSERT_FALSE(journal);
  EXPECT_EQ(journal.error().kind(), model::ErrorKind::gone);
  EXPECT_THAT(journal.error().message(), HasSubstr((state.path() / "none").string()));
}

TEST_F(UndoJournalTest, FileInPlaceOfTheDirectoryIsNamed) {
  put_file(state.path() / "file", "");
  const auto journal = UndoJournal::open(state.path() / "file", "boot-1");
  ASSERT_FALSE(journal);
  EXPECT_THAT(journal.error().message(), HasSubstr("Not a directory"));
}

TEST_F(UndoJournalTest, DamagedFileOfThisBootIsRefusedAndKept) {
  open()->record(direct("a"));
  put_file(state.path() / "undo.db", std::string(8192, 'x'));
  const auto journal = UndoJournal::open(state.path(), "boot-1");
  ASSERT_FALSE(journal);
  EXPECT_THAT(journal.error().message(), HasSubstr("damaged"));
  EXPECT_THAT(journal.error().message(), HasSubstr("move the file away, or reboot"));
  EXPECT_EQ(std::filesystem::file_size(state.path() / "undo.db"), 8192U);
}

TEST_F(UndoJournalTest, AValueThatIsNoneIsDamage) {
  open()->record(direct("a"));
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open((state.path() / "undo.db").c_str(), &database), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(database, "UPDATE undo SET original = '5-2'", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(database);
  const auto journal = UndoJournal::open(state.path(), "boot-1");
  ASSERT_FALSE(journal);
  EXPECT_THAT(journal.error().message(), HasSubstr("cpuset.cpus"));
  EXPECT_THAT(journal.error().message(), HasSubstr("move the file away, or reboot"));
}

TEST_F(UndoJournalTest, DamagedFileOfAnEarlierBootIsSetAside) {
  open("boot-1")->record(direct("a"));
  put_file(state.path() / "undo.db", std::string(8192, 'x'));
  const auto journal = open("boot-2");
  EXPECT_THAT(journal->records(), SizeIs(0));
  EXPECT_THAT(journal->warnings(), testing::ElementsAre(HasSubstr("undo.db.damaged")));
  EXPECT_TRUE(std::filesystem::exists(state.path() / "undo.db.damaged"));
  EXPECT_TRUE(journal->record(direct("b")));
}

TEST_F(UndoJournalTest, CutShortFileIsRefused) {
  {
    const auto journal = open();
    for (std::uint64_t i = 0; i < 500; ++i) ASSERT_TRUE(journal->record(direct("a", i)));
  }
  std::filesystem::resize_file(state.path() / "undo.db",
                               std::filesystem::file_size(state.path() / "undo.db") / 2);
  EXPECT_FALSE(UndoJournal::open(state.path(), "boot-1"));
}

TEST_F(UndoJournalTest, JournalOfALaterVersionIsRefused) {
  open();
  {
    sqlite3* raw = nullptr;
    ASSERT_EQ(sqlite3_open((state.path() / "undo.db").c_str(), &raw), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(raw, "PRAGMA user_version = 99", nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(raw);
  }
  const auto journal = UndoJournal::open(state.path(), "boot-1");
  ASSERT_FALSE(journal);
  EXPECT_THAT(journal.error().message(), HasSubstr("a later berthd (format 99"));
}

TEST_F(UndoJournalTest, KeepsTheOriginalOfAnAttributeOfTheHostUntilItIsForgotten) {
  const std::vector<HostRecord> first{{"irq/4", "0-7", "0-3", std::nullopt}, {"irq/5", "1", "2", "3"}};
  ASSERT_TRUE(open()->record(first));
  const std::vector<HostRecord> later{{"irq/4", "0-3", "0-1", "0-3"}};
  ASSERT_TRUE(open()->record(later));
  const auto journal = open();
  EXPECT_EQ(journal->size(), 2U);
  EXPECT_EQ(journal->host().at("irq/4"), (HostRecord{"irq/4", "0-7", "0-1", "0-3"}));
  EXPECT_EQ(journal->host().at("irq/5"), first[1]);
  ASSERT_TRUE(journal->forget_host(std::vector<std::string>{"irq/5", "irq/6"}));
  EXPECT_EQ(journal->size(), 1U);
}

TEST_F(UndoJournalTest, AttributesOfTheHostDoNotOutliveTheBoot) {
  const std::vector<HostRecord> records{{"irq/4", "0-7", "0-3", std::nullopt}};
  ASSERT_TRUE(open("boot-1")->record(records));
  EXPECT_EQ(open("boot-2")->size(), 0U);
}

TEST_F(UndoJournalTest, IsForAnEarlierBerthdUnlessTheHostHasAnAttributeToPutBack) {
  const auto version = [this] {
    sqlite3* raw = nullptr;
    int found = -1;
    const auto take = [](void* to, int, char** texts, char**) {
      *static_cast<int*>(to) = std::stoi(texts[0]);
      return 0;
    };
    EXPECT_EQ(sqlite3_open((state.path() / "undo.db").c_str(), &raw), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(raw, "PRAGMA user_version", take, &found, nullptr), SQLITE_OK);
    sqlite3_close(raw);
    return found;
  };
  open()->record(direct("a"));
  EXPECT_EQ(version(), 1);
  std::vector<HostRecord> records{{"irq/4", "0-7", "0-3", std::nullopt}, {"irq/5", "1", "2", "3"}};
  ASSERT_TRUE(open()->record(records));
  EXPECT_EQ(version(), 2);
  ASSERT_TRUE(open()->forget_host(std::vector<std::string>{"irq/4"}));
  EXPECT_EQ(version(), 2);
  records = {{"irq/5", "1", "1", "2"}};  // nothing is left to put back
  ASSERT_TRUE(open()->record(records));
  EXPECT_EQ(version(), 1);
  EXPECT_EQ(open()->host().size(), 1U);
}

TEST_F(UndoJournalTest, ARecordOfVersion1IsKept) {
  open()->record(direct("a"));
  {
    sqlite3* raw = nullptr;
    ASSERT_EQ(sqlite3_open((state.path() / "undo.db").c_str(), &raw), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(raw, "DROP TABLE host; PRAGMA user_version = 1", nullptr, nullptr, nullptr),
              SQLITE_OK);
    sqlite3_close(raw);
  }
  EXPECT_THAT(open()->records(), SizeIs(1));
  const std::vector<HostRecord> records{{"irq/4", "0-7", "0-3", std::nullopt}};
  EXPECT_TRUE(open()->record(records));
}

TEST_F(UndoJournalTest, ReadOnlyDirectoryIsAPermissionError) {
  const ChildEnd end = on_tmpfs(state.path().string(), "size=1m", [&]() -> std::string {
    if (mount(nullptr, state.path().c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) != 0)
      return "SKIP: remounting";
    const auto journal = UndoJournal::open(state.path(), "boot-1");
    if (journal) return "opened";
    return journal.error().kind() == model::ErrorKind::permission ? "permission" : journal.error().message();
  });
  if (end.said.starts_with(kNoMounts)) GTEST_SKIP() << end.said;
  EXPECT_EQ(end.said, "permission");
}

TEST_F(UndoJournalTest, FullFileSystemFailsTheRecordAndSaysSo) {
  const ChildEnd end = on_tmpfs(state.path().string(), "size=256k", [&]() -> std::string {
    const auto journal = open();
    put_file(state.path() / "filler", std::string(1 << 20, 'x'));  // as much as fits
    UndoRecord large = direct("a");
    large.note = std::string(100'000, 'n');
    const auto recorded = journal->record(large);
    if (recorded) return "recorded";
    if (!journal->records().empty()) return "kept in memory what is not on disk";
    std::filesystem::remove(state.path() / "filler");
    if (const auto again = journal->record(direct("b")); !again)
      return "not usable afterwards: " + again.error().message();
    return recorded.error().message();
  });
  if (end.said.starts_with(kNoMounts)) GTEST_SKIP() << end.said;
  EXPECT_THAT(end.said, HasSubstr("no space left"));
}

TEST_F(UndoJournalTest, FileSizeLimitFailsTheRecord) {
  const ChildEnd end = in_child([&]() -> std::string {
    const auto journal = open();
    signal(SIGXFSZ, SIG_IGN);
    const auto size = std::filesystem::file_size(state.path() / "undo.db-wal");
    const rlimit limit{size, size};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return "setrlimit";
    const auto recorded = journal->record(direct("a"));
    return recorded ? "recorded" : "refused " + std::to_string(journal->records().size());
  });
  EXPECT_EQ(end.said, "refused 0");
}

TEST(BootId, IsReadFromProc) {
  const ScratchDirectory proc;
  EXPECT_FALSE(read_boot_id(proc.path()));
  put_file(proc.path() / "sys/kernel/random/boot_id", "5e1b\n");
  EXPECT_EQ(read_boot_id(proc.path()), "5e1b");
}

}  // namespace
}  // namespace berth::cgroup
