// SPDX-License-Identifier: Apache-2.0
// Observe mode: what plans would hold is remembered, told and shown to policies, and never written.
#include "daemon/ledger/action_entries.h"

#include "daemon/observe/observer.h"
#include "policies/after.h"
#include "tests/unit/daemon/fake_node.h"

#include <gtest/gtest.h>

namespace berth::daemon {
namespace {

class ObservedEntries : public testing::Test {
 protected:
  void SetUp() override {
    node.add_group("batch/x");
    node.put("batch/x", "cpu.max", "80000 20000");
    auto started = Observer::start(node.hierarchy(), node.settings().rules, node.proc(), node.sys(), 60);
    ASSERT_TRUE(started);
    observer = std::move(*started);
    look(1000);
  }
  void look(double now) {
    observer->take_changes();
    observer->read(now);
    observer->assemble({.overrides = *overrides, .standing = standing});
  }
  std::vector<LogEntry> apply(double time, model::Action action) {
    model::Plan plan;
    plan.time = time;
    plan.actions.push_back(std::move(action));
    auto entries = observed_entries(plan, observer->snapshot(), observer->readings(), standing);
    observer->take_off();
    standing = policies::after(std::move(standing), observer->snapshot(), plan, policies::assumed(plan), {});
    return entries;
  }
  static model::Action quota_of(std::optional<double> cores) {
    return {model::Set{"batch/x", model::CpuQuota{cores}}, "straggler", "d-1", "because"};
  }
  const model::Workload& workload() const { return observer->snapshot().workloads.at(0); }

  test::FakeNode node;
  std::unique_ptr<Observer> observer;
  std::optional<std::string> warning;
  std::optional<Overrides> overrides{std::in_place, node.runtime_dir(), warning};
  model::Standing standing;
};

TEST_F(ObservedEntries, RemembersWhomItWouldBeEvicting) {
  const auto before = node.tree_bytes();
  const auto entries =
      apply(1000, {model::Evict{"batch/x", model::EvictionStep::terminate, 1, 30}, "eviction", "d-1", "why"});
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].kind, "evict");
  EXPECT_EQ(entries[0].attribute, "terminate");
  EXPECT_EQ(entries[0].result, "observed");
  look(1000.5);
  EXPECT_EQ(workload().evicted_at, 1000);
  EXPECT_EQ(node.tree_bytes(), before);
  node.restart_group("batch/x");
  ASSERT_TRUE(test::eventually([&] {
    look(1001);
    return !workload().evicted_at;
  })) << "the next run is another one";
}

TEST_F(ObservedEntries, HoldsLimitsThatItNeverWrote) {
  const auto before = node.tree_bytes();
  const auto entries = apply(1000, quota_of(1.5));
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].result, "observed");
  EXPECT_EQ(entries[0].old_value, "80000 20000");
  EXPECT_EQ(entries[0].new_value, "30000 20000");
  apply(1001, {model::Set{"batch/x", model::MemoryHigh{8192}}, "straggler", "d-2", "because"});
  look(1002);
  EXPECT_EQ(workload().cpu_quota_cores, 1.5);
  EXPECT_EQ(workload().memory_high_bytes, 8192U);
  EXPECT_EQ(workload().original, (model::OriginalLimits{4.0, std::nullopt}));
  EXPECT_EQ(workload().held_cpu, (model::HeldLimit{model::HeldCause::lent, 1000, 1000}));
  const auto next = apply(1003, quota_of(1));
  EXPECT_EQ(next.at(0).old_value, "30000 20000");
  look(1004);
  EXPECT_EQ(workload().held_cpu, (model::HeldLimit{model::HeldCause::lent, 1000, 1003}));
  EXPECT_EQ(node.tree_bytes(), before);
}

TEST_F(ObservedEntries, LetsGoOfALimitThatIsAsItWas) {
  apply(1000, quota_of(1.5));
  const auto entries = apply(1001, quota_of(4));
  EXPECT_EQ(entries.at(0).new_value, "80000 20000");
  look(1002);
  EXPECT_EQ(workload().cpu_quota_cores, 4.0);
  EXPECT_EQ(workload().held_cpu, std::nullopt);
  EXPECT_EQ(workload().original, std::nullopt);
}

TEST_F(ObservedEntries, LetsGoOfWorkloadsThatRestarted) {
  apply(1000, quota_of(1.5));
  const auto run = observer->cgroup_id("batch/x");
  node.restart_group("batch/x");
  ASSERT_TRUE(test::eventually([&] {
    look(1001);
    return observer->cgroup_id("batch/x") != run;
  }));
  EXPECT_EQ(workload().cpu_quota_cores, std::nullopt);
  EXPECT_EQ(workload().held_cpu, std::nullopt);
}

TEST(ChangedPins, AreThoseThatWereWritten) {
  const auto entry = [](const char* workload, const char* attribute, const char* result) {
    LogEntry made;
    made.workload = workload;
    made.attribute = attribute;
    made.result = result;
    return made;
  };
  const std::vector<LogEntry> entries{entry("a", "cpuset.cpus", "failed"),
                                      entry("b", "cpuset.cpus", "applied"), entry("c", "cpu.max", "applied"),
                                      entry("d", "cpuset.cpus", "observed")};
  EXPECT_EQ(changed_pins(entries), std::vector<std::string>{"b"});
}

}  // namespace
}  // namespace berth::daemon
