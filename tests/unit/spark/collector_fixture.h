// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "spark/collector.h"
#include "spark/sparkd/interviewer.h"
#include "tests/unit/spark/fake_driver.h"
#include "tests/unit/spark/fake_proc.h"

#include <algorithm>
#include <bit>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace berth::spark {

inline constexpr double kNow = 1'790'000'060;

class CollectorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::endian::native != std::endian::little)
      GTEST_SKIP() << "the tables here are of a little-endian host";
    driver.stages = {{.id = 0, .status = "ACTIVE", .tasks = 2, .list = {{"0"}}}};
  }
  void add_driver(int pid = 10) {
    proc.add(pid, test::client_driver(), "driver.scope");
    proc.listen(pid, 11, "0100007F:0FC8");
  }
  // As another user's process looks without the right to see its descriptors.
  void add_unseen_driver(int pid, const std::string& cgroup) {
    proc.add(pid, test::client_driver(), cgroup);
    proc.listen(pid, 11, "0100007F:0FC8");
    std::filesystem::remove_all(proc.root() / std::to_string(pid) / "fd");
  }
  Collector collector() {
    const auto get = [this](const std::string& url) -> model::Result<std::string> {
      ++requests;
      const bool says_nothing = std::any_of(silent.begin(), silent.end(), [&](const std::string& endpoint) {
        return url.find(endpoint) != std::string::npos;
      });
      clock += says_nothing ? 3 : slow_s;
      if (failing || says_nothing)
        return model::fail(model::ErrorKind::transient, "GET " + url + ": took too long");
      return driver.get(url);
    };
    return collector_of(Interviewer(get, {}, [this] { return clock; }));
  }
  // In one process with its interviewer, as there is nothing between them here but memory.
  Collector collector_of(Interviewer interviewer) const {
    return Collector(proc.root(),
                     [asked = std::make_shared<Interviewer>(std::move(interviewer))](
                         const Question& question) -> model::Result<Answer> { return asked->ask(question); });
  }

  // Of the driver that standalone_executor() names.
  static constexpr const char* kDriverAddress = "0100007F:8931";

  test::FakeProc proc;
  test::FakeDriver driver;
  bool failing = false;
  std::vector<std::string> silent;  // endpoints, each with a slash
  double slow_s = 0;                // for each answer
  double clock = 5000;              // monotonic, seconds
  int requests = 0;
};

}  // namespace berth::spark
