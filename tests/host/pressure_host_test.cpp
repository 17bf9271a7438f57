// SPDX-License-Identifier: Apache-2.0
// PSI triggers on real cgroups. Needs root; makes groups named berth-host-PID and removes them.
#include "cgroup/cgroup.h"
#include "cgroup/pressure_trigger.h"
#include "tests/host/real_tree.h"
#include "tests/patience.h"

#include <array>
#include <chrono>
#include <memory>

#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>

namespace berth::cgroup {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;
using test::Process;
using test::RealTree;

constexpr PressureThreshold kTenth{PressureThreshold::Kind::some, 100'000, 1'000'000};

// Works without end on vCPU 0, so that two of them always wait for each other.
Process hog() {
  return Process([] {
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    sched_setaffinity(0, sizeof first, &first);
    const auto end = steady_clock::now() + seconds(1);
    while (steady_clock::now() < end) {
    }
  });
}

class PressureHost : public testing::Test {
 protected:
  void SetUp() override {
    tree_.make("group");
    group_ = *Cgroup::open(tree_.hierarchy().root, tree_.id("group"));
    if (!group_->has("cpu.pressure")) GTEST_SKIP() << "the kernel offers no cpu.pressure";
  }

  PressureTrigger armed() { return PressureTrigger::arm(group_->fd(), "cpu.pressure", kTenth).value(); }

  // Two that want the same vCPU.
  std::array<Process, 2> hogs() {
    std::array<Process, 2> pair{hog(), hog()};
    for (const Process& process : pair) process.move_to(tree_.path("group"));
    return pair;
  }

  // The event that comes until `deadline`, 0 for none.
  static int wait(const PressureTrigger& trigger, seconds deadline) {
    pollfd polled{trigger.fd(), POLLPRI, 0};
    const auto wait_ms = std::chrono::duration_cast<std::chrono::milliseconds>(deadline).count();
    return poll(&polled, 1, static_cast<int>(wait_ms)) > 0 ? polled.revents : 0;
  }

  RealTree tree_;
  std::shared_ptr<Cgroup> group_;
};

TEST_F(PressureHost, TasksThatWaitForACpuFireTheTrigger) {
  const auto trigger = armed();
  const auto processes = hogs();
  EXPECT_EQ(wait(trigger, berth::test::kPatience) & POLLPRI, POLLPRI);
}

// As of an instance that lends vCPUs: the shortest window that the kernel takes.
TEST_F(PressureHost, AFewMillisecondsWithinHalfASecondFireToo) {
  const auto trigger =
      PressureTrigger::arm(group_->fd(), "cpu.pressure", {PressureThreshold::Kind::some, 10'000, 500'000})
          .value();
  const auto processes = hogs();
  EXPECT_EQ(wait(trigger, berth::test::kPatience) & POLLPRI, POLLPRI);
}

TEST_F(PressureHost, PressureThatLastsIsNewOnlyOnce) {
  auto trigger = armed();
  const auto processes = hogs();
  for (int event = 0; event < 3; ++event) {
    ASSERT_EQ(wait(trigger, berth::test::kPatience) & POLLPRI, POLLPRI);
    const auto now_ns = steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
    EXPECT_EQ(trigger.rose(now_ns), event == 0);
  }
}

TEST_F(PressureHost, AnIdleGroupDoesNotFire) { EXPECT_EQ(wait(armed(), seconds(3)), 0); }

TEST_F(PressureHost, ARemovedGroupIsAnError) {
  const auto trigger = armed();
  tree_.remove("group");
  EXPECT_EQ(wait(trigger, berth::test::kPatience) & POLLERR, POLLERR);
}

TEST_F(PressureHost, AThresholdTheKernelRefusesIsAnErrorThatNamesTheFile) {
  const PressureThreshold longer_than_its_window{PressureThreshold::Kind::some, 3'000'000, 2'000'000};
  const auto trigger = PressureTrigger::arm(group_->fd(), "cpu.pressure", longer_than_its_window);
  ASSERT_FALSE(trigger);
  EXPECT_EQ(trigger.error().message(), "cannot arm cpu.pressure: Invalid argument");
}

}  // namespace
}  // namespace berth::cgroup
