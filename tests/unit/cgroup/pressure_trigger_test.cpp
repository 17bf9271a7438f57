// SPDX-License-Identifier: Apache-2.0
// The part that needs no kernel; tests/host has the rest.
#include "cgroup/pressure_trigger.h"

#include "cgroup/cgroup.h"
#include "tests/unit/cgroup/fake_tree.h"

#include <memory>

#include <gtest/gtest.h>

namespace berth::cgroup {
namespace {

constexpr PressureThreshold kTenth{PressureThreshold::Kind::some, 100'000, 1'000'000};

class PressureTriggerTest : public testing::Test {
 protected:
  void SetUp() override {
    tree.make("a");
    group = Cgroup::open(tree.root(), "a").value();
  }

  test::FakeTree tree;
  std::shared_ptr<Cgroup> group;
};

TEST_F(PressureTriggerTest, AnOrdinaryFileIsNeverWrittenTo) {
  tree.write("a", "cpu.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n");
  const auto armed = PressureTrigger::arm(group->fd(), "cpu.pressure", kTenth);
  ASSERT_FALSE(armed);
  EXPECT_EQ(armed.error().kind(), model::ErrorKind::unavailable);
  EXPECT_EQ(group->read("cpu.pressure").value(), "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n");
}

TEST_F(PressureTriggerTest, AGroupWithoutTheFileIsGone) {
  const auto armed = PressureTrigger::arm(group->fd(), "cpu.pressure", kTenth);
  ASSERT_FALSE(armed);
  EXPECT_EQ(armed.error().kind(), model::ErrorKind::gone);
}

}  // namespace
}  // namespace berth::cgroup
