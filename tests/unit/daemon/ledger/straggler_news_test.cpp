// SPDX-License-Identifier: Apache-2.0
#include "daemon/ledger/straggler_news.h"

#include "policies/after.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace berth::daemon {
namespace {

class StragglerNewsTest : public testing::Test {
 protected:
  StragglerNewsTest() {
    for (const char* id : {"a", "b", "calm"}) {
      model::Workload& workload = snapshot.workloads.emplace_back();
      workload.id = id;
      workload.cgroup_id = snapshot.workloads.size();
    }
  }
  static model::Plan plan_at(double time, const std::vector<std::string>& stragglers,
                             const std::vector<std::string>& relocate = {}) {
    model::Plan plan;
    plan.time = time;
    auto& findings = plan.findings.straggler.emplace();
    findings.tasks["calm"].reason = "in time";
    for (const auto& id : stragglers) {
      findings.tasks[id].straggler = true;
      findings.tasks[id].reason = "late";
    }
    for (const auto& id : relocate) findings.relocate.push_back({id, {2, 4096}});
    return plan;
  }
  StragglersNews take(const model::Plan& plan) {
    auto news = straggler_news(standing, snapshot, plan);
    standing = policies::after(std::move(standing), snapshot, plan, policies::assumed(plan), {});
    return news;
  }

  model::Snapshot snapshot;
  model::Standing standing;
};

TEST_F(StragglerNewsTest, SaysWhatBeginsAndNotWhatLasts) {
  auto plan = plan_at(10, {"a"}, {"a"});
  plan.actions.push_back({model::Set{"a", model::CpuSet{0}}, "interference", "d-1", ""});
  plan.actions.push_back({model::Set{"a", model::CpuQuota{2}}, "straggler", "d-2", ""});
  const auto news = take(plan);
  EXPECT_EQ(news.found, (std::vector<StragglerNews>{{"a", "late", {}, "d-2"}}));
  ASSERT_EQ(news.relocate.size(), 1U);
  EXPECT_EQ(news.relocate[0].lacks, (model::Resources{2, 4096}));
  for (int i = 11; i < 100; ++i) {
    const auto more = take(plan_at(i, {"a"}, {"a"}));
    EXPECT_TRUE(more.found.empty() && more.relocate.empty()) << i;
  }
}

TEST_F(StragglerNewsTest, OneThatComesAndGoesIsNoNewsUntilItWasQuiet) {
  take(plan_at(10, {"a"}));
  take(plan_at(11, {}));
  EXPECT_TRUE(take(plan_at(12, {"a"})).found.empty());
  take(plan_at(13, {}));
  EXPECT_EQ(take(plan_at(12 + kQuiet_s, {"a"})).found.size(), 1U);
}

TEST_F(StragglerNewsTest, WhoIsLateIsNewsAgainOnceItShouldRunElsewhere) {
  take(plan_at(10, {"a"}));
  const auto news = take(plan_at(11, {"a"}, {"a"}));
  EXPECT_TRUE(news.found.empty());
  EXPECT_EQ(news.relocate.size(), 1U);
}

TEST_F(StragglerNewsTest, AnotherRunIsAnotherOne) {
  take(plan_at(10, {"a"}, {"a"}));
  snapshot.workloads[0].cgroup_id = 7;
  const auto news = take(plan_at(11, {"a"}, {"a"}));
  EXPECT_EQ(news.found.size(), 1U);
  EXPECT_EQ(news.relocate.size(), 1U);
  snapshot.workloads.erase(snapshot.workloads.begin());
  const auto gone = take(plan_at(12, {"a"}, {"a"}));
  EXPECT_TRUE(gone.found.empty() && gone.relocate.empty());
}

TEST_F(StragglerNewsTest, APlanWithoutThePolicyHasNone) {
  take(plan_at(10, {"a"}));
  const auto news = take({});
  EXPECT_TRUE(news.found.empty() && news.relocate.empty());
}

}  // namespace
}  // namespace berth::daemon
