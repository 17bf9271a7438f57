// SPDX-License-Identifier: Apache-2.0
#include "os/worker.h"

#include "tests/no_threads.h"
#include "tests/patience.h"

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

namespace berth::os {
namespace {

using namespace std::chrono_literals;

// A job that runs until it is let go.
struct Gate {
  std::promise<void> promise;
  std::shared_future<void> open = promise.get_future().share();

  auto job(int result) const {
    return [open = open, result] {
      open.wait();
      return result;
    };
  }
};

TEST(Worker, RunsAJobOnAThreadOfItsOwn) {
  Worker worker;
  const auto thread = worker.run([] { return std::this_thread::get_id(); }, berth::test::kPatience);
  ASSERT_TRUE(thread);
  EXPECT_NE(*thread, std::this_thread::get_id());
  EXPECT_EQ(worker.run([] { return std::this_thread::get_id(); }, berth::test::kPatience), thread);
}

TEST(Worker, DoesNotWaitLongerThanItMay) {
  Worker worker;
  Gate gate;
  EXPECT_EQ(worker.run(gate.job(1), 1ms), std::nullopt);
  EXPECT_TRUE(worker.is_busy());
  gate.promise.set_value();
  EXPECT_TRUE(berth::test::eventually([&] { return !worker.is_busy(); }));
}

TEST(Worker, WaitsForAHangingJobOnce) {
  Worker worker;
  Gate gate;
  worker.run(gate.job(1), 1ms);
  bool begun = false;
  // It would wait for hours, if it waited at all.
  EXPECT_EQ(worker.run([&begun] { return begun = true; }, 24h), std::nullopt);
  EXPECT_FALSE(begun);
  gate.promise.set_value();
  EXPECT_TRUE(berth::test::eventually([&] { return !worker.is_busy(); }));
  EXPECT_EQ(worker.run([] { return 2; }, berth::test::kPatience), 2);
}

TEST(Worker, WaitsAgainWhereItIsTold) {
  Worker worker;
  Gate gate;
  worker.run(gate.job(1), 1ms);
  worker.wait_again();
  std::thread opener([&gate] { gate.promise.set_value(); });
  EXPECT_EQ(worker.run([] { return 2; }, berth::test::kPatience), 2);
  opener.join();
}

TEST(Worker, WithoutAThreadNothingIsBegunAndTheNextCallTriesAgain) {
  Worker worker;
  {
    const berth::test::NoThreads none;
    EXPECT_FALSE(worker.can_run());
    EXPECT_EQ(worker.run([] { return 1; }, berth::test::kPatience), std::nullopt);
    EXPECT_FALSE(worker.is_busy());
  }
  EXPECT_EQ(worker.run([] { return 2; }, berth::test::kPatience), 2);
}

TEST(Worker, EndsBeforeItsJob) {
  const auto ended = std::make_shared<std::atomic<bool>>(false);
  Gate gate;
  {
    Worker worker;
    worker.run(
        [ended, open = gate.open] {
          open.wait();
          *ended = true;
          return 0;
        },
        1ms);
  }
  EXPECT_FALSE(*ended);
  gate.promise.set_value();
  EXPECT_TRUE(berth::test::eventually([&] { return ended->load(); }));
}

}  // namespace
}  // namespace berth::os
