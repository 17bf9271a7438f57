// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "spark/sparkd/driver.h"
#include "tests/unit/spark/fake_driver.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace berth::spark {

inline constexpr double kNow = 1'790'000'060;

class DriverTest : public ::testing::Test {
 protected:
  // The error of a round, empty where it went well.
  std::string round(double now = kNow) {
    const auto done = driver.read([this](const std::string& url) { return fake.get(url); }, now);
    return done ? "" : done.error().message();
  }
  model::SparkApp app(double now = kNow) {
    const auto read = driver.app(now);
    EXPECT_TRUE(read.has_value());
    return read.value_or(model::SparkApp());
  }
  std::size_t pages() const {
    return static_cast<std::size_t>(
        std::count_if(fake.asked.begin(), fake.asked.end(),
                      [](const std::string& path) { return path.find("taskList") != std::string::npos; }));
  }
  static test::FakeStage stage(int id, std::string status, int tasks, std::vector<test::FakeTask> list,
                               std::uint64_t shuffle_write = 0) {
    return {.id = id,
            .status = std::move(status),
            .tasks = tasks,
            .shuffle_write = shuffle_write,
            .list = std::move(list)};
  }

  test::FakeDriver fake;
  Driver driver{{"127.0.0.1:4040"}};
};

}  // namespace berth::spark
