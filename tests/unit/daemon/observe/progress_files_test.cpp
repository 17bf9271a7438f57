// SPDX-License-Identifier: Apache-2.0
// Real files in temporary directories, real inotify.
#include "daemon/observe/progress_files.h"

#include "tests/patience.h"
#include "tests/unit/cgroup/fake_tree.h"

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace berth::daemon {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

double epoch() {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

constexpr const char* kJob = "system.slice/job@7.service";

class ProgressFilesTest : public testing::Test {
 protected:
  ProgressFilesTest() {
    std::string name = (fs::temp_directory_path() / "berth-progress-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
    base = name;
    tree.make(kJob);
    add(kJob, (base / "%p-%i").string());
  }
  ~ProgressFilesTest() override {
    std::error_code ignored;
    fs::remove_all(base, ignored);
  }

  void add(const std::string& id, const std::string& pattern) {
    cgroup::FoundWorkload workload;
    workload.cgroup = cgroup::Cgroup::open(tree.root(), id).value();
    workload.identity.id = id;
    workload.identity.created = created;
    workload.progress_file = pattern;
    found.insert_or_assign(id, std::move(workload));
  }
  static void write(const fs::path& path, const std::string& text,
                    std::ios::openmode mode = std::ios::trunc) {
    std::ofstream(path, mode) << text;
  }
  std::vector<std::string> tick() { return files.follow(found, ++generation, reports, epoch()); }
  // Only by what inotify tells.
  std::vector<std::string> event() { return files.process(found, reports, epoch()); }
  std::optional<double> newest(const std::string& id = kJob) {
    return reports.newest(id, found.at(id).cgroup->id());
  }
  // Until inotify brought that figure, without any tick.
  bool comes(double fraction) {
    return berth::test::eventually([&] {
      if (newest() != fraction) event();
      return newest() == fraction;
    });
  }

  cgroup::test::FakeTree tree;
  fs::path base;
  double created = epoch();
  std::map<std::string, cgroup::FoundWorkload> found;
  std::uint64_t generation = 0;
  ProgressReports reports;
  ProgressFiles files{tree.proc()};
  fs::path file() const { return base / "job-7"; }
};

TEST_F(ProgressFilesTest, WhatIsThereIsReadAtTheFirstTick) {
  write(file(), "0.25\n");
  EXPECT_THAT(tick(), IsEmpty());
  EXPECT_EQ(newest(), 0.25);
}

TEST_F(ProgressFilesTest, EveryWayOfWritingIsSeenAtOnce) {
  EXPECT_THAT(tick(), IsEmpty());
  write(file(), "1/10\n");  // created
  EXPECT_TRUE(comes(0.1));
  write(file(), "0.2\n");  // truncated and written
  EXPECT_TRUE(comes(0.2));
  write(file(), "0.3\n", std::ios::app);  // appended to
  EXPECT_TRUE(comes(0.3));
  write(base / "new", "0.4\n");
  fs::rename(base / "new", file());  // replaced
  EXPECT_TRUE(comes(0.4));
  write(file(), "0.5\n");  // the new one is watched too
  EXPECT_TRUE(comes(0.5));
  fs::remove(file());
  write(file(), "0.6\n");
  EXPECT_TRUE(comes(0.6));
  write(base / "link", "0.7\n");
  fs::remove(file());
  fs::create_hard_link(base / "link", file());
  EXPECT_TRUE(comes(0.7));
  write(file(), "0.65\n");  // that it falls is for the policy to judge
  EXPECT_TRUE(comes(0.65));
}

TEST_F(ProgressFilesTest, ItsDirectoryMayComeLaterAndGoAndComeAgain) {
  add(kJob, (base / "a/b/%n").string());
  const auto path = base / "a/b" / "job@7.service";
  EXPECT_THAT(tick(), IsEmpty());
  fs::create_directory(base / "a");
  EXPECT_THAT(event(), IsEmpty());
  fs::create_directory(base / "a/b");
  EXPECT_THAT(event(), IsEmpty());
  write(path, "0.1\n");
  EXPECT_TRUE(comes(0.1));
  fs::remove_all(base / "a");
  event();
  fs::create_directories(path.parent_path());
  write(path, "0.2\n");
  EXPECT_TRUE(comes(0.2));
  fs::rename(base / "a/b", base / "a/old");
  event();
  fs::create_directories(path.parent_path());
  write(path, "0.3\n");
  EXPECT_TRUE(comes(0.3));
}

TEST_F(ProgressFilesTest, ADirectoryReplacedFurtherUpIsFoundByTheTick) {
  add(kJob, (base / "a/b/%n").string());
  fs::create_directories(base / "a/b");
  tick();
  fs::rename(base / "a", base / "old");
  fs::create_directories(base / "a/b");
  write(base / "a/b/job@7.service", "0.1\n");
  tick();
  EXPECT_EQ(newest(), 0.1);
  write(base / "a/b/job@7.service", "0.2\n");
  EXPECT_TRUE(comes(0.2));
}

TEST_F(ProgressFilesTest, TheLastLineCounts) {
  int i = 0;
  for (const auto& [text, fraction] : std::initializer_list<std::pair<std::string, double>>{
           {"0.1\n0.2\n", 0.2},
           {"0.3", 0.3},                                  // without a line break
           {"0.31\n41/", 0.31},                           // half written
           {"garbage\n0.4\n\n  \n", 0.4},                 // blank lines after it
           {std::string(1 << 20, 'x') + "\n0.5\n", 0.5},  // of a large file only the end is read
           {std::string(1 << 20, '\n') + "0.6\r\n", 0.6}}) {
    write(base / "new", text);
    fs::rename(base / "new", file());
    EXPECT_THAT(tick(), IsEmpty()) << i;
    EXPECT_EQ(newest(), fraction) << i++;
  }
}

TEST_F(ProgressFilesTest, AnEmptyFileSaysNothing) {
  for (const char* text : {"", "\n", " \n\t\n"}) {
    write(file(), text);
    EXPECT_THAT(tick(), IsEmpty());
  }
  EXPECT_EQ(newest(), std::nullopt);
}

TEST_F(ProgressFilesTest, GarbageIsSaidOncePerRunAndDoesNoHarm) {
  write(file(), "soon\n");
  EXPECT_THAT(tick(), ElementsAre(testing::AllOf(HasSubstr(kJob), HasSubstr(file().string()),
                                                 HasSubstr("neither a fraction"))));
  EXPECT_THAT(tick(), IsEmpty());
  write(file(), "later\n");
  EXPECT_THAT(event(), IsEmpty());
  EXPECT_THAT(tick(), IsEmpty());
  write(file(), "0.5\n");
  EXPECT_THAT(tick(), IsEmpty());
  EXPECT_EQ(newest(), 0.5);
  write(file(), "1.5\n");
  EXPECT_THAT(tick(), IsEmpty());
  EXPECT_EQ(newest(), 0.5);
  fs::rename(tree.root() / kJob, tree.root() / "keeps-the-inode");
  tree.make(kJob);
  add(kJob, (base / "%p-%i").string());
  EXPECT_THAT(tick(), testing::SizeIs(1));  // another run
}

TEST_F(ProgressFilesTest, WhatItSaysHoldsNothingOfTheFile) {
  write(file(), "root:$6$secret:1:0:99999:7:::\n");
  const auto messages = tick();
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_THAT(messages.front(), testing::Not(HasSubstr("secret")));
}

TEST_F(ProgressFilesTest, ALineWithoutEndIsRefused) {
  write(file(), std::string(1 << 20, '0'));
  EXPECT_THAT(tick(), ElementsAre(HasSubstr("longer than 4096 bytes")));
  write(file(), "\n" + std::string(1 << 20, '\0'));
  EXPECT_THAT(tick(), IsEmpty());
  EXPECT_EQ(newest(), std::nullopt);
}

TEST_F(ProgressFilesTest, OnlyRegularFilesAreOpened) {
  ASSERT_EQ(mkfifo(file().c_str(), 0600), 0);
  EXPECT_THAT(tick(), ElementsAre(HasSubstr("it is a FIFO, not a regular file")));
  fs::remove(file());
  fs::create_directory(file());
  EXPECT_THAT(tick(), ElementsAre(HasSubstr("it is a directory")));
  fs::remove(file());
  write(base / "elsewhere", "0.9\n");
  fs::create_symlink(base / "elsewhere", file());
  EXPECT_THAT(tick(), ElementsAre(HasSubstr("it is a symbolic link")));
  fs::remove(file());
  const int socket_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  file().string().copy(address.sun_path, sizeof address.sun_path - 1);
  // The type that bind(2) wants of every address.
  ASSERT_EQ(bind(socket_fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_THAT(tick(), ElementsAre(HasSubstr("it is a socket")));
  close(socket_fd);
  EXPECT_EQ(newest(), std::nullopt);
  fs::remove(file());
  write(file(), "0.1\n");
  EXPECT_THAT(tick(), IsEmpty());
  EXPECT_EQ(newest(), 0.1);
}

TEST_F(ProgressFilesTest, AReportsTimeIsTheFiles) {
  write(file(), "0.1\n");
  const timespec times[2] = {{0, UTIME_OMIT}, {static_cast<time_t>(created) + 5, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, file().c_str(), times, 0), 0);
  const double now = created + 100;
  files.follow(found, ++generation, reports, now);
  const auto run = found.at(kJob).cgroup->id();
  ASSERT_EQ(reports.of(kJob, run).size(), 1U);
  EXPECT_EQ(reports.of(kJob, run).back().time, static_cast<double>(times[1].tv_sec));
  // A time that is not after the last one, or is in the future, is not believed.
  write(base / "new", "0.2\n");
  ASSERT_EQ(utimensat(AT_FDCWD, (base / "new").c_str(), times, 0), 0);
  fs::rename(base / "new", file());
  files.follow(found, ++generation, reports, now + 1);
  EXPECT_EQ(reports.of(kJob, run).back().time, now + 1);
  write(base / "new", "0.3\n");
  const timespec future[2] = {{0, UTIME_OMIT}, {static_cast<time_t>(now) + 1000, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, (base / "new").c_str(), future, 0), 0);
  fs::rename(base / "new", file());
  files.follow(found, ++generation, reports, now + 2);
  EXPECT_EQ(reports.of(kJob, run).back().time, now + 2);
  EXPECT_EQ(reports.of(kJob, run).size(), 3U);
}

TEST_F(ProgressFilesTest, TheSameFigureWrittenAgainIsAReportButChmodIsNone) {
  write(file(), "0.1\n");
  tick();
  const auto run = found.at(kJob).cgroup->id();
  fs::permissions(file(), fs::perms(0644));
  tick();
  event();
  EXPECT_EQ(reports.of(kJob, run).size(), 1U);
  const timespec times[2] = {{0, UTIME_OMIT}, {static_cast<time_t>(created) + 1000, 0}};
  write(file(), "0.1\n");
  ASSERT_EQ(utimensat(AT_FDCWD, file().c_str(), times, 0), 0);
  files.follow(found, ++generation, reports, created + 2000);
  EXPECT_EQ(reports.of(kJob, run).size(), 2U);
}

TEST_F(ProgressFilesTest, WhatARestartedWorkloadWritesBetweenTicksIsItsOwn) {
  write(file(), "0.9\n");
  tick();
  const auto earlier = found.at(kJob).cgroup->id();
  fs::rename(tree.root() / kJob, tree.root() / "keeps-the-inode");
  tree.make(kJob);
  created = epoch();
  add(kJob, (base / "%p-%i").string());
  write(file(), "0.1\n");
  EXPECT_TRUE(comes(0.1));
  EXPECT_TRUE(reports.of(kJob, earlier).empty());
}

TEST_F(ProgressFilesTest, LinksOfRootOnTheWayAreFollowed) {
  fs::create_directories(base / "real/deep");
  fs::create_directory_symlink("real", base / "relative");
  fs::create_directory_symlink(base / "relative/deep", base / "absolute");
  add(kJob, (base / "absolute/f").string());
  EXPECT_THAT(tick(), IsEmpty());
  write(base / "real/deep/f", "0.1\n");
  EXPECT_TRUE(comes(0.1));
}

TEST_F(ProgressFilesTest, LinksOfOthersOnTheWayAreNot) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make somebody else's link";
  fs::create_directory(base / "real");
  write(base / "real/f", "0.1\n");
  fs::create_directory_symlink("real", base / "link");
  ASSERT_EQ(lchown((base / "link").c_str(), 65534, 65534), 0);
  add(kJob, (base / "link/f").string());
  EXPECT_THAT(tick(),
              ElementsAre(HasSubstr("\"link\" on the way is not followed: it belongs to user 65534")));
  EXPECT_THAT(tick(), IsEmpty());
  EXPECT_EQ(newest(), std::nullopt);
  fs::remove(base / "link");
  fs::rename(base / "real", base / "link");
  tick();
  EXPECT_EQ(newest(), 0.1);
}

TEST_F(ProgressFilesTest, ACircleOfLinksEnds) {
  fs::create_directory_symlink("b", base / "a");
  fs::create_directory_symlink("a", base / "b");
  add(kJob, (base / "a/f").string());
  EXPECT_THAT(tick(), ElementsAre(HasSubstr("symbolic links")));
}

TEST_F(ProgressFilesTest, APartThatIsNoDirectoryYetIsWaitedFor) {
  write(base / "dir", "in the way");
  add(kJob, (base / "dir/f").string());
  EXPECT_THAT(tick(), IsEmpty());
  fs::remove(base / "dir");
  fs::create_directory(base / "dir");
  event();
  write(base / "dir/f", "0.1\n");
  EXPECT_TRUE(comes(0.1));
}

TEST_F(ProgressFilesTest, WhatCannotBeReachedIsSaidAndIsNoMissingFile) {
  const std::string name(300, 'x');  // longer than any file system takes
  add(kJob, (base / name / "f").string());
  EXPECT_THAT(tick(), ElementsAre(HasSubstr("too long")));
  EXPECT_THAT(tick(), IsEmpty());
}

TEST_F(ProgressFilesTest, WhatAnEarlierRunLeftIsNotThisOnes) {
  write(file(), "1\n");
  const timespec times[2] = {{0, UTIME_OMIT}, {static_cast<time_t>(created) - 60, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, file().c_str(), times, 0), 0);
  EXPECT_THAT(tick(), IsEmpty());
  EXPECT_EQ(newest(), std::nullopt);
  write(file(), "0.01\n");
  tick();
  EXPECT_EQ(newest(), 0.01);
}

TEST_F(ProgressFilesTest, WorkloadsMayShareADirectoryAndAFile) {
  tree.make("batch/a");
  tree.make("batch/b");
  add("batch/a", file().string());
  add("batch/b", (base / "b").string());
  tick();
  write(file(), "0.5\n");
  write(base / "b", "0.6\n");
  EXPECT_TRUE(comes(0.5));
  event();
  EXPECT_EQ(newest("batch/a"), 0.5);
  EXPECT_EQ(newest("batch/b"), 0.6);
  found.erase("batch/a");
  tick();
  write(file(), "0.7\n");
  EXPECT_TRUE(comes(0.7));
}

TEST_F(ProgressFilesTest, AWorkloadThatEndedOrLostItsRuleIsNotReadAnyMore) {
  tick();
  const auto run = found.at(kJob).cgroup->id();
  found.clear();
  tick();
  write(file(), "0.5\n");
  event();
  tick();
  EXPECT_EQ(reports.newest(kJob, run), std::nullopt);
}

TEST_F(ProgressFilesTest, APathThatTheNameMakesImpossibleIsSaid) {
  tree.make("batch/x@...service");
  add("batch/x@...service", (base / "%i/f").string());
  EXPECT_THAT(tick(), ElementsAre(HasSubstr("component \"..\"")));
  EXPECT_THAT(tick(), IsEmpty());
}

TEST_F(ProgressFilesTest, AFileThatTheSandboxHidesIsSaid) {
  add(kJob, "/home/job/progress");
  tree.write_proc("self/mountinfo",
                  "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
                  "30 22 0:25 / /run rw - tmpfs tmpfs rw\n"
                  "40 22 0:25 /systemd/inaccessible/dir /home ro - tmpfs tmpfs rw\n"
                  "41 22 8:1 /tmp/systemd-private-abc-berthd.service-x/tmp /tmp rw - ext4 /dev/sda1 rw\n");
  EXPECT_THAT(tick(), ElementsAre(testing::AllOf(HasSubstr("/home/job/progress"), HasSubstr("ProtectHome="),
                                                 HasSubstr("/run"), HasSubstr("/srv"))));
  EXPECT_THAT(tick(), IsEmpty());
  add(kJob, "/tmp/no-such-directory/progress");
  EXPECT_THAT(tick(), ElementsAre(HasSubstr("PrivateTmp=")));
  add(kJob, "/homestead/progress");
  EXPECT_THAT(tick(), IsEmpty());
}

TEST_F(ProgressFilesTest, TheLoopIsToldOfChanges) {
  sd_event* loop = nullptr;
  ASSERT_GE(sd_event_new(&loop), 0);
  int calls = 0;
  files.attach(loop, [&] {
    ++calls;
    event();
  });
  tick();
  write(file(), "0.5\n");
  EXPECT_TRUE(berth::test::eventually([&] {
    if (newest() != 0.5) sd_event_run(loop, 10'000);
    return newest() == 0.5;
  }));
  EXPECT_GT(calls, 0);
  files.detach();
  const int before = calls;
  write(file(), "0.6\n");
  sd_event_run(loop, 10'000);
  EXPECT_EQ(calls, before);
  tick();
  EXPECT_EQ(newest(), 0.6);
  sd_event_unref(loop);
}

}  // namespace
}  // namespace berth::daemon
