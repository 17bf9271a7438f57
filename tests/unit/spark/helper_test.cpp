// SPDX-License-Identifier: Apache-2.0
#include "spark/helper.h"

#include "tests/temporary_directory.h"
#include "tests/unit/spark/helper_process.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace berth::spark {
namespace {

using model::ErrorKind;
using ::testing::HasSubstr;

constexpr double kNow = 1'790'000'060;

model::Result<os::FileDescriptor> open_plainly(const std::filesystem::path& path) {
  os::FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return model::fail(model::Error::from_errno(errno, path.string()));
  return file;
}

class HelperTest : public ::testing::Test {
 protected:
  // What berthd makes of a process that answers in this way.
  model::Result<Answer> asked(const std::function<void(int socket)>& answering) {
    const test::HelperProcess process(answering);
    return Helper(process.path(), open_plainly).ask(question);
  }

  berth::test::TemporaryDirectory directory;
  Question question{.now = kNow,
                    .wall_ahead_s = 0,
                    .drivers = {{.process = {10, 7}, .user = geteuid(), .endpoints = {"127.0.0.1:1"}}}};
};

void say(int socket, wire::Type type, const std::string& bytes) {
  (void)wire::send_frame(socket, type, bytes);
}
void hear(int socket) { (void)wire::receive_frame(socket, wire::kMostFrameBytes); }

TEST_F(HelperTest, HandsOverTheQuestionAndTheFacts) {
  DriverFacts facts;
  facts.process = {10, 7};
  facts.app_id = "app-1";
  facts.read_at = kNow;
  const auto answer = asked([&](int socket) {
    const auto frame = wire::receive_frame(socket, wire::kMostFrameBytes);
    if (frame && wire::decode_question(frame->bytes) == question)
      say(socket, wire::Type::facts, wire::encode(facts));
    say(socket, wire::Type::done, wire::encode_done(true));
    hear(socket);
  });
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(*answer, (Answer{.drivers = {facts}, .goes_on = true}));
}

TEST_F(HelperTest, WhereNothingListensTheMessageNamesTheSocketAndTheRemedy) {
  const auto answer = Helper(directory.path() / "none", open_plainly).ask(question);
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message(), HasSubstr((directory.path() / "none").string()));
  EXPECT_THAT(answer.error().message(), HasSubstr("systemctl start berth-sparkd.socket"));
}

TEST_F(HelperTest, AHelperThatDiesIsAFaultAndIsNotStartedAgainAtOnce) {
  std::atomic<int> times{0};
  const test::HelperProcess process([&](int socket) {
    ++times;
    hear(socket);
  });
  Helper helper(process.path(), open_plainly);
  for (int i = 0; i < 5; ++i) {
    const auto answer = helper.ask(question);
    ASSERT_FALSE(answer);
    EXPECT_THAT(answer.error().message(), HasSubstr("has closed the connection"));
  }
  EXPECT_EQ(times, 1);
}

TEST_F(HelperTest, AHelperThatHangsIsGivenUp) {
  std::atomic<bool> over{false};
  const test::HelperProcess process([&](int socket) {
    hear(socket);
    over = true;
    hear(socket);
  });
  Helper helper(process.path(), open_plainly, [&] { return over.load(); });
  const auto answer = helper.ask(question);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::transient);
}

TEST_F(HelperTest, NonsenseEndsTheConnection) {
  const std::vector<std::pair<wire::Type, std::string>> nonsense{
      {wire::Type::facts, "x"},
      {wire::Type::facts, ""},
      {wire::Type::done, ""},
      {wire::Type::done, "\x02"},
      {wire::Type::question, wire::encode(question)},
      {wire::Type::opened, wire::encode(wire::Opened())},
      {wire::Type::open, "x"},
      {wire::Type::open, wire::encode(wire::Open{.process = {11, 7}, .path = "/etc/hostname"})},
      {wire::Type::open, wire::encode(wire::Open{.process = {10, 7}, .path = "relative"})},
      {static_cast<wire::Type>(77), ""},
  };
  for (const auto& [type, bytes] : nonsense) {
    const auto answer = asked([&type = type, &bytes = bytes](int socket) {
      hear(socket);
      say(socket, type, bytes);
      hear(socket);
    });
    ASSERT_FALSE(answer) << static_cast<int>(type) << " " << bytes;
    EXPECT_THAT(answer.error().message(), HasSubstr("it sent what is no answer"));
  }
}

TEST_F(HelperTest, AMessageThatNeverEndsTakesNoMemory) {
  const auto answer = asked([](int socket) {
    hear(socket);
    const std::uint32_t length = 0xffffffff;
    std::string header(8, '\0');
    header.replace(0, 4, reinterpret_cast<const char*>(&length), 4);
    header[4] = static_cast<char>(wire::Type::facts);
    (void)!send(socket, header.data(), header.size(), MSG_NOSIGNAL);
    hear(socket);
  });
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message(), HasSubstr("a message of 4294967295 bytes"));
}

TEST_F(HelperTest, MoreFactsThanDriversAreNonsense) {
  const auto answer = asked([](int socket) {
    hear(socket);
    DriverFacts facts;
    facts.process = {10, 7};
    for (int i = 0; i < 2; ++i) say(socket, wire::Type::facts, wire::encode(facts));
    hear(socket);
  });
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message(), HasSubstr("too many drivers"));
}

// The file that a helper gets for a path, the names in the directory, or why not.
class HelperOpensTest : public HelperTest {
 protected:
  std::string opened(const std::string& path) {
    std::string found;
    const auto answer = asked([&](int socket) {
      hear(socket);
      say(socket, wire::Type::open, wire::encode(wire::Open{.process = {10, 7}, .path = path}));
      const auto frame = wire::receive_frame(socket, wire::kMostFrameBytes, {}, true);
      if (!frame) return;
      const auto result = wire::decode_opened(frame->bytes);
      found = result ? result->message : "nonsense";
      if (frame->file) {
        found.resize(100);
        found.resize(
            static_cast<std::size_t>(std::max<ssize_t>(0, read(frame->file.get(), found.data(), 100))));
      } else if (result && result->parts) {
        for (const std::string& part : *result->parts) found += part + "\n";
      }
      say(socket, wire::Type::done, wire::encode_done(false));
      hear(socket);
    });
    EXPECT_TRUE(answer);
    return found;
  }
  std::string written(const std::string& name, const std::string& text) const {
    const auto path = directory.path() / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path.string();
  }
};

constexpr const char* kEvent = R"({"Event":"SparkListenerLogStart"})";

TEST_F(HelperOpensTest, AnEventLogOfTheDriversUserIsHandedOver) {
  EXPECT_EQ(opened(written("log", kEvent)), kEvent);
}

TEST_F(HelperOpensTest, AnotherFileOfTheDriversUserIsNot) {
  for (const char* text : {"root:$6$secret:19000:0:99999:7:::", "{\"key\": 1}", "\x28\xb5\x2f\xfd compressed",
                           " {\"Event\":1}"}) {
    EXPECT_THAT(opened(written("shadow", text)), HasSubstr("does not begin like a plain event log")) << text;
  }
}

TEST_F(HelperOpensTest, AnEventLogWithoutAnEventIsWaitedFor) {
  for (const char* text : {"", "{\"Ev"}) {
    EXPECT_THAT(opened(written("log", text)), HasSubstr("has no event yet")) << text;
  }
}

TEST_F(HelperOpensTest, OfADirectoryOnlyTheNamesOfPartsAreHandedOver) {
  written("eventlog_v2_app-1/events_1_app-1", kEvent);
  written("eventlog_v2_app-1/secret", "x");
  EXPECT_EQ(opened((directory.path() / "eventlog_v2_app-1").string()), "events_1_app-1\n");
  written("private/events_1_app-1", kEvent);
  for (const char* path : {"private", "eventlog_v2_app-1/../private", "eventlog_v2_app-1/.."}) {
    EXPECT_THAT(opened((directory.path() / path).string()), HasSubstr("is not the directory of an event log"))
        << path;
  }
}

TEST_F(HelperOpensTest, AFileOfAnotherUserIsNot) {
  const auto log = written("log", kEvent);
  question.drivers[0].user = geteuid() + 1;
  EXPECT_THAT(opened(log), HasSubstr("belongs to user"));
}

TEST_F(HelperOpensTest, AFileThatIsNotThereIsGone) {
  EXPECT_THAT(opened((directory.path() / "none").string()), HasSubstr("No such file"));
}

}  // namespace
}  // namespace berth::spark
