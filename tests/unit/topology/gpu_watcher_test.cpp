// SPDX-License-Identifier: Apache-2.0
#include "topology/gpu_watcher.h"

#include "fake_gpus.h"
#include "tests/no_threads.h"
#include "tests/patience.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>

#include <gtest/gtest.h>

namespace berth::topology {
namespace {

using test::comes_true;

// A driver that answers when it is let.
struct Driver {
  std::mutex mutex;
  std::condition_variable changed;
  bool hangs = false;
  int asked = 0;
  int answered = 0;
  std::size_t gpus = 0;

  GpuReadings read(const std::vector<PciGpu>& of) {
    std::unique_lock lock(mutex);
    ++asked;
    gpus = of.size();
    changed.wait(lock, [this] { return !hangs; });
    ++answered;
    GpuReadings readings;
    for (const auto& gpu : of) readings.gpus[gpu.id].utilisation = answered;
    return readings;
  }
  void let(bool hang) {
    const std::lock_guard lock(mutex);
    hangs = hang;
    changed.notify_all();
  }
  int count(int Driver::*what) {
    const std::lock_guard lock(mutex);
    return this->*what;
  }
};

class GpuWatcherTest : public testing::Test {
 protected:
  ReadGpus reader() {
    return [driver = driver](const std::vector<PciGpu>& gpus) { return driver->read(gpus); };
  }
  // The thread keeps it as long as it needs it.
  std::shared_ptr<Driver> driver = std::make_shared<Driver>();
  std::vector<PciGpu> one{{.id = "0000:3b:00.0", .pci_id = "", .driver = "nvidia", .numa = {}}};
};

TEST_F(GpuWatcherTest, ReadsAtOnceAndAgain) {
  const GpuWatcher watcher(reader(), one, 0.001);
  ASSERT_TRUE(comes_true([&] { return watcher.latest() != nullptr; }));
  EXPECT_GE(watcher.latest()->gpus.at("0000:3b:00.0").utilisation, 1);
  EXPECT_TRUE(comes_true([&] { return watcher.latest()->gpus.at("0000:3b:00.0").utilisation > 3; }));
}

TEST_F(GpuWatcherTest, OneReadingAloneIsMadeWithinTheInterval) {
  const GpuWatcher watcher(reader(), one, 3600);
  ASSERT_TRUE(comes_true([&] { return watcher.latest() != nullptr; }));
  EXPECT_EQ(watcher.waiting_s(), 0);
  EXPECT_EQ(driver->count(&Driver::asked), 1);
}

TEST_F(GpuWatcherTest, ReadsThoseItIsToldOf) {
  GpuWatcher watcher(reader(), one, 0.001);
  watcher.set_gpus({});
  EXPECT_TRUE(comes_true([&] { return watcher.latest() && watcher.latest()->gpus.empty(); }));
}

TEST_F(GpuWatcherTest, ADriverThatHangsKeepsWhatWasReadBefore) {
  const GpuWatcher watcher(reader(), one, 0.001);
  ASSERT_TRUE(comes_true([&] { return watcher.latest() != nullptr; }));
  driver->let(true);
  ASSERT_TRUE(comes_true([&] { return watcher.waiting_s() > 0.02; }));
  EXPECT_EQ(watcher.latest()->gpus.size(), 1U);
  driver->let(false);
  EXPECT_TRUE(comes_true([&] { return watcher.waiting_s() < 0.02; }));
}

TEST_F(GpuWatcherTest, WithoutAThreadItSaysWhyAndReadsNothing) {
  const test::NoThreads none;
  // The watcher waits for no thread, which would take 1 s. A busy machine may take as long, though not at
  // each of many tries.
  EXPECT_TRUE(comes_true([&] {
    const auto begin = std::chrono::steady_clock::now();
    {
      GpuWatcher watcher(reader(), one, 0.001);
      EXPECT_TRUE(watcher.failure());
      if (!watcher.failure()) return true;
      EXPECT_TRUE(watcher.failure()->starts_with("no thread can be had: ")) << *watcher.failure();
      EXPECT_EQ(watcher.latest(), nullptr);
      EXPECT_EQ(watcher.waiting_s(), 0);
    }
    return std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(900);
  }));
  EXPECT_EQ(driver->count(&Driver::asked), 0);
}

TEST_F(GpuWatcherTest, ItsEndDoesNotWaitForADriverThatHangs) {
  driver->let(true);
  const auto begin = std::chrono::steady_clock::now();
  {
    const GpuWatcher watcher(reader(), one, 0.001);
    ASSERT_TRUE(comes_true([&] { return driver->count(&Driver::asked) == 1; }));
    EXPECT_EQ(watcher.latest(), nullptr);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, berth::test::kPatience);
  EXPECT_EQ(driver->count(&Driver::answered), 0);
  // A call that comes back late finds everything it needs, and asks nothing more.
  driver->let(false);
  EXPECT_TRUE(comes_true([&] { return driver.use_count() == 1; }));
  EXPECT_EQ(driver->count(&Driver::asked), 1);
}

}  // namespace
}  // namespace berth::topology
