// SPDX-License-Identifier: Apache-2.0
#include "policies/interference/others.h"

#include "policies/after.h"
#include "policies/arbiter.h"
#include "policies/decide.h"
#include "policies/explain.h"
#include "tests/unit/policies/hosts.h"
#include "tests/unit/policies/seeds.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::policies {

namespace {

using model::CpuSet;
using model::OtherGroup;
using testing::best_effort;
using testing::cpus;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::latency_sensitive;
using testing::pins;

// vCPUs 0-7, at time 1000.
model::Snapshot host_of(std::vector<OtherGroup> others) {
  auto snapshot = testing::snapshot_of(testing::host({}));
  snapshot.time = 1000;
  snapshot.others = std::move(others);
  return snapshot;
}

InterferenceProposal confine(const model::Snapshot& snapshot, const std::string& owned,
                             Others others = Others::confine) {
  InterferenceProposal proposal;
  confine_others(snapshot, others, cpus(owned), {.now = snapshot.time, .cooldown_s = 10}, proposal);
  return proposal;
}

std::vector<std::string> unconfined(const InterferenceProposal& proposal) {
  std::vector<std::string> ids;
  for (const auto& left : proposal.findings.others.unconfined) ids.push_back(left.workload);
  return ids;
}

}  // namespace

TEST(Others, AreKeptOffTheVcpusThatInstancesOwn) {
  const auto proposal = confine(host_of({{.id = "user.slice"}, {.id = "x.slice"}}), "0,4");
  EXPECT_THAT(pins(proposal.actions), ElementsAre("user.slice=1-3,5-7", "x.slice=1-3,5-7"));
  EXPECT_EQ(proposal.findings.others.cpus, cpus("1-3,5-7"));
  EXPECT_THAT(proposal.findings.others.confined, ElementsAre("user.slice", "x.slice"));
  EXPECT_THAT(pins(confine(host_of({{.id = "user.slice", .held = cpus("1-3,5-7")}}), "0,4").actions),
              IsEmpty());
}

TEST(Others, GetTheirVcpusBackWithTheLastOwnerAndWithTheSetting) {
  const auto held = [](double changed_at) {
    return host_of({{.id = "user.slice", .held = cpus("1-7"), .changed_at = changed_at}});
  };
  EXPECT_THAT(pins(confine(held(100), "").actions), ElementsAre("user.slice="));
  EXPECT_THAT(pins(confine(held(990), "").actions), IsEmpty()) << "a service may start again";
  EXPECT_THAT(pins(confine(held(990), "0", Others::leave).actions), ElementsAre("user.slice="));
  EXPECT_THAT(pins(confine(host_of({{.id = "user.slice"}}), "0", Others::leave).actions), IsEmpty());
}

TEST(Others, LoseVcpusAtOnceAndGetOthersLater) {
  const auto moved = [](double changed_at) {
    return pins(
        confine(host_of({{.id = "a", .held = cpus("2-7"), .changed_at = changed_at}}), "2-3").actions);
  };
  EXPECT_THAT(moved(990), ElementsAre("a=4-7"));
  EXPECT_THAT(moved(100), ElementsAre("a=0-1,4-7"));
}

TEST(Others, GetVcpusAtOnceWhereBestEffortWorkInThemNeedsThese) {
  auto snapshot = host_of({{.id = "a", .held = cpus("2-7"), .changed_at = 990},
                           {.id = "b", .held = cpus("2-7"), .changed_at = 990}});
  snapshot.workloads = {best_effort("a/job"), best_effort("b-job")};
  EXPECT_THAT(pins(confine(snapshot, "2-3").actions), ElementsAre("a=0-1,4-7", "b=4-7"));
}

TEST(Others, ComeAfterTheBestEffortWorkThatLeavesAndBeforeThatWhichGains) {
  auto snapshot = host_of({{.id = "user.slice"}});
  snapshot.workloads = {best_effort("gains"), best_effort("leaves"), latency_sensitive("web", 2)};
  snapshot.workloads[0].cpus = cpus("4");
  const auto pin = [](const std::string& id, const std::string& list) {
    return model::Action{model::Set{id, cpus(list)}, "interference", {}, "r"};
  };
  EXPECT_THAT(
      pins(arbitrate(snapshot,
                     {pin("gains", "2-7"), pin("leaves", "2-7"), pin("user.slice", "2-7"), pin("web", "0-1")},
                     {})),
      ElementsAre("web=0-1", "leaves=2-7", "user.slice=2-7", "gains=2-7"));
}

TEST(Others, AGroupThatMustNotBeConfinedIsNotAndIsSaid) {
  auto snapshot = host_of({{.id = "init.scope", .held = cpus("1-7"), .left_alone = "PID 1 runs in it"}});
  const auto proposal = confine(snapshot, "0");
  EXPECT_THAT(pins(proposal.actions), ElementsAre("init.scope="));
  EXPECT_THAT(unconfined(proposal), ElementsAre("init.scope"));
  EXPECT_THAT(proposal.findings.others.confined, IsEmpty());
}

TEST(Others, KeepTheirOwnVcpus) {
  const auto snapshot = host_of({{.id = "elsewhere", .allowed_cpus = cpus("6-7")},
                                 {.id = "on-them", .allowed_cpus = cpus("0-1")},
                                 {.id = "partly", .allowed_cpus = cpus("1-3")}});
  const auto proposal = confine(snapshot, "0-1");
  EXPECT_THAT(pins(proposal.actions), ElementsAre("partly=2-3"));
  EXPECT_THAT(unconfined(proposal), ElementsAre("on-them")) << "it would have no vCPU";
}

TEST(Others, MayUseVcpusOfContainersAndNoneOfPartitionsOrThatTheKernelIsolates) {
  auto snapshot = host_of({{.id = "user.slice"}});
  std::vector<model::Cpu> all = snapshot.topology.cpus();
  for (model::Cpu& cpu : all) cpu.allowed = cpu.cpu < 4;
  snapshot.topology = *model::Topology::make(all, {});
  snapshot.owned_cpus = {{.owner = {}, .cpus = cpus("7"), .how = model::OwnedHow::isolated},
                         {.owner = "box", .cpus = cpus("4"), .how = model::OwnedHow::runtime},
                         {.owner = "part", .cpus = cpus("5-6"), .how = model::OwnedHow::partition}};
  EXPECT_THAT(pins(confine(snapshot, "0").actions), ElementsAre("user.slice=1-4"));
}

TEST(Others, AreConfinedWhileAServiceOwnsVcpusAndBesideSharedOnesAreNot) {
  auto snapshot = host_of({{.id = "user.slice"}});
  snapshot.workloads = {latency_sensitive("system.slice/web.service", 2)};
  snapshot.workloads[0].isolation.reset();
  PolicySettings settings;
  settings.interference.others = Others::confine;
  EXPECT_THAT(decide(snapshot, settings).findings.interference->others.confined, IsEmpty());
  settings.interference.isolation = model::Isolation::vcpus;
  const auto plan = decide(snapshot, settings);
  const auto own = plan.findings.interference->instances.at("system.slice/web.service").cpus;
  EXPECT_EQ(plan.findings.interference->others.cpus, snapshot.topology.usable() - own);
  // The service is there first.
  ASSERT_EQ(plan.actions.size(), 2U);
  EXPECT_EQ(*plan.actions[0].workload(), "system.slice/web.service");
  EXPECT_EQ(*plan.actions[1].workload(), "user.slice");
  EXPECT_EQ(std::string(plan.actions[1].kind()), "pin");

  const auto explained = explain(snapshot, plan, settings, "user.slice");
  ASSERT_TRUE(explained.other);
  EXPECT_EQ(explained.other->workload, "user.slice");
  EXPECT_THAT(explained.other->reason, HasSubstr(plan.findings.interference->others.cpus.to_string()));
}

TEST(Others, StayConfinedInThePlansThatAreOnlyMade) {
  auto snapshot = host_of({{.id = "user.slice"}});
  snapshot.workloads = {latency_sensitive("system.slice/web.service", 2)};
  PolicySettings settings;
  settings.interference.others = Others::confine;
  settings.interference.isolation = model::Isolation::vcpus;
  const auto plan = decide(snapshot, settings);
  auto standing = after({}, snapshot, plan, assumed(plan), settings);
  model::Snapshot next = snapshot;
  next.time += 1;
  model::put_on(standing, next);
  EXPECT_EQ(next.others[0].held, plan.findings.interference->others.cpus);
  EXPECT_THAT(decide(next, settings).actions, IsEmpty());
  // It has ended.
  next.others.clear();
  standing = after(standing, next, decide(next, settings), {}, settings);
  EXPECT_TRUE(standing.others.empty());
}

// Whatever is owned and allowed: a group that is confined keeps a vCPU, has none that is owned, and none that
// its owner does not allow. A second plan after the first changes nothing.
RC_GTEST_PROP(OthersProperty, KeepSomethingAndTouchNothingThatIsOwned, ()) {
  const auto some = [](int least) {
    CpuSet set;
    for (const int cpu : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 8))) set.insert(cpu);
    if (least > 0 && set.empty()) set.insert(*rc::gen::inRange(0, 8));
    return set;
  };
  std::vector<OtherGroup> groups;
  for (int i = 0, count = *rc::gen::inRange(0, 4); i < count; ++i) {
    OtherGroup group{.id = std::to_string(i)};
    if (*rc::gen::arbitrary<bool>()) group.held = some(1);
    if (*rc::gen::arbitrary<bool>()) group.allowed_cpus = some(1);
    if (*rc::gen::arbitrary<bool>()) group.changed_at = *rc::gen::inRange(900, 1001);
    if (*rc::gen::inRange(0, 4) == 0) group.left_alone = "so";
    groups.push_back(group);
  }
  auto snapshot = host_of(groups);
  CpuSet owned = some(0);
  if (owned.size() == 8) owned -= cpus("3");
  const auto proposal = confine(snapshot, owned.to_string());
  for (const model::Action& action : proposal.actions) {
    auto& group = *std::find_if(snapshot.others.begin(), snapshot.others.end(),
                                [&](const OtherGroup& it) { return it.id == *action.workload(); });
    if (const auto* wanted = action.sets<CpuSet>()) {
      RC_ASSERT(!wanted->empty());
      RC_ASSERT(!wanted->intersects(owned));
      RC_ASSERT(!group.left_alone);
      RC_ASSERT((!group.allowed_cpus || wanted->is_subset_of(*group.allowed_cpus)));
      RC_ASSERT(group.held != *wanted);
      group.held = *wanted;
      group.changed_at = snapshot.time;
    } else {
      RC_ASSERT(group.held.has_value());
      group.held.reset();
    }
  }
  for (const OtherGroup& group : snapshot.others) {
    const bool confined = std::ranges::count(proposal.findings.others.confined, group.id) > 0;
    const CpuSet may = group.held.value_or(group.allowed_cpus.value_or(cpus("0-7")));
    const bool is_said = std::ranges::count(unconfined(proposal), group.id) > 0;
    RC_ASSERT((!may.intersects(owned) || is_said));
    RC_ASSERT(!(confined && is_said));
    RC_ASSERT((!confined || group.held.has_value()));
  }
  RC_ASSERT(confine(snapshot, owned.to_string()).actions.empty());
}

}  // namespace berth::policies
