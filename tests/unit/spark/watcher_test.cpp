// SPDX-License-Identifier: Apache-2.0
#include "spark/watcher.h"

#include "spark/sparkd/serve.h"
#include "tests/patience.h"
#include "tests/unit/spark/fake_driver.h"
#include "tests/unit/spark/fake_proc.h"
#include "tests/unit/spark/hanging_file.h"
#include "tests/unit/spark/helper_process.h"
#include "tests/unit/spark/http_server.h"

#include <array>
#include <bit>
#include <chrono>
#include <cstdio>

#include <gtest/gtest.h>

namespace berth::spark {
namespace {

std::string kernel_address(std::uint16_t port) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "0100007F:%04X", static_cast<unsigned>(port));
  return text.data();
}

class WatcherTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::endian::native != std::endian::little)
      GTEST_SKIP() << "the tables here are of a little-endian host";
    proc.add(10, test::client_driver(), "driver.scope");
  }
  test::FakeProc proc;
  const test::HelperProcess helper{[](int socket) { (void)serve(socket); }};
};

TEST_F(WatcherTest, HandsBackWhatADriverSaysOverHttp) {
  test::FakeDriver driver;
  driver.stages = {{.id = 0, .status = "COMPLETE", .tasks = 1, .list = {{"0"}}}};
  const test::HttpServer server([&driver](const std::string& path) {
    const auto body = driver.get("http://127.0.0.1" + path);
    return body ? test::answer(*body) : test::answer("", "404 Not Found");
  });
  proc.listen(10, 11, kernel_address(server.port()));
  Watcher watcher(proc.root(), 0.01, helper.path());
  EXPECT_TRUE(
      berth::test::eventually([&] { return watcher.latest() && watcher.latest()->apps.size() == 1; }));
}

TEST_F(WatcherTest, ADriverThatSaysNothingHoldsNobodyUp) {
  const test::HttpServer server(
      [](const std::string&) { return test::Sent{.bytes = "", .endless = false, .hang = true}; });
  proc.listen(10, 11, kernel_address(server.port()));
  const auto begin = std::chrono::steady_clock::now();
  {
    Watcher watcher(proc.root(), 0.01, helper.path());
    ASSERT_NE(watcher.latest(), nullptr);
    EXPECT_EQ(watcher.latest()->members.size(), 1U) << "the process is known at once";
    EXPECT_TRUE(watcher.latest()->apps.empty());
  }
  // Given up without the client's own repetitions, which never end.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, berth::test::kPatience);
}

TEST_F(WatcherTest, AProcessThatCannotBeReadHoldsUpNeitherTheStartNorTheEnd) {
  const test::HangingFile hanging(proc.root() / "10" / "cmdline");
  proc.add(11, test::client_driver(), "other.scope");
  Watcher watcher(proc.root(), 0.01, helper.path());
  EXPECT_TRUE(
      berth::test::eventually([&] { return watcher.latest() && watcher.latest()->members.size() == 1; }));
  EXPECT_FALSE(watcher.latest()->problems.empty());
}

}  // namespace
}  // namespace berth::spark
