// SPDX-License-Identifier: Apache-2.0
#include "ebpf/aggregate.h"

#include <vector>

#include <gtest/gtest.h>

namespace berth::ebpf {
namespace {

// The memory as the BPF programs would leave it.
struct FakeCpu {
  explicit FakeCpu(std::size_t size, bool counted = false) : rows(size) {
    if (counted) counts.resize(size);
  }
  void take(std::size_t row, std::uint64_t id) {
    rows[row] = {};
    rows[row].id = id;
    if (!counts.empty()) counts[row] = {};
    ++taken;
  }
  void run(std::size_t row, std::uint64_t ns) {
    rows[row].run_ns += ns;
    ++rows[row].touches;
  }
  void wait(std::size_t row, std::size_t bucket, std::uint32_t times) {
    rows[row].dispatches += times;
    rows[row].delay[bucket] += times;
    ++rows[row].touches;
  }
  Aggregate::Table table() { return {.rows = rows, .counts = counts, .taken = taken, .scale = scale}; }
  std::vector<berth_row> rows;
  std::vector<berth_counts> counts;
  std::uint32_t taken = 0;
  std::array<double, 4> scale{1, 1, 1, 1};
};

class AggregateTest : public ::testing::Test {
 protected:
  void collect() {
    std::vector<Aggregate::Table> tables;
    for (FakeCpu& cpu : cpus) tables.push_back(cpu.table());
    aggregate.collect(tables);
  }
  std::uint64_t subtree(std::uint64_t id) { return aggregate.find(id)->subtree.run_ns; }

  std::vector<FakeCpu> cpus{FakeCpu(8), FakeCpu(8)};
  Aggregate aggregate;
};

TEST_F(AggregateTest, TheCpusOfACgroupAreAddedUp) {
  aggregate.learn(1, 0);
  aggregate.learn(7, 1);
  cpus[0].take(3, 7);
  cpus[1].take(5, 7);
  cpus[0].run(3, 100);
  cpus[1].run(5, 20);
  collect();
  EXPECT_EQ(subtree(7), 120U);
  cpus[1].run(5, 1);
  collect();
  EXPECT_EQ(subtree(7), 121U);
  EXPECT_EQ(subtree(1), 121U);
}

TEST_F(AggregateTest, AnAncestorsSubtreeHoldsWhatItsDescendantsDid) {
  aggregate.learn(1, 0);
  aggregate.learn(2, 1);
  aggregate.learn(3, 2);
  cpus[0].take(0, 2);
  cpus[0].take(1, 3);
  cpus[0].run(0, 5);
  cpus[0].run(1, 70);
  collect();
  EXPECT_EQ(subtree(2), 75U);
  EXPECT_EQ(subtree(3), 70U);
  EXPECT_EQ(subtree(1), 75U);
}

TEST_F(AggregateTest, ACgroupThatGetsItsFirstChildKeepsItsFigures) {
  aggregate.learn(1, 0);
  aggregate.learn(2, 1);
  cpus[0].take(0, 2);
  cpus[0].run(0, 5);
  collect();
  aggregate.learn(3, 2);
  cpus[0].take(1, 3);
  cpus[0].run(0, 1);
  cpus[0].run(1, 70);
  collect();
  EXPECT_EQ(subtree(2), 76U);
  EXPECT_EQ(subtree(3), 70U);
}

TEST_F(AggregateTest, LongAndShortWaitsAreCounted) {
  aggregate.learn(1, 0);
  cpus[0].take(0, 1);
  model::DelayHistogram counted{};
  for (std::size_t bucket = 0; bucket < counted.size(); ++bucket) {
    for (const std::size_t other : {bucket, counted.size() - 1 - bucket}) {
      cpus[0].wait(0, other, 3);
      counted[other] += 3;
    }
    collect();
    EXPECT_EQ(aggregate.find(1)->subtree.delay, counted);
  }
  EXPECT_EQ(aggregate.find(1)->subtree.dispatches, 6 * counted.size());
}

TEST_F(AggregateTest, AWaitThatIsCountedBeforeItsDispatchHidesNone) {
  aggregate.learn(1, 0);
  cpus[0].take(0, 1);
  // As where the CPU counts a short wait while the row is read: the dispatch that was read is of the long
  // one.
  cpus[0].wait(0, 20, 1);
  ++cpus[0].rows[0].delay[0];
  collect();
  ++cpus[0].rows[0].dispatches;
  cpus[0].run(0, 1);
  collect();
  EXPECT_EQ(aggregate.find(1)->subtree.delay[0], 1U);
  EXPECT_EQ(aggregate.find(1)->subtree.delay[20], 1U);
}

TEST_F(AggregateTest, AHistogramThatWrapsGoesOn) {
  aggregate.learn(1, 0);
  cpus[0].take(0, 1);
  cpus[0].wait(0, 4, UINT32_MAX - 1);
  collect();
  EXPECT_EQ(aggregate.find(1)->subtree.delay[4], UINT32_MAX - 1);
  cpus[0].wait(0, 4, 5);
  collect();
  EXPECT_EQ(aggregate.find(1)->subtree.delay[4], std::uint64_t{UINT32_MAX} + 4);
}

TEST_F(AggregateTest, TouchesThatWrapAreSeen) {
  aggregate.learn(1, 0);
  cpus[0].take(0, 1);
  cpus[0].rows[0].touches = UINT32_MAX;
  cpus[0].rows[0].run_ns = 10;
  collect();
  cpus[0].run(0, 3);
  ASSERT_EQ(cpus[0].rows[0].touches, 0U);
  collect();
  EXPECT_EQ(subtree(1), 13U);
}

TEST_F(AggregateTest, ARemovedCgroupsShareStaysWithItsAncestors) {
  aggregate.learn(1, 0);
  aggregate.learn(7, 1);
  cpus[0].take(0, 7);
  cpus[0].run(0, 100);
  collect();
  // Its last thread ended after the last reading.
  cpus[0].run(0, 11);
  aggregate.forget(7);
  EXPECT_EQ(aggregate.find(7), nullptr);
  collect();
  EXPECT_EQ(subtree(1), 111U);
}

TEST_F(AggregateTest, TheRowOfARemovedCgroupIsGivenBackAndOwesItsSuccessorNothing) {
  aggregate.learn(1, 0);
  aggregate.learn(7, 1);
  cpus[0].take(0, 7);
  cpus[0].run(0, 100);
  collect();
  aggregate.forget(7);
  for (int i = 0; i < 8 && cpus[0].rows[0].id == 7; ++i) collect();
  ASSERT_EQ(cpus[0].rows[0].id, BERTH_REMOVED);
  EXPECT_EQ(aggregate.size(), 1U);
  aggregate.learn(8, 1);
  cpus[0].take(0, 8);
  cpus[0].run(0, 3);
  collect();
  EXPECT_EQ(subtree(8), 3U);
  EXPECT_EQ(subtree(1), 103U);
}

TEST_F(AggregateTest, GroupsThatAreKeptTogetherHaveNoRowsAndNoFiguresOfTheirOwn) {
  aggregate.learn(1, 0);
  aggregate.learn(2, 1);
  aggregate.learn(3, 2);
  aggregate.learn(4, 1);
  cpus[0].take(0, 3);
  cpus[0].take(1, 4);
  cpus[0].run(0, 100);
  cpus[0].run(1, 7);
  collect();
  EXPECT_EQ(subtree(3), 100U);
  aggregate.keep_together({2});
  cpus[0].run(0, 20);
  collect();
  EXPECT_EQ(aggregate.find(3), nullptr);
  EXPECT_EQ(subtree(2), 120U);
  EXPECT_EQ(subtree(4), 7U);
  EXPECT_EQ(cpus[0].rows[0].id, BERTH_REMOVED);
  cpus[0].take(0, 2);  // as the kernel counts from here on
  cpus[0].run(0, 5);
  collect();
  EXPECT_EQ(subtree(2), 125U);
  aggregate.keep_together({});
  EXPECT_EQ(subtree(3), 120U);
}

TEST_F(AggregateTest, ARowTakenAgainBetweenTwoReadingsStartsAnew) {
  aggregate.learn(1, 0);
  aggregate.learn(7, 1);
  aggregate.learn(8, 1);
  cpus[0].take(0, 7);
  cpus[0].run(0, 100);
  collect();
  cpus[0].take(0, 8);
  cpus[0].run(0, 40);
  collect();
  EXPECT_EQ(subtree(7), 100U);
  EXPECT_EQ(subtree(8), 40U);
}

TEST_F(AggregateTest, FiguresOfACgroupNobodyKnowsYetWaitForIt) {
  aggregate.learn(1, 0);
  cpus[0].take(0, 7);
  cpus[0].run(0, 100);
  collect();
  EXPECT_EQ(aggregate.unknown(), 1U);
  EXPECT_EQ(subtree(1), 0U);
  aggregate.learn(7, 1);
  collect();
  EXPECT_EQ(aggregate.unknown(), 0U);
  EXPECT_EQ(subtree(7), 100U);
  EXPECT_EQ(subtree(1), 100U);
}

TEST_F(AggregateTest, AScanForgetsWhatItDidNotSee) {
  for (std::uint64_t id : {1, 2, 3, 4}) aggregate.learn(id, id - 1);
  aggregate.begin_scan();
  aggregate.learn(1, 0);
  aggregate.learn(2, 1);
  aggregate.end_scan();
  EXPECT_NE(aggregate.find(2), nullptr);
  EXPECT_EQ(aggregate.find(3), nullptr);
  for (int i = 0; i < 8; ++i) collect();
  EXPECT_EQ(aggregate.size(), 2U) << "parents that vanished together with their children";
}

TEST_F(AggregateTest, AHintThatNamesAnotherIsCorrected) {
  std::uint32_t first = UINT32_MAX;
  std::uint32_t second = UINT32_MAX;
  aggregate.learn(1, 0, first);
  aggregate.learn(2, 1, second);
  std::uint32_t wrong = first;
  EXPECT_EQ(aggregate.learn(2, 1, wrong).id, 2U);
  EXPECT_EQ(wrong, second);
}

TEST_F(AggregateTest, TablesMadeAnewCountFromZero) {
  aggregate.learn(1, 0);
  cpus[0].take(0, 1);
  cpus[0].run(0, 100);
  collect();
  cpus.assign(2, FakeCpu(16));
  aggregate.reset();
  cpus[0].take(0, 1);
  cpus[0].run(0, 7);
  collect();
  EXPECT_EQ(subtree(1), 107U);
}

TEST_F(AggregateTest, WithoutCountersThereAreNoHardwareFigures) {
  aggregate.learn(1, 0);
  cpus[0].take(0, 1);
  cpus[0].run(0, 100);
  collect();
  EXPECT_FALSE(aggregate.find(1)->subtree.hardware);
}

// Readings of four counters on two CPUs as a PMU gave them: one wraps, one CPU's group had the PMU half the
// time.
TEST_F(AggregateTest, RecordedCountersAreReplayedWithWrapAndMultiplexing) {
  cpus = {FakeCpu(4, true), FakeCpu(4, true)};
  aggregate.learn(1, 0);
  aggregate.learn(9, 1);
  cpus[0].take(2, 9);
  cpus[1].take(0, 9);
  const std::uint64_t recorded[][4] = {{18446744073709551000ULL, 900, 30, 7}, {384, 1900, 61, 9}};
  for (std::size_t which = 0; which < 4; ++which) cpus[0].counts[2].count[which] = recorded[0][which];
  cpus[0].run(2, 1);
  collect();
  const auto before = *aggregate.find(9)->subtree.hardware;
  for (std::size_t which = 0; which < 4; ++which) cpus[0].counts[2].count[which] = recorded[1][which];
  cpus[0].run(2, 1);
  for (std::size_t which = 0; which < 4; ++which) cpus[1].counts[0].count[which] = 50;
  cpus[1].scale.fill(2);
  cpus[1].run(0, 1);
  collect();
  const auto now = *aggregate.find(9)->subtree.hardware;
  EXPECT_EQ(now.cycles - before.cycles, 1000 + 100);
  EXPECT_EQ(now.llc_references - before.llc_references, 31 + 100);
  EXPECT_EQ(now.llc_misses - before.llc_misses, 2 + 100);
  // 2^64 - 18446744073709551000 + 384, of which a double of that size keeps no more than multiples of 4,096.
  EXPECT_NEAR(now.instructions - before.instructions, 1000 + 100, 4096);
  EXPECT_EQ(aggregate.find(1)->subtree.hardware, now);
}

}  // namespace
}  // namespace berth::ebpf
