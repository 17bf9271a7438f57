// SPDX-License-Identifier: Apache-2.0
#include "spark/sparkd/event_log.h"

#include "spark/sparkd/event_log_file.h"

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace berth::spark {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr const char* kJob =
    R"({"Event":"SparkListenerJobStart","Job ID":0,"Submission Time":1,"Stage Infos":[)"
    R"({"Stage ID":0,"Stage Attempt ID":0,"Stage Name":"x","Number of Tasks":4,"RDD Info":[],"Parent IDs":[]},)"
    R"({"Stage ID":2,"Stage Attempt ID":0,"Parent IDs":[0,1],"Details":"a\nb"}],"Stage IDs":[0,2]})"
    "\n";
constexpr const char* kStage =
    R"({"Event":"SparkListenerStageSubmitted","Stage Info":{"Stage ID":7,"Parent IDs":[3]},"Properties":{}})"
    "\n";
constexpr const char* kTask =
    R"({"Event":"SparkListenerTaskEnd","Stage ID":9,"Parent IDs":[1],"Stage Info":{"Stage ID":9,"Parent IDs":[1]}})"
    "\n";

TEST(EventLog, TellsWhichStagesReadWhichOnes) {
  EventLog log;
  log.take(std::string(kTask) + kJob + kTask + kStage);
  EXPECT_THAT(log.parents(),
              ElementsAre(Pair(0, IsEmpty()), Pair(2, ElementsAre(0, 1)), Pair(7, ElementsAre(3))));
}

TEST(EventLog, IsTheSameInWhateverPiecesItComes) {
  const std::string text = std::string(kTask) + kJob + kStage;
  EventLog whole;
  whole.take(text);
  for (std::size_t piece : {1, 7, 63, 64, 65, 200}) {
    EventLog log;
    for (std::size_t at = 0; at < text.size(); at += piece)
      log.take(std::string_view(text).substr(at, piece));
    EXPECT_EQ(log.parents(), whole.parents()) << piece;
  }
}

TEST(EventLog, ALineThatIsNotThroughIsWaitedFor) {
  EventLog log;
  const std::string text(kStage);
  log.take(std::string_view(text).substr(0, text.size() - 1));
  EXPECT_THAT(log.parents(), IsEmpty());
  log.take("\n");
  EXPECT_THAT(log.parents(), ElementsAre(Pair(7, ElementsAre(3))));
}

TEST(EventLog, KeepsNoPartOfALine) {
  EventLog log;
  const std::string start = R"({"Event":"SparkListenerStageSubmitted","Stage Info":{"Stage ID":7,)";
  log.take(kJob + start);
  EXPECT_EQ(log.drop_open(), start.size());
  EXPECT_EQ(log.drop_open(), 0U);
  EXPECT_EQ(log.bytes(), EventLog().bytes() + 2 * 128 + 4 * sizeof(int)) << "those of two stages";
  log.take(kStage);
  EXPECT_THAT(log.parents(),
              ElementsAre(Pair(0, IsEmpty()), Pair(2, ElementsAre(0, 1)), Pair(7, ElementsAre(3))));
  log.take("{\"Event\":\"SparkListenerTaskEnd\",\"many more bytes than the kind of the event takes\"");
  EXPECT_EQ(log.drop_open(), 0U) << "it does not matter";
  log.take(std::string("}\n") +
           R"({"Event":"SparkListenerStageSubmitted","Stage Info":{"Stage ID":8,"Parent IDs":[]}})" + "\n");
  EXPECT_EQ(log.parents().count(8), 1U);
}

TEST(EventLog, LiesArePassedOver) {
  EventLog log;
  const std::string start = R"({"Event":"SparkListenerStageSubmitted",)";
  for (const char* lie :
       {"", "\n", "\"Stage Info\":7}", "\"Stage Info\":{\"Stage ID\":1}}",
        "\"Stage Info\":{\"Parent IDs\":[1]}}", "\"Stage Info\":{\"Stage ID\":-1,\"Parent IDs\":[1]}}",
        "\"Stage Info\":{\"Stage ID\":1,\"Parent IDs\":7}}",
        "\"Stage Info\":{\"Stage ID\":1,\"Parent IDs\":[1.5]}}", "\"Stage Infos\":{}}",
        "\"Stage Infos\":[1,[],{}]}", "\"Stage Info\":{\"Stage ID\":1,\"Parent IDs\":[\"0\"]}}"}) {
    log.take(start + lie + "\n");
  }
  log.take(start + std::string(1'000'000, '[') + "\n");
  log.take(std::string(1000, '\0') + "\n\xff\xfe\n");
  EXPECT_THAT(log.parents(), IsEmpty());
  log.take(kStage);
  EXPECT_THAT(log.parents(), ElementsAre(Pair(7, ElementsAre(3))));
}

TEST(EventLog, ALineWithoutEndIsNotKept) {
  EventLog log;
  log.take(R"({"Event":"SparkListenerJobStart","Stage Infos":[{"Stage ID":1,"Parent IDs":[)");
  const std::string more(1 << 20, '1');
  for (int i = 0; i < 3; ++i) log.take(more);
  EXPECT_GT(log.bytes(), std::size_t{3} << 20);
  for (int i = 0; i < 5; ++i) log.take(more);
  EXPECT_LT(log.bytes(), 4096U) << "its memory is released";
  log.take(std::string("]}]}\n") + kStage);
  EXPECT_THAT(log.parents(), ElementsAre(Pair(7, ElementsAre(3))));
}

TEST(EventLog, HasNoMoreParentsThanAnybodyNeeds) {
  EventLog log;
  std::string many = R"({"Event":"SparkListenerStageSubmitted","Stage Info":{"Stage ID":1,"Parent IDs":[0)";
  for (std::size_t i = 0; i < EventLog::kMostParents; ++i) many += ",0";
  log.take(many + "]}}\n" + kStage);
  EXPECT_THAT(log.parents(), ElementsAre(Pair(7, ElementsAre(3))));
}

TEST(EventLogPlace, IsAsTheDriversPropertiesSay) {
  const auto place = [](std::map<std::string, std::string> properties, const std::string& attempt = "") {
    properties.emplace("spark.eventLog.enabled", "true");
    return event_log_of(properties, "App_1.x:y", attempt);
  };
  EXPECT_EQ(event_log_of({{"spark.eventLog.dir", "/x"}}, "a", "").value(), std::nullopt);
  EXPECT_EQ(place({}).value(), (EventLogPlace{"/tmp/spark-events", "app_1_x-y"}));
  EXPECT_EQ(place({{"spark.eventLog.dir", "file:/var/log/s"}}, "2").value(),
            (EventLogPlace{"/var/log/s", "app_1_x-y_2"}));
  EXPECT_EQ(place({{"spark.eventLog.dir", "/var/log/s"}}).value()->directory, "/var/log/s");
  for (const char* elsewhere : {"hdfs://nn/logs", "s3a://b/x", "file://host/x", "logs", ""}) {
    const auto refused = place({{"spark.eventLog.dir", elsewhere}});
    ASSERT_FALSE(refused) << elsewhere;
    EXPECT_EQ(refused.error().kind(), model::ErrorKind::unavailable);
  }
}

class EventLogFileTest : public ::testing::Test {
 protected:
  ~EventLogFileTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(root, ignored);
  }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((root / name).parent_path());
    std::ofstream(root / name, std::ios::app | std::ios::binary) << text;
  }
  // The new text, or the error.
  std::string read() {
    std::string text;
    const auto done = file.read([&](std::string_view bytes) { text += bytes; });
    return done ? text : "error: " + done.error().message();
  }
  static model::Result<LogFile> open_plainly(const std::filesystem::path& path) {
    if (std::filesystem::is_directory(path)) {
      LogFile directory{.file = {}, .parts = std::vector<std::string>()};
      for (const auto& entry : std::filesystem::directory_iterator(path))
        directory.parts->push_back(entry.path().filename());
      return directory;
    }
    os::FileDescriptor opened(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!opened) return model::fail(model::Error::from_errno(errno, path.string()));
    return LogFile{.file = std::move(opened), .parts = {}};
  }

  static std::filesystem::path made() {
    std::string name = (std::filesystem::temp_directory_path() / "berth-events-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    return name;
  }

  std::filesystem::path root = made();
  EventLogFile file{{root, "app-1"}, geteuid(), open_plainly};
};

TEST_F(EventLogFileTest, IsReadAsItGrows) {
  EXPECT_THAT(read(), HasSubstr("error: ")) << "not there yet";
  write("app-1.inprogress", "one\n");
  EXPECT_EQ(read(), "one\n");
  EXPECT_EQ(read(), "");
  write("app-1.inprogress", "two\nthr");
  EXPECT_EQ(read(), "two\nthr");
  std::filesystem::rename(root / "app-1.inprogress", root / "app-1");
  write("app-1", "ee\n");
  EXPECT_EQ(read(), "ee\n") << "it is the same file";
}

TEST_F(EventLogFileTest, BytesThatWereNotUsedComeAgain) {
  write("app-1", "one\ntw");
  EXPECT_EQ(read(), "one\ntw");
  file.unread(2);
  write("app-1", "o\n");
  EXPECT_EQ(read(), "two\n");
}

TEST_F(EventLogFileTest, OfALongOneAPartIsReadAtATime) {
  write("app-1", std::string(EventLogFile::kMostBytes + 10, 'x'));
  EXPECT_EQ(read().size(), EventLogFile::kMostBytes);
  EXPECT_EQ(read().size(), 10U);
}

TEST_F(EventLogFileTest, GoesOnInTheNextPart) {
  write("eventlog_v2_app-1/appstatus_app-1.inprogress", "");
  write("eventlog_v2_app-1/events_2_app-1", "two\n");
  write("eventlog_v2_app-1/events_11_app-10", "of another\n");
  EXPECT_EQ(read(), "two\n");
  write("eventlog_v2_app-1/events_2_app-1", "more");
  write("eventlog_v2_app-1/events_3_app-1", "three\n");
  EXPECT_EQ(read(), "more\nthree\n");
  EXPECT_EQ(read(), "");
}

TEST_F(EventLogFileTest, APartIsReadToItsEndBeforeTheNext) {
  const std::string base = "eventlog_v2_app-1/events_";
  bool rolled_over = false;
  file = EventLogFile({root, "app-1"}, geteuid(), [&](const std::filesystem::path& path) {
    if (path.filename() == "events_2_app-1" && !std::exchange(rolled_over, true)) {
      write(base + "1_app-1", "at the last moment\n");
      write(base + "2_app-1", "two\n");
    }
    return open_plainly(path);
  });
  write(base + "1_app-1", "one\n");
  EXPECT_EQ(read(), "one\nat the last moment\n\ntwo\n");
}

TEST_F(EventLogFileTest, GoesOnWhereOldPartsAreCompactedMeanwhile) {
  const std::string base = "eventlog_v2_app-1/events_";
  for (int part = 1; part <= 2; ++part) write(base + std::to_string(part) + "_app-1", std::to_string(part));
  EXPECT_EQ(read(), "1\n2");
  // The one at hand, and others that were never read, go into one.
  for (int part = 3; part <= 6; ++part) write(base + std::to_string(part) + "_app-1", std::to_string(part));
  write(base + "4_app-1.compact.inprogress", "1");
  std::filesystem::rename(root / (base + "4_app-1.compact.inprogress"), root / (base + "4_app-1.compact"));
  for (int part = 1; part <= 4; ++part)
    std::filesystem::remove(root / (base + std::to_string(part) + "_app-1"));
  EXPECT_EQ(read(), "\n1\n5\n6") << "what is of use of 3 and 4 is in the compacted one";
  // Then what was compacted goes into the next, and all that was read.
  write(base + "7_app-1", "7");
  write(base + "5_app-1.compact", "1");
  std::filesystem::remove(root / (base + "4_app-1.compact"));
  std::filesystem::remove(root / (base + "5_app-1"));
  EXPECT_EQ(read(), "\n7");
  write(base + "8_app-1", "8");
  write(base + "7_app-1.compact", "17");
  for (int part = 6; part <= 7; ++part)
    std::filesystem::remove(root / (base + std::to_string(part) + "_app-1"));
  EXPECT_EQ(read(), "\n8") << "7 was read while it was there";
}

TEST_F(EventLogFileTest, BeginsWithWhatWasCompactedLast) {
  const std::string base = "eventlog_v2_app-1/events_";
  write(base + "2_app-1.compact", "old\n");
  write(base + "5_app-1.compact", "1 to 5\n");
  write(base + "5_app-1", "not removed yet\n");
  write(base + "9_app-1.compact.inprogress", "not there yet\n");
  write(base + "6_app-1", "six\n");
  EXPECT_EQ(read(), "1 to 5\n\nsix\n");
}

TEST_F(EventLogFileTest, WhatSomebodyElseCompactedIsPassedOver) {
  const std::string base = "eventlog_v2_app-1/events_";
  write(base + "1_app-1", "one\n");
  EXPECT_EQ(read(), "one\n");
  std::filesystem::remove(root / (base + "1_app-1"));
  std::filesystem::create_directories(root /
                                      (base + "2_app-1.compact"));  // it is refused like another user's
  EXPECT_EQ(read(), "");
  write(base + "4_app-1", "four\n");
  EXPECT_EQ(read(), "\nfour\n");
}

TEST_F(EventLogFileTest, APartThatIsRemovedBeforeItIsOpenedIsNotThere) {
  const std::string base = "eventlog_v2_app-1/events_";
  file = EventLogFile({root, "app-1"}, geteuid(), [&](const std::filesystem::path& path) {
    if (path.filename() == "events_1_app-1") std::filesystem::remove(path);
    return open_plainly(path);
  });
  write(base + "1_app-1", "one\n");
  EXPECT_THAT(read(), HasSubstr("has no events"));
  write(base + "2_app-1", "two\n");
  EXPECT_EQ(read(), "two\n");
}

TEST_F(EventLogFileTest, WhereTheNextPartIsNotReadableItSaysSo) {
  write("eventlog_v2_app-1/events_1_app-1", "one\n");
  EXPECT_EQ(read(), "one\n");
  write("eventlog_v2_app-1/events_2_app-1.zstd", "x");
  EXPECT_THAT(read(), HasSubstr("compressed (zstd)"));
  std::filesystem::remove(root / "eventlog_v2_app-1/events_2_app-1.zstd");
  write("eventlog_v2_app-1/events_3_app-1.compact", "three\n");
  EXPECT_EQ(read(), "\nthree\n");
}

TEST_F(EventLogFileTest, OneThatIsCompressedIsNotRead) {
  write("app-1.zstd.inprogress", "x");
  EXPECT_THAT(read(), HasSubstr("compressed (zstd)"));
  write("eventlog_v2_app-1/events_1_app-1.lz4", "x");
  EXPECT_THAT(read(), HasSubstr("compressed (lz4)"));
}

TEST_F(EventLogFileTest, AnotherUsersIsNotRead) {
  write("app-1", "secret\n");
  file = EventLogFile({root, "app-1"}, geteuid() + 1, open_plainly);
  EXPECT_THAT(read(), HasSubstr("belongs to user"));
}

TEST_F(EventLogFileTest, WhatIsNoFileIsNotRead) {
  std::filesystem::create_directories(root / "app-1");
  EXPECT_THAT(read(), HasSubstr("is not a regular file"));
  std::filesystem::remove(root / "app-1");
  ASSERT_EQ(mkfifo((root / "app-1").c_str(), 0600), 0);
  EXPECT_THAT(read(), HasSubstr("is not a regular file"));
  std::filesystem::remove(root / "app-1");
  write("eventlog_v2_app-1", "x");
  EXPECT_THAT(read(), HasSubstr("is not a directory"));
}

}  // namespace
}  // namespace berth::spark
