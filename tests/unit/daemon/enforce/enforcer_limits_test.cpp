// SPDX-License-Identifier: Apache-2.0
// CPU quotas and memory.high: set, held, given back, and kept apart from pins.
#include "tests/unit/daemon/enforce/enforcer_fixture.h"

#include <filesystem>

#include <gtest/gtest.h>

namespace berth::daemon {
namespace {

using config::ForeignWriter;
using model::Attribute;
using model::HeldCause;

class EnforcerLimitsTest : public test::EnforcerFixture {
 protected:
  static model::Action quota_of(const std::string& id, std::optional<double> cores) {
    return {model::Set{id, model::CpuQuota{cores}}, "straggler", "d-00000000000a", "because"};
  }
  static model::Action memory_of(const std::string& id, std::optional<std::uint64_t> bytes) {
    return {model::Set{id, model::MemoryHigh{bytes}}, "straggler", "d-00000000000b", "because"};
  }
  static model::LimitMove move_of(const std::string& id, model::LimitMove::Kind kind,
                                  model::Resources amount) {
    return {kind, id, amount, "because"};
  }
  std::string quota(const std::string& id) const { return node.get(id, "cpu.max"); }
  std::string memory(const std::string& id) const { return node.get(id, "memory.high"); }
  // web/a owns two vCPUs, and its quota of two cores is lifted.
  void start_with_a_lift() {
    node.add_group("web/a");
    node.put("web/a", "cpu.max", "200000 100000");
    start();
    look();
    auto lifts = plan_of({pin_of("web/a", {0, 1}), quota_of("web/a", 8192)});
    lifts.findings.quota =
        model::QuotaFindings{.lifted = {{.workload = "web/a", .reason = "r"}}, .bursting = {}};
    carry_out(lifts);
  }
  std::optional<HeldCause> cause(const std::string& id, Attribute attribute = Attribute::cpu_quota) const {
    const auto* held = find_held(enforcer->holdings().of(attribute), id);
    return held == nullptr ? std::nullopt : std::optional(held->cause);
  }
};

using Results = std::vector<std::string>;

TEST_F(EnforcerLimitsTest, BindsMemoryWatchesItAndPutsItBack) {
  node.add_group("web/a");
  node.put("web/a", "cpuset.mems", "");
  start();
  observer->want(model::Attribute::memory_nodes, true);
  look();
  const auto bind = [this](const std::optional<model::CpuSet>& nodes) {
    model::Action::What what = model::GiveBack{"web/a", model::Attribute::memory_nodes};
    if (nodes) what = model::Set{"web/a", model::MemoryNodes{*nodes}};
    carry_out(plan_of({{what, "placement", "d-000000000003", "r"}}));
  };
  bind(model::CpuSet::parse("0").value());
  EXPECT_EQ(node.get("web/a", "cpuset.mems"), "0");
  ASSERT_EQ(results(), (Results{"set-memory-nodes web/a applied"}));
  EXPECT_EQ(entries[0].attribute, "cpuset.mems");
  EXPECT_EQ(entries[0].new_value, "0");
  EXPECT_EQ(actuators->journal().size(), 1U);
  look();
  EXPECT_EQ(observer->snapshot().workloads.at(0).memory_nodes.to_string(), "0");
  EXPECT_FALSE(observer->snapshot().workloads.at(0).fixed.memory_nodes);
  bind(std::nullopt);
  EXPECT_EQ(node.get("web/a", "cpuset.mems"), "");
  EXPECT_EQ(actuators->journal().size(), 0U);
  look();
  EXPECT_TRUE(observer->snapshot().workloads.at(0).memory_nodes.empty());
}

TEST_F(EnforcerLimitsTest, MemoryThatItsOwnerBoundIsLeftAlone) {
  node.add_group("web/a");
  node.put("web/a", "cpuset.mems", "1");  // the fake host has NUMA node 0
  start();
  look();
  EXPECT_FALSE(observer->snapshot().workloads.at(0).fixed.memory_nodes) << "it is not wanted";
  observer->want(model::Attribute::memory_nodes, true);
  look();
  look();
  EXPECT_TRUE(observer->snapshot().workloads.at(0).fixed.memory_nodes);
}

TEST_F(EnforcerLimitsTest, SetsBothLimitsAndTellsOldAndNew) {
  node.add_group("batch/x");
  node.put("batch/x", "cpu.max", "400000 100000");
  start();
  look();
  carry_out(plan_of({quota_of("batch/x", 1.5), memory_of("batch/x", 8192)}));
  EXPECT_EQ(quota("batch/x"), "150000 100000");
  EXPECT_EQ(memory("batch/x"), "8192");
  ASSERT_EQ(results(), (Results{"set-cpu-quota batch/x applied", "set-memory-high batch/x applied"}));
  EXPECT_EQ(entries[0].attribute, "cpu.max");
  EXPECT_EQ(entries[0].old_value, "400000 100000");
  EXPECT_EQ(entries[0].new_value, "150000 100000");
  EXPECT_EQ(entries[0].decision, "d-00000000000a");
  EXPECT_EQ(entries[1].attribute, "memory.high");
  EXPECT_EQ(entries[1].old_value, "max");
  EXPECT_EQ(entries[1].new_value, "8192");
  EXPECT_EQ(actuators->journal().size(), 2U);
  look();
  const auto& workload = observer->snapshot().workloads.at(0);
  EXPECT_EQ(workload.cpu_quota_cores, 1.5);
  EXPECT_EQ(workload.memory_high_bytes, 8192U);
  EXPECT_EQ(workload.original, (model::OriginalLimits{4.0, std::nullopt}));
}

TEST_F(EnforcerLimitsTest, AQuotaKeepsTheWorkloadsPeriodAndItsBurst) {
  node.add_group("batch/x");
  node.put("batch/x", "cpu.max", "max 20000");
  node.put("batch/x", "cpu.max.burst", "5000");
  start();
  look();
  carry_out(plan_of({quota_of("batch/x", 1.5)}));
  EXPECT_EQ(quota("batch/x"), "30000 20000");
  look();
  carry_out(plan_of({quota_of("batch/x", 0.001)}));
  EXPECT_EQ(quota("batch/x"), "1000 20000") << "the kernel's minimum";
  look();
  carry_out(plan_of({quota_of("batch/x", std::nullopt)}));
  EXPECT_EQ(quota("batch/x"), "max 20000");
  EXPECT_EQ(node.get("batch/x", "cpu.max.burst"), "5000");
}

TEST_F(EnforcerLimitsTest, ABurstIsSetShownAndPutBack) {
  node.add_group("batch/x");
  node.put("batch/x", "cpu.max", "200000 100000");
  node.put("batch/x", "cpu.max.burst", "0");
  start();
  observer->want(model::Attribute::cpu_burst, true);
  look();
  const auto workload = [this] { return *find_workload(observer->snapshot(), "batch/x"); };
  EXPECT_EQ(value_in(workload(), model::Attribute::cpu_burst), std::nullopt);
  carry_out(
      plan_of({{model::Set{"batch/x", model::CpuBurst{200'000}}, "quota", "d-000000000004", "because"}}));
  EXPECT_EQ(node.get("batch/x", "cpu.max.burst"), "200000");
  ASSERT_EQ(results(), (Results{"set-cpu-burst batch/x applied"}));
  EXPECT_EQ(entries[0].old_value, "0");
  EXPECT_EQ(entries[0].new_value, "200000");
  look();
  EXPECT_EQ(value_in(workload(), model::Attribute::cpu_burst),
            model::AttributeValue(model::CpuBurst{200'000}));
  EXPECT_FALSE(workload().fixed.others.contains(model::Attribute::cpu_burst));
  carry_out(plan_of(
      {{model::GiveBack{"batch/x", model::Attribute::cpu_burst}, "quota", "d-000000000005", "because"}}));
  EXPECT_EQ(node.get("batch/x", "cpu.max.burst"), "0");
  EXPECT_EQ(actuators->journal().size(), 0U);
}

TEST_F(EnforcerLimitsTest, ABurstThatItsOwnerSetIsNotBerths) {
  node.add_group("batch/x");
  node.put("batch/x", "cpu.max", "200000 100000");
  node.put("batch/x", "cpu.max.burst", "5000");
  start();
  observer->want(model::Attribute::cpu_burst, true);
  look();
  const auto* workload = find_workload(observer->snapshot(), "batch/x");
  EXPECT_EQ(value_in(*workload, model::Attribute::cpu_burst), std::nullopt);
  EXPECT_TRUE(workload->fixed.others.contains(model::Attribute::cpu_burst));
}

TEST_F(EnforcerLimitsTest, ASqueezedCacheIsNoLoan) {
  node.add_group("batch/x");
  start();
  look();
  plan = plan_of({memory_of("batch/x", 8192)});
  plan.findings.eviction.emplace().reclaim = {{"batch/x", 4096, "because"}};
  carry_out(plan);
  EXPECT_EQ(cause("batch/x", Attribute::memory_high), HeldCause::preempted);
}

TEST_F(EnforcerLimitsTest, TheOriginalValueIsARestoreThatLeavesNothing) {
  node.add_group("batch/x");
  node.put("batch/x", "cpu.max", "150500 100000");
  node.put("batch/x", "memory.high", "1048576");
  start();
  look();
  carry_out(plan_of({quota_of("batch/x", 1), memory_of("batch/x", 4096)}));
  ASSERT_EQ(actuators->journal().size(), 2U);
  look();
  carry_out(plan_of({quota_of("batch/x", 1.505), memory_of("batch/x", 1048576)}));
  EXPECT_EQ(quota("batch/x"), "150500 100000");
  EXPECT_EQ(memory("batch/x"), "1048576");
  EXPECT_EQ(actuators->journal().size(), 0U);
  EXPECT_TRUE(enforcer->holdings().of(model::Attribute::cpu_quota).empty());
  EXPECT_TRUE(enforcer->holdings().of(model::Attribute::memory_high).empty());
  EXPECT_EQ(results(), (Results{"set-cpu-quota batch/x applied", "set-memory-high batch/x applied"}));
  look();
  EXPECT_EQ(observer->snapshot().workloads.at(0).original, std::nullopt);
}

TEST_F(EnforcerLimitsTest, WhatChangesNothingIsNoNews) {
  node.add_group("batch/x");
  start();
  look();
  carry_out(plan_of({quota_of("batch/x", std::nullopt)}));
  EXPECT_TRUE(entries.empty()) << "it has no limit";
  carry_out(plan_of({quota_of("batch/x", 1)}));
  look();
  carry_out(plan_of({quota_of("batch/x", 1)}));
  EXPECT_TRUE(entries.empty()) << "it holds already";
  EXPECT_DOUBLE_EQ(enforcer->holdings().of(model::Attribute::cpu_quota).at("batch/x").changed_at, now - 1);
}

TEST_F(EnforcerLimitsTest, KnowsWhyAndSinceWhenItHoldsALimit) {
  using Kind = model::LimitMove::Kind;
  node.add_group("web/a");
  node.add_group("batch/x");
  start();
  look();
  auto taking = plan_of({quota_of("web/a", 3), quota_of("batch/x", 2), memory_of("batch/x", 8192)});
  taking.findings.straggler.emplace().moves = {move_of("batch/x", Kind::reclaim, {1, 0}),
                                               move_of("batch/x", Kind::preempt, {0, 4096})};
  carry_out(taking);
  EXPECT_EQ(cause("web/a"), HeldCause::extended);
  EXPECT_EQ(cause("batch/x"), HeldCause::lent);
  EXPECT_EQ(cause("batch/x", Attribute::memory_high), HeldCause::preempted);
  const double first = now;

  look();
  auto more = plan_of({quota_of("batch/x", 1)});
  more.findings.straggler.emplace().moves = {move_of("batch/x", Kind::reclaim, {0.5, 0}),
                                             move_of("batch/x", Kind::preempt, {0.5, 0})};
  carry_out(more);
  EXPECT_EQ(cause("batch/x"), HeldCause::preempted) << "the last move";
  look();
  auto lending = plan_of({quota_of("batch/x", 0.75)});
  lending.findings.straggler.emplace().moves = {move_of("batch/x", Kind::reclaim, {0.25, 0})};
  carry_out(lending);
  EXPECT_EQ(cause("batch/x"), HeldCause::preempted) << "it has no claim on what it lost before";
  look();
  auto giving = plan_of({quota_of("batch/x", 1.5)});
  giving.findings.straggler.emplace().moves = {move_of("batch/x", Kind::restore, {0.5, 0})};
  carry_out(giving);
  EXPECT_EQ(cause("batch/x"), HeldCause::preempted)
      << "a part given back does not change why the rest is held";
  EXPECT_DOUBLE_EQ(enforcer->holdings().of(model::Attribute::cpu_quota).at("batch/x").since, first);
  EXPECT_DOUBLE_EQ(enforcer->holdings().of(model::Attribute::cpu_quota).at("batch/x").changed_at, now);
}

TEST_F(EnforcerLimitsTest, WithoutTheControllerALimitFailsOnceAndThePinStays) {
  node.add_group("web/a");
  std::filesystem::remove(node.tree() / "web/a/cpu.max");
  node.put("web", "cgroup.subtree_control", "cpuset memory");
  start();
  look();
  const auto wanted = plan_of({pin_of("web/a", {0, 1}), quota_of("web/a", 2), memory_of("web/a", 8192)});
  carry_out(wanted);
  ASSERT_EQ(results(),
            (Results{"pin web/a applied", "set-cpu-quota web/a failed", "set-memory-high web/a applied"}));
  EXPECT_NE(entries[1].error->find("cpu controller"), std::string::npos) << *entries[1].error;
  EXPECT_TRUE(enforcer->left_alone().empty());
  EXPECT_EQ(node.cpus("web/a"), "0-1");
  EXPECT_TRUE(enforcer->refuses(wanted.actions[1]));
  EXPECT_FALSE(enforcer->refuses(wanted.actions[0]));
  look();
  const auto fixed = [this] { return observer->snapshot().workloads.at(0).fixed; };
  EXPECT_EQ(fixed(), (model::FixedLimits{.cpu = true, .memory = false})) << "for the policies to know";
  carry_out(plan_of({quota_of("web/a", 2)}));
  EXPECT_TRUE(entries.empty()) << "said once";

  node.put("web/a", "cpu.max", "max 100000");
  enforcer->retry_failed();
  look();
  EXPECT_EQ(fixed(), model::FixedLimits{});
  carry_out(plan_of({quota_of("web/a", 2)}));
  EXPECT_EQ(quota("web/a"), "200000 100000");
}

TEST_F(EnforcerLimitsTest, ALimitRefusedLaterIsNotKeptWhereItWas) {
  node.add_group("batch/x");
  start();
  look();
  carry_out(plan_of({memory_of("batch/x", 8192)}));
  look();
  make_unwritable("batch/x", "memory.high");
  carry_out(plan_of({memory_of("batch/x", 4096)}));
  EXPECT_EQ(results().at(0), "set-memory-high batch/x failed");
  EXPECT_TRUE(enforcer->holdings().of(model::Attribute::memory_high).empty());
}

TEST_F(EnforcerLimitsTest, AVanishedWorkloadIsGone) {
  node.add_group("batch/x");
  start();
  look();
  node.remove_group("batch/x");
  carry_out(plan_of({quota_of("batch/x", 2)}));
  EXPECT_EQ(results(), (Results{"set-cpu-quota batch/x gone"}));
  EXPECT_TRUE(enforcer->left_alone().empty());
  carry_out(plan_of({memory_of("batch/never", 8192)}));
  EXPECT_EQ(results().back(), "set-memory-high batch/never gone");
}

TEST_F(EnforcerLimitsTest, ADepartedWorkloadIsForgotten) {
  node.add_group("batch/x");
  start();
  look();
  carry_out(plan_of({quota_of("batch/x", 2), memory_of("batch/x", 8192)}));
  node.remove_group("batch/x");
  ASSERT_TRUE(test::eventually([&] {
    look();
    return enforcer->holdings().of(model::Attribute::cpu_quota).empty();
  }));
  EXPECT_TRUE(enforcer->holdings().of(model::Attribute::memory_high).empty());
  EXPECT_EQ(actuators->journal().size(), 0U);
}

TEST_F(EnforcerLimitsTest, WhatIsNoWorkloadAnyMoreGetsItsLimitsBack) {
  node.add_group("batch/x");
  start();
  look();
  carry_out(plan_of({quota_of("batch/x", 2), memory_of("batch/x", 8192)}));
  observer->set_rules({});
  look();
  EXPECT_EQ(quota("batch/x"), "max 100000");
  EXPECT_EQ(memory("batch/x"), "max");
  EXPECT_EQ(results(), (Results{"restore batch/x restored", "restore batch/x restored"}));
}

TEST_F(EnforcerLimitsTest, YieldLeavesAForeignQuotaAndGivesTheRestBack) {
  node.add_group("web/a");
  start();
  look();
  carry_out(plan_of({pin_of("web/a", {0, 1}), quota_of("web/a", 3), memory_of("web/a", 8192)}));
  node.put("web/a", "cpu.max", "700000 100000");
  observer->read_again("web/a");
  look();
  EXPECT_EQ(quota("web/a"), "700000 100000");
  EXPECT_EQ(node.cpus("web/a"), "") << "vCPUs of a workload that is left alone go to others";
  EXPECT_EQ(memory("web/a"), "max");
  EXPECT_EQ(results(), (Results{"foreign web/a left", "restore web/a restored", "restore web/a restored"}));
  EXPECT_NE(enforcer->left_alone().at("web/a").reason.find("cpu.max"), std::string::npos);
  EXPECT_EQ(actuators->journal().size(), 0U);
  look();
  carry_out(plan_of({quota_of("web/a", 3)}));
  EXPECT_TRUE(entries.empty());
}

TEST_F(EnforcerLimitsTest, AnotherQuotaOfTheOwnerEndsTheLiftAndNotThePin) {
  start_with_a_lift();
  ASSERT_EQ(cause("web/a"), HeldCause::lifted);
  node.put("web/a", "cpu.max", "50000 100000");
  observer->read_again("web/a");
  look();
  EXPECT_EQ(results(), (Results{"foreign web/a left"}));
  EXPECT_EQ(quota("web/a"), "50000 100000");
  EXPECT_EQ(node.cpus("web/a"), "0-1");
  look();
  EXPECT_TRUE(observer->snapshot().workloads.at(0).fixed.cpu) << "until the workload restarts";
  EXPECT_EQ(observer->snapshot().workloads.at(0).cpu_quota_cores, 0.5);
  actuators->writer().restore_all();
  EXPECT_EQ(quota("web/a"), "50000 100000") << "it is not berth's any more";
}

TEST_F(EnforcerLimitsTest, OtherVcpusOfAServiceWithoutQuotaAreSeenInTheNextSample) {
  start_with_a_lift();
  look();
  node.put("web/a", "cpuset.cpus", "0-7");
  look();
  ASSERT_FALSE(results().empty());
  EXPECT_EQ(results()[0], "foreign web/a left");
}

TEST_F(EnforcerLimitsTest, AnotherBurstOfTheOwnerStaysAndThePinToo) {
  node.add_group("web/a");
  node.put("web/a", "cpu.max", "200000 100000");
  node.put("web/a", "cpu.max.burst", "0");
  start();
  observer->want(Attribute::cpu_burst, true);
  look();
  carry_out(plan_of({pin_of("web/a", {0, 1}),
                     {model::Set{"web/a", model::CpuBurst{200'000}}, "quota", "d-000000000004", "because"}}));
  node.put("web/a", "cpu.max.burst", "7000");
  observer->read_again("web/a");
  look();
  EXPECT_EQ(results(), (Results{"foreign web/a left"}));
  EXPECT_EQ(node.get("web/a", "cpu.max.burst"), "7000");
  EXPECT_EQ(node.cpus("web/a"), "0-1");
  EXPECT_TRUE(observer->snapshot().workloads.at(0).fixed.others.contains(Attribute::cpu_burst));
}

TEST_F(EnforcerLimitsTest, WhatSomebodyElseHasJustSetIsNotReplaced) {
  node.add_group("batch/x");
  start();
  look();
  carry_out(plan_of({quota_of("batch/x", 1)}));
  look();
  node.put("batch/x", "cpu.max", "77000 100000");
  carry_out(plan_of({quota_of("batch/x", 1.5)}));
  EXPECT_EQ(quota("batch/x"), "77000 100000");
  EXPECT_TRUE(entries.empty());
}

// systemd may do a change after berth has stopped waiting for it.
TEST_F(EnforcerLimitsTest, AChangeThatWasDoneLateIsHeldAndGivenBack) {
  node.add_group("batch/x");
  start();
  look();
  carry_out(plan_of({quota_of("batch/x", 1)}));
  ASSERT_TRUE(actuators->writer().set(observer->found().at("batch/x"), cgroup::cpu_max(1.5)).has_value());
  observer->read_again("batch/x");
  look();
  EXPECT_TRUE(entries.empty()) << "no other program wrote it";
  EXPECT_EQ(observer->snapshot().workloads.at(0).cpu_quota_cores, 1.5);
  carry_out(plan_of({quota_of("batch/x", 2)}));
  EXPECT_EQ(quota("batch/x"), "200000 100000");
  look();
  carry_out(plan_of({quota_of("batch/x", std::nullopt)}));
  EXPECT_EQ(quota("batch/x"), "max 100000");
  EXPECT_EQ(actuators->journal().size(), 0U);
}

TEST_F(EnforcerLimitsTest, AFirstChangeThatWasDoneLateIsHeld) {
  node.add_group("batch/x");
  start();
  look();
  ASSERT_TRUE(actuators->writer().set(observer->found().at("batch/x"), cgroup::cpu_max(1)).has_value());
  carry_out(plan_of({quota_of("batch/x", 1)}));
  ASSERT_EQ(enforcer->holdings().of(model::Attribute::cpu_quota).count("batch/x"), 1U);
  EXPECT_EQ(enforcer->holdings().of(model::Attribute::cpu_quota).at("batch/x").original,
            cgroup::Value(cgroup::CpuMax()));
  look();
  carry_out(plan_of({quota_of("batch/x", std::nullopt)}));
  EXPECT_EQ(quota("batch/x"), "max 100000");
}

TEST_F(EnforcerLimitsTest, AWorkloadThatCannotBePinnedKeepsNoLimitOfTheSamePlan) {
  node.add_group("web/x");
  start();
  look();
  make_unwritable("web/x", "cpuset.cpus");
  carry_out(plan_of({pin_of("web/x", {0, 1}), quota_of("web/x", 2)}));
  EXPECT_EQ(quota("web/x"), "max 100000");
  EXPECT_EQ(enforcer->left_alone().count("web/x"), 1U);
  EXPECT_TRUE(enforcer->holdings().of(model::Attribute::cpu_quota).empty());
  EXPECT_EQ(actuators->journal().size(), 0U);
}

TEST_F(EnforcerLimitsTest, ReassertWritesAForeignLimitAgain) {
  node.add_group("batch/x");
  start();
  on_foreign = ForeignWriter::reassert;
  look();
  carry_out(plan_of({quota_of("batch/x", 2), memory_of("batch/x", 8192)}));
  node.put("batch/x", "cpu.max", "max 100000");
  node.put("batch/x", "memory.high", "4096");
  observer->read_again("batch/x");
  look();
  EXPECT_EQ(quota("batch/x"), "200000 100000");
  EXPECT_EQ(memory("batch/x"), "8192");
  EXPECT_EQ(results(), (Results{"foreign batch/x applied", "foreign batch/x applied"}));
  EXPECT_TRUE(enforcer->left_alone().empty());
  actuators->writer().restore_all();
  EXPECT_EQ(memory("batch/x"), "max") << "the original is still known";
}

TEST_F(EnforcerLimitsTest, AlarmLeavesAForeignLimitAndComesBackWithBerths) {
  node.add_group("batch/x");
  start();
  on_foreign = ForeignWriter::alarm;
  look();
  carry_out(plan_of({memory_of("batch/x", 8192)}));
  node.put("batch/x", "memory.high", "16384");
  observer->read_again("batch/x");
  look();
  ASSERT_EQ(results(), (Results{"foreign batch/x left"}));
  EXPECT_TRUE(entries[0].error);
  EXPECT_EQ(memory("batch/x"), "16384");
  node.put("batch/x", "memory.high", "8192");
  observer->read_again("batch/x");
  look();
  EXPECT_TRUE(enforcer->left_alone().empty());
  EXPECT_EQ(enforcer->holdings().of(model::Attribute::memory_high).at("batch/x").value,
            cgroup::Value(model::MemoryHigh{8192}));
}

TEST_F(EnforcerLimitsTest, ManyAreSetAndGivenBack) {
  std::vector<model::Action> set;
  std::vector<model::Action> back;
  for (int i = 0; i < 150; ++i) {
    const auto id = "batch/x" + std::to_string(i);
    node.add_group(id);
    set.push_back(quota_of(id, 1));
    set.push_back(memory_of(id, 8192));
    back.push_back(quota_of(id, std::nullopt));
    back.push_back(memory_of(id, std::nullopt));
  }
  start();
  look();
  carry_out(plan_of(set));
  EXPECT_EQ(entries.size(), 300U);
  EXPECT_EQ(actuators->journal().size(), 300U);
  look();
  carry_out(plan_of(back));
  EXPECT_EQ(entries.size(), 300U);
  EXPECT_EQ(actuators->journal().size(), 0U);
  for (int i = 0; i < 150; ++i) {
    const auto id = "batch/x" + std::to_string(i);
    EXPECT_EQ(quota(id), "max 100000");
    EXPECT_EQ(memory(id), "max");
  }
}

}  // namespace
}  // namespace berth::daemon
