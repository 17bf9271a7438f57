// SPDX-License-Identifier: Apache-2.0
#include "daemon/observe/lending_watch.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace berth::daemon {
namespace {

class LendingWatchTest : public testing::Test {
 protected:
  model::Plan plan_of(const std::string& id, const model::CpuSet& lent, const model::CpuSet& withdrawn = {},
                      bool missed = false) {
    model::Plan plan;
    auto& lender = plan.findings.interference.emplace().borrowing.emplace().lenders[id];
    lender.state.cpus = lent;
    lender.state.pause_s = 20;
    lender.withdrawn = withdrawn;
    lender.missed = missed;
    return plan;
  }
  std::optional<model::LendingState> marked(const std::string& id) const {
    model::Snapshot snapshot;
    for (const auto& [workload, run] : runs) snapshot.workloads.emplace_back().id = workload;
    watch.mark(snapshot, run_of);
    for (const auto& workload : snapshot.workloads) {
      if (workload.id == id) return workload.lending;
    }
    return std::nullopt;
  }

  std::map<std::string, std::uint64_t> runs{{"a", 1}, {"b", 2}};
  LendingWatch::RunOf run_of = [this](const std::string& id) {
    const auto run = runs.find(id);
    return run == runs.end() ? 0 : run->second;
  };
  LendingWatch watch;
};

TEST_F(LendingWatchTest, TheNextTickHasWhatThePlanLeft) {
  EXPECT_EQ(marked("a"), std::nullopt);
  watch.take(plan_of("a", {2, 3}), run_of, true);
  ASSERT_TRUE(marked("a"));
  EXPECT_EQ(marked("a")->cpus, (model::CpuSet{2, 3}));
  EXPECT_EQ(marked("a")->pause_s, 20);
  EXPECT_EQ(marked("b"), std::nullopt);
}

TEST_F(LendingWatchTest, AnotherRunBeginsAnewAndAnUnknownOneIsNotKept) {
  watch.take(plan_of("a", {2}), run_of, true);
  runs["a"] = 7;
  EXPECT_EQ(marked("a"), std::nullopt);
  watch.take(plan_of("gone", {2}), run_of, true);
  runs["gone"] = 9;
  EXPECT_EQ(marked("gone"), std::nullopt);
}

TEST_F(LendingWatchTest, WithoutBorrowingAllIsForgotten) {
  watch.take(plan_of("a", {2}), run_of, true);
  watch.take({}, run_of, true);
  EXPECT_EQ(marked("a"), std::nullopt);
  watch.take(plan_of("a", {2}), run_of, true);
  watch.forget();
  EXPECT_EQ(marked("a"), std::nullopt);
}

TEST_F(LendingWatchTest, TellsTheLendersOfNow) {
  watch.take(plan_of("a", {2}), run_of, true);
  EXPECT_EQ(watch.lenders(), std::set<std::string>{"a"});
  watch.take(plan_of("a", {}, {2}), run_of, true);
  EXPECT_TRUE(watch.lenders().empty());
}

TEST_F(LendingWatchTest, CountsMissesAndWithdrawnVcpus) {
  watch.take(plan_of("a", {}, {2, 3}, true), run_of, true);
  watch.take(plan_of("a", {2}, {3}), run_of, true);
  EXPECT_EQ(watch.misses(), 1U);
  EXPECT_EQ(watch.withdrawn(), 3U);
  watch.take(plan_of("a", {}, {2}, true), run_of, false);
  EXPECT_EQ(watch.misses(), 1U) << "that plan was not carried out";
  EXPECT_EQ(watch.withdrawn(), 3U);
}

}  // namespace
}  // namespace berth::daemon
