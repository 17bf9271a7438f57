// SPDX-License-Identifier: Apache-2.0
#include "daemon/observe/straggler_watch.h"

#include <map>

#include <gtest/gtest.h>

namespace berth::daemon {
namespace {

class StragglerWatchTest : public testing::Test {
 protected:
  model::Plan plan_at(double time, const std::vector<std::string>& stragglers,
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
  StragglerWatch::News take(const model::Plan& plan) { return watch.take(plan, run_of); }
  model::Snapshot marked() const {
    model::Snapshot snapshot;
    for (const auto& [id, run] : runs) snapshot.workloads.emplace_back().id = id;
    watch.mark(snapshot, run_of);
    return snapshot;
  }

  std::map<std::string, std::uint64_t> runs{{"a", 1}, {"b", 2}, {"calm", 3}};
  StragglerWatch::RunOf run_of = [this](const std::string& id) {
    const auto run = runs.find(id);
    return run == runs.end() ? 0 : run->second;
  };
  StragglerWatch watch;
};

TEST_F(StragglerWatchTest, RemembersWhenEachWasLastFound) {
  EXPECT_EQ(marked().straggler_seen_at, std::nullopt);
  take(plan_at(10, {"a", "b"}));
  take(plan_at(11, {"a"}));
  take(plan_at(12, {}));
  const auto snapshot = marked();
  EXPECT_EQ(snapshot.straggler_seen_at, 11);
  EXPECT_EQ(snapshot.workloads[0].straggled_at, 11);
  EXPECT_EQ(snapshot.workloads[1].straggled_at, 10);
  EXPECT_EQ(snapshot.workloads[2].straggled_at, std::nullopt);
  EXPECT_EQ(watch.stragglers(), 0U);
}

TEST_F(StragglerWatchTest, RemembersWhenEachLastWantedBackWhatItLent) {
  using Kind = model::LimitMove::Kind;
  auto plan = plan_at(10, {});
  plan.findings.straggler->moves = {{Kind::recall, "a", {1, 0}, ""}, {Kind::reclaim, "b", {1, 0}, ""}};
  take(plan);
  take(plan_at(11, {}));
  EXPECT_EQ(marked().workloads[0].pressed_at, 10);
  EXPECT_EQ(marked().workloads[1].pressed_at, std::nullopt);
  plan.time = 12;
  take(plan);
  EXPECT_EQ(marked().workloads[0].pressed_at, 12);
  runs["a"] = 7;
  EXPECT_EQ(marked().workloads[0].pressed_at, std::nullopt);
}

TEST_F(StragglerWatchTest, SaysWhatBeginsAndNotWhatLasts) {
  auto plan = plan_at(10, {"a"}, {"a"});
  plan.actions.push_back({model::Set{"a", model::CpuSet{0}}, "interference", "d-1", ""});
  plan.actions.push_back({model::Set{"a", model::CpuQuota{2}}, "straggler", "d-2", ""});
  const auto news = take(plan);
  EXPECT_EQ(news.found, (std::vector<StragglerNews>{{"a", "late", {}, "d-2"}}));
  ASSERT_EQ(news.relocate.size(), 1U);
  EXPECT_EQ(news.relocate[0].lacks, (model::Resources{2, 4096}));
  EXPECT_EQ(watch.stragglers(), 1U);
  EXPECT_EQ(watch.relocations(), 1U);
  for (int i = 11; i < 100; ++i) {
    const auto more = take(plan_at(i, {"a"}, {"a"}));
    EXPECT_TRUE(more.found.empty() && more.relocate.empty()) << i;
  }
}

TEST_F(StragglerWatchTest, OneThatComesAndGoesIsNoNewsUntilItWasQuiet) {
  take(plan_at(10, {"a"}));
  take(plan_at(11, {}));
  EXPECT_TRUE(take(plan_at(12, {"a"})).found.empty());
  take(plan_at(13, {}));
  EXPECT_EQ(take(plan_at(12 + StragglerWatch::kQuiet_s, {"a"})).found.size(), 1U);
}

TEST_F(StragglerWatchTest, AnotherRunIsAnotherOne) {
  take(plan_at(10, {"a"}, {"a"}));
  runs["a"] = 7;
  EXPECT_EQ(marked().workloads[0].straggled_at, std::nullopt);
  const auto news = take(plan_at(11, {"a"}, {"a"}));
  EXPECT_EQ(news.found.size(), 1U);
  EXPECT_EQ(news.relocate.size(), 1U);
  runs.erase("a");
  EXPECT_TRUE(take(plan_at(12, {"a"}, {"a"})).found.empty());
  EXPECT_EQ(watch.stragglers(), 0U);
}

TEST_F(StragglerWatchTest, APlanWithoutThePolicyFoundNothing) {
  take(plan_at(10, {"a"}));
  take({});
  EXPECT_EQ(watch.stragglers(), 0U);
  EXPECT_EQ(marked().straggler_seen_at, 10);
}

}  // namespace
}  // namespace berth::daemon
