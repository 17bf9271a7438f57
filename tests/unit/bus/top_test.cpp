// SPDX-License-Identifier: Apache-2.0
// The real berthctl top against the real service, on a terminal of its own and without one.
#include "../cli/program.h"
#include "fixture.h"
#include "tests/paths.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

namespace berth::test {

using nlohmann::json;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

namespace {

constexpr const char* kEntered = "\x1b[?1049h";
constexpr const char* kLeft = "\x1b[?1049l";

// berthctl with a terminal; killed with the test. Its standard error is the terminal too.
class OnTerminal {
 public:
  OnTerminal(const std::vector<std::string>& arguments, unsigned short rows) {
    std::vector<std::string> words{BERTHCTL};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const winsize size{rows, 120, 0, 0};
    pid_ = forkpty(&master_, nullptr, nullptr, &size);
    if (pid_ < 0) throw std::runtime_error("no pseudo terminal");
    if (pid_ == 0) {
      setenv("TERM", "xterm", 1);
      execv(BERTHCTL, argv.data());
      _exit(127);
    }
    fcntl(master_, F_SETFL, O_NONBLOCK);
    tcgetattr(master_, &before_);
  }
  ~OnTerminal() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    close(master_);
  }
  OnTerminal(const OnTerminal&) = delete;
  OnTerminal& operator=(const OnTerminal&) = delete;

  // Everything written to the terminal so far.
  const std::string& shown() {
    std::array<char, 65536> buffer{};
    ssize_t count = 0;
    while ((count = read(master_, buffer.data(), buffer.size())) > 0) {
      shown_.append(buffer.data(), static_cast<std::size_t>(count));
    }
    return shown_;
  }
  bool shows(const std::string& text, std::size_t from = 0) {
    return shown().find(text, from) != std::string::npos;
  }
  void type(const std::string& keys) {
    EXPECT_EQ(write(master_, keys.data(), keys.size()), ssize_t(keys.size()));
  }
  void resize(unsigned short rows) {
    const winsize size{rows, 120, 0, 0};
    ioctl(master_, TIOCSWINSZ, &size);
  }
  void signal(int number) const { kill(pid_, number); }
  // True once it ended, or for good once `status` was filled.
  bool ended() {
    if (pid_ > 0 && waitpid(pid_, &status, WNOHANG) == pid_) pid_ = -1;
    shown();
    return pid_ < 0;
  }
  bool stopped() { return waitpid(pid_, &status, WNOHANG | WUNTRACED) == pid_ && WIFSTOPPED(status); }
  // Whether the terminal echoes and hands out lines, as a shell wants it.
  bool cooked() const {
    termios now{};
    tcgetattr(master_, &now);
    return now.c_lflag == before_.c_lflag && (now.c_lflag & ICANON) != 0 && (now.c_lflag & ECHO) != 0;
  }

  int status = 0;

 private:
  int master_ = -1;
  pid_t pid_ = -1;
  termios before_{};
  std::string shown_;
};

}  // namespace

class Top : public BusServiceTest {
 protected:
  void SetUp() override {
    BusServiceTest::SetUp();
    control_.listed = R"({"schema":"berth.workloads/1","time":1,"workloads":[
      {"id":"batch/sort","service":"sort","class":"best-effort","cpu_cores":1.75,"cpu_pressure_some_avg10":1},
      {"id":"web/1","service":"web","class":"latency-sensitive","cpu_cores":0.5,"cpu_pressure_some_avg10":9}]})";
  }
  Ran berthctl(const std::string& arguments) {
    return with_client([arguments] { return run_shell("berthctl " + arguments); });
  }
  void wait_for(OnTerminal& top, const std::string& text, std::size_t from = 0) {
    serve_until([&] { return top.shows(text, from); });
    ASSERT_TRUE(top.shows(text, from)) << top.shown();
  }
  // Restored as it was, in that order: the screen, then whatever is said.
  static void expect_restored(OnTerminal& top) {
    EXPECT_TRUE(top.cooked());
    const std::string& shown = top.shown();
    EXPECT_NE(shown.find(kEntered), std::string::npos);
    EXPECT_GT(shown.rfind(kLeft), shown.rfind(kEntered));
    EXPECT_GT(shown.rfind("\x1b[?25h"), shown.rfind("\x1b[?25l")) << "the cursor";
    EXPECT_GT(shown.rfind("\x1b[?7h"), shown.rfind("\x1b[?7l")) << "line wrap";
  }
};

TEST_F(Top, PrintsOneFrameWhereThereIsNoTerminal) {
  for (const char* arguments : {"top", "top --once"}) {
    const Ran ran = berthctl(arguments);
    EXPECT_EQ(ran.exit, 0) << ran.err;
    EXPECT_THAT(ran.out, StartsWith("berth on "));
    EXPECT_THAT(ran.out, HasSubstr("batch/sort  best-effort"));
    EXPECT_THAT(ran.out, HasSubstr("use %")) << "of the vCPUs of this host";
    EXPECT_THAT(ran.out, Not(HasSubstr("\x1b")));
  }
}

// The page itself names workloads as they are called, and goes unchanged into a file or a pipe.
TEST_F(Top, MetricsOnATerminalAreSafeThere) {
  control_.metrics = "a{workload=\"x\xE2\x80\xAE\xC2\x9B\x1b[2J\"} 1\nb 2\n";
  OnTerminal terminal({"metrics"}, 24);
  wait_for(terminal, "b 2");
  EXPECT_THAT(terminal.shown(), HasSubstr("a{workload=\"x???[2J\"} 1\r\nb 2\r\n"));
  EXPECT_EQ(berthctl("metrics").out, control_.metrics);
}

TEST_F(Top, PrintsAsManyFramesAsWanted) {
  const Ran ran = berthctl("top -n 3 --interval 100ms");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  std::size_t frames = 0;
  for (std::size_t at = 0; (at = ran.out.find("berth on ", at)) != std::string::npos; ++at) ++frames;
  EXPECT_EQ(frames, 3U);
}

TEST_F(Top, PrintsADocumentALine) {
  const Ran ran = berthctl("top --json -n 2 --interval 100ms");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  ASSERT_EQ(lines_of(ran.out), 2);
  const json frame = json::parse(ran.out.substr(0, ran.out.find('\n')));
  EXPECT_EQ(frame.at("schema"), "berth.top/1");
  EXPECT_EQ(frame.at("status"), json::parse(control_.status_json()));
  EXPECT_EQ(frame.at("workloads"), json::parse(control_.workloads_json()));
  EXPECT_TRUE(frame.at("vcpu_use").is_object());
  for (const auto& share : frame.at("vcpu_use")) {
    EXPECT_GE(share.get<double>(), 0);
    EXPECT_LE(share.get<double>(), 1);
  }
  EXPECT_EQ(lines_of(berthctl("top --json --once").out), 1);
}

TEST_F(Top, EndsWhenNobodyReadsAnyMore) {
  // Long before the next frame.
  const Ran ran = berthctl("top --json --interval 1h | head -n 1; exit ${PIPESTATUS[0]}");
  EXPECT_EQ(ran.exit, 128 + SIGPIPE) << ran.err;
  EXPECT_EQ(ran.err, "");
}

TEST_F(Top, FollowsKeysAndLeavesTheTerminalAsItWas) {
  OnTerminal top({"top", "--interval", "100ms"}, 30);
  wait_for(top, "by CPU");
  EXPECT_FALSE(top.cooked());
  EXPECT_THAT(top.shown(), Not(HasSubstr("\nberth on"))) << "drawn over, not below";
  top.type("s");
  wait_for(top, "by waiting");
  top.type("r");
  wait_for(top, "by waiting, reversed");
  top.type("q");
  serve_until([&] { return top.ended(); });
  EXPECT_TRUE(WIFEXITED(top.status) && WEXITSTATUS(top.status) == 0) << top.status;
  expect_restored(top);
  EXPECT_THAT(top.shown(), EndsWith(kLeft));
}

TEST_F(Top, SpaceRefreshesAtOnce) {
  OnTerminal top({"top", "--interval", "1h"}, 30);
  wait_for(top, "batch/sort");
  control_.listed = R"({"workloads":[{"id":"batch/new","class":"best-effort"}]})";
  top.type(" ");
  wait_for(top, "batch/new");
}

TEST_F(Top, ASmallerTerminalIsFilledToo) {
  OnTerminal top({"top", "--interval", "1h"}, 30);
  wait_for(top, "q quit");
  const std::size_t before = top.shown().size();
  top.resize(12);
  wait_for(top, "q quit", before);
  const std::string redrawn = top.shown().substr(before);
  EXPECT_EQ(std::count(redrawn.begin(), redrawn.end(), '\n'), 11) << redrawn;
}

TEST_F(Top, EndsAfterSoManyFrames) {
  OnTerminal top({"top", "-n", "2", "--interval", "100ms"}, 30);
  serve_until([&] { return top.ended(); });
  EXPECT_TRUE(WIFEXITED(top.status) && WEXITSTATUS(top.status) == 0) << top.status;
  expect_restored(top);
}

TEST_F(Top, SignalsEndItWithTheTerminalAsItWas) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    OnTerminal top({"top", "--interval", "1h"}, 30);
    wait_for(top, "batch/sort");
    top.signal(number);
    serve_until([&] { return top.ended(); });
    EXPECT_TRUE(WIFSIGNALED(top.status) && WTERMSIG(top.status) == number) << top.status;
    expect_restored(top);
  }
}

TEST_F(Top, QuitsAtOnceThoughTheDaemonDoesNotAnswer) {
  for (const bool by_key : {true, false}) {
    OnTerminal top({"top", "--interval", "100ms"}, 30);
    wait_for(top, "batch/sort");
    // No process serves the bus from here on: it asks at its next interval, and waits for the answer.
    ASSERT_TRUE(left_unserved());
    const auto begin = std::chrono::steady_clock::now();
    by_key ? top.type("q") : top.signal(SIGTERM);
    ASSERT_TRUE(eventually([&] { return top.ended(); }));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20)) << "by the call's 25 s";
    EXPECT_TRUE(by_key ? WIFEXITED(top.status) : WIFSIGNALED(top.status)) << top.status;
    expect_restored(top);
  }
}

TEST_F(Top, CanBeEndedWhileTheTerminalTakesNoOutput) {
  OnTerminal top({"top", "--interval", "100ms"}, 30);
  wait_for(top, "batch/sort");
  top.type("\x13");  // Ctrl-S
  const auto begin = std::chrono::steady_clock::now();
  serve_until([&] { return std::chrono::steady_clock::now() - begin > std::chrono::seconds(1); });
  top.signal(SIGTERM);
  serve_until([&] { return top.ended(); });
  EXPECT_TRUE(WIFSIGNALED(top.status) && WTERMSIG(top.status) == SIGTERM) << top.status;
  EXPECT_TRUE(top.cooked());
}

TEST_F(Top, StoppedItGivesTheTerminalBackAndTakesItAgain) {
  OnTerminal top({"top", "--interval", "1h"}, 30);
  wait_for(top, "batch/sort");
  top.type("\x1a");
  serve_until([&] { return top.stopped(); });
  expect_restored(top);
  const std::size_t before = top.shown().size();
  top.signal(SIGCONT);
  wait_for(top, kEntered, before);
  wait_for(top, "batch/sort", before);
  EXPECT_FALSE(top.cooked());
}

TEST_F(Top, SaysOnTheRestoredTerminalThatTheDaemonIsGone) {
  OnTerminal top({"top", "--interval", "100ms"}, 30);
  wait_for(top, "batch/sort");
  service_.reset();
  serve_until([&] { return top.ended(); });
  EXPECT_TRUE(WIFEXITED(top.status) && WEXITSTATUS(top.status) == 4) << top.status;
  expect_restored(top);
  EXPECT_GT(top.shown().find("systemctl start berthd"), top.shown().rfind(kLeft));
}

}  // namespace berth::test
