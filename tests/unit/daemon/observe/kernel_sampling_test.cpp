// SPDX-License-Identifier: Apache-2.0
#include "daemon/observe/kernel_sampling.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::daemon {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A kernel whose tables are full, or not.
struct FakeCounts : ebpf::Counts {
  struct State {
    bool full = false;
    bool rests = false;
    int tries = 0;
    std::set<std::uint64_t> together;
  };

  explicit FakeCounts(State& told) : state(told) {}
  model::Result<void> read(Depth) override {
    if (state.full) return model::fail(model::ErrorKind::unavailable, "the tables are full");
    return {};
  }
  void rest() override { state.rests = true; }
  model::Result<void> begin_again() override {
    ++state.tries;
    auto done = read(Depth::full);
    state.rests = !done;
    return done;
  }
  std::size_t rows() const override { return 1024; }
  void keep_together(std::set<std::uint64_t> cgroups) override { state.together = std::move(cgroups); }
  model::Result<void> follow_cpus() override { return {}; }
  const model::CgroupReading* find(std::uint64_t) const override { return nullptr; }
  int events_fd() const override { return -1; }
  int after_switch() const override { return 7; }
  Events take_events() override { return {}; }
  ebpf::Cost cost() const override { return {}; }
  const std::vector<ebpf::FigureWay>& ways() const override { return all; }

  State& state;
  std::vector<ebpf::FigureWay> all{
      {.figure = "run-time", .way = "sched-switch", .available = true, .detail = ""}};
};

class KernelSamplingTest : public ::testing::Test {
 protected:
  bool reads(double now) { return static_cast<bool>(sampling.read(now, messages).find); }

  FakeCounts::State state;
  KernelSampling sampling{std::make_unique<FakeCounts>(state)};
  std::vector<std::string> messages;
};

TEST_F(KernelSamplingTest, TablesThatFailedAreTriedAgainAfterPausesThatGrow) {
  EXPECT_TRUE(reads(0));
  state.full = true;
  std::vector<double> tried;
  for (double now = 1; now <= 100; ++now) {
    const int before = state.tries;
    EXPECT_FALSE(reads(now));
    if (state.tries > before) tried.push_back(now);
  }
  EXPECT_EQ(tried, (std::vector<double>{11, 31, 71}));
  EXPECT_TRUE(state.rests);
  EXPECT_FALSE(sampling.ways().front().available);
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_THAT(messages[0], HasSubstr("the tables are full"));

  state.full = false;
  EXPECT_FALSE(reads(150));
  EXPECT_TRUE(reads(151));
  EXPECT_FALSE(state.rests);
  EXPECT_TRUE(sampling.ways().front().available);
}

TEST_F(KernelSamplingTest, AfterALongTimeWithoutAFailurePausesBeginAnew) {
  state.full = true;
  EXPECT_FALSE(reads(1));
  EXPECT_FALSE(reads(11));
  state.full = false;
  EXPECT_TRUE(reads(31));
  EXPECT_TRUE(reads(631));
  messages.clear();
  state.full = true;
  EXPECT_FALSE(reads(632));
  EXPECT_EQ(messages.size(), 1U) << "it is news again";
  state.full = false;
  EXPECT_TRUE(reads(642));
}

TEST_F(KernelSamplingTest, NoUserHasMoreThanAPartOfTheRows) {
  EXPECT_EQ(sampling.most_of_user(), 128U);
  EXPECT_EQ(sampling.most_of_users(), 512U);
  sampling.keep_together({7, 8});
  EXPECT_EQ(state.together, (std::set<std::uint64_t>{7, 8}));
  EXPECT_THAT(messages, IsEmpty());
}

}  // namespace
}  // namespace berth::daemon
