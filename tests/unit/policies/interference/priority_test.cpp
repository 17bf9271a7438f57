// SPDX-License-Identifier: Apache-2.0
#include "policies/interference/priority.h"

#include "model/path.h"
#include "policies/decide.h"
#include "tests/unit/policies/hosts.h"
#include "tests/unit/policies/seeds.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::policies {

namespace {

using model::BestEffortGroup;
using model::LowPriority;
using testing::best_effort;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::latency_sensitive;

model::Snapshot host_of(std::vector<model::Workload> workloads, std::vector<BestEffortGroup> groups) {
  auto snapshot = testing::snapshot_of(testing::host({}));
  snapshot.workloads = std::move(workloads);
  snapshot.groups = std::move(groups);
  return snapshot;
}

model::Workload web() { return latency_sensitive("system.slice/web.service", 1); }

InterferenceProposal propose(const model::Snapshot& snapshot,
                             BestEffortPriority priority = BestEffortPriority::idle) {
  InterferenceProposal proposal;
  propose_priorities(snapshot, priority, {.now = snapshot.time, .cooldown_s = 10}, proposal);
  return proposal;
}

std::vector<std::string> changes(const InterferenceProposal& proposal) {
  std::vector<std::string> list;
  for (const model::Action& action : proposal.actions) {
    const auto* priority = action.sets<LowPriority>();
    list.push_back(*action.workload() +
                   (priority != nullptr ? std::string("=") + to_string(*priority) : "="));
  }
  return list;
}

}  // namespace

TEST(Priority, IsLowWhileAServiceRuns) {
  const std::vector<BestEffortGroup> groups{{.id = "batch.slice"}, {.id = "jobs.slice"}};
  EXPECT_THAT(changes(propose(host_of({web()}, groups))), ElementsAre("batch.slice=idle", "jobs.slice=idle"));
  EXPECT_THAT(changes(propose(host_of({web()}, groups), BestEffortPriority::weight)),
              ElementsAre("batch.slice=weight", "jobs.slice=weight"));
  EXPECT_THAT(changes(propose(host_of({web()}, groups), BestEffortPriority::leave)), IsEmpty());
  EXPECT_THAT(changes(propose(host_of({best_effort("batch.slice/a")}, groups))), IsEmpty());
}

TEST(Priority, GoesBackWithTheLastServiceAndWithTheSetting) {
  const std::vector<BestEffortGroup> groups{{.id = "batch.slice", .held = LowPriority::idle}};
  EXPECT_THAT(changes(propose(host_of({web()}, groups))), IsEmpty());
  EXPECT_THAT(changes(propose(host_of({}, groups))), ElementsAre("batch.slice="));
  EXPECT_THAT(changes(propose(host_of({web()}, groups), BestEffortPriority::leave)),
              ElementsAre("batch.slice="));
  EXPECT_THAT(changes(propose(host_of({web()}, groups), BestEffortPriority::weight)),
              ElementsAre("batch.slice=weight"));
}

TEST(Priority, StaysForThreeCooldownsAfterTheLastService) {
  auto snapshot = host_of({}, {{.id = "batch.slice", .held = LowPriority::idle}});
  for (const double age : {0.0, 29.0, 30.0}) {
    snapshot.groups.front().changed_at = snapshot.time - age;
    EXPECT_EQ(changes(propose(snapshot)).empty(), age < 30) << age;
    EXPECT_EQ(changes(propose(snapshot, BestEffortPriority::leave)).empty(), age < 30) << age;
  }
}

TEST(Priority, OfAnOwnerThatMadeItIdleIsLeftAlone) {
  const std::vector<BestEffortGroup> groups{{.id = "a.slice", .owner = LowPriority::idle},
                                            {.id = "b.slice", .owner = LowPriority::weight},
                                            {.id = "c.slice", .fixed = true}};
  EXPECT_THAT(changes(propose(host_of({web()}, groups))), ElementsAre("b.slice=idle"));
  EXPECT_THAT(changes(propose(host_of({web()}, groups), BestEffortPriority::weight)), IsEmpty());
  EXPECT_THAT(changes(propose(host_of({}, groups))), IsEmpty());
}

TEST(Priority, WhatWasWrittenBeforeItsOwnersWasReadGoesBack) {
  const std::vector<BestEffortGroup> groups{
      {.id = "a.slice", .held = LowPriority::weight, .owner = LowPriority::idle}};
  for (const auto& workloads : {std::vector<model::Workload>{web()}, std::vector<model::Workload>{}})
    EXPECT_THAT(changes(propose(host_of(workloads, groups), BestEffortPriority::weight)),
                ElementsAre("a.slice="));
}

TEST(Priority, IsInThePlanOfAHost) {
  const auto plan = decide(host_of({web()}, {{.id = "batch.slice"}}), {});
  EXPECT_TRUE(std::any_of(plan.actions.begin(), plan.actions.end(), [](const model::Action& action) {
    return *action.workload() == "batch.slice" && std::string(action.kind()) == "set-cpu-priority" &&
           action.reason == "it has idle priority while latency-sensitive work runs here (1 workload)";
  }));
}

TEST(Priority, AServiceIsWarnedOfWorkThatTheKernelComparesAsAnEqual) {
  const auto warnings = [](std::vector<BestEffortGroup> groups) {
    return propose(host_of({web()}, std::move(groups))).findings.warnings;
  };
  EXPECT_THAT(warnings({{.id = "batch.slice"}, {.id = "system.slice/batch.service"}}), IsEmpty());
  const auto found =
      warnings({{.id = "app.slice/job.slice/a.service"}, {.id = "app.slice/job.slice/b.service"}});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].cause, model::WarningCause::priority);
  EXPECT_EQ(
      found[0].reason,
      "best-effort work in app.slice/job.slice/a.service and 1 other group competes with it as an equal: "
      "in / the kernel compares app.slice with system.slice, and the former has other work, too");
  const auto refused = warnings({{.id = "batch.slice", .fixed = true}});
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_THAT(refused[0].reason, HasSubstr("because berth cannot change that"));
  EXPECT_THAT(warnings({{.id = "batch.slice", .owner = LowPriority::weight, .fixed = true}}), IsEmpty());
  // A document may have a service above a group.
  const auto above =
      propose(host_of({latency_sensitive("app.slice", 1)}, {{.id = "app.slice/x/y", .fixed = true}}));
  EXPECT_EQ(above.findings.warnings.size(), 1U);
  EXPECT_THAT(propose(host_of({web()}, {{.id = "batch.slice", .fixed = true}}), BestEffortPriority::leave)
                  .findings.warnings,
              IsEmpty());
}

TEST(Priority, YieldsToWhatIsBelowItsParent) {
  EXPECT_TRUE(yields_to("batch.slice", "system.slice/web.service"));
  EXPECT_TRUE(yields_to("system.slice/batch.service", "system.slice/web.service"));
  EXPECT_TRUE(yields_to("system.slice/batch.service", "system.slice/pods/a/b"));
  EXPECT_TRUE(yields_to("system.slice/batch.service", "system.slice")) << "its own tasks are siblings";
  EXPECT_FALSE(yields_to("system.slice/batch.service", "system.slice2/web.service"));
  EXPECT_FALSE(yields_to("app.slice/batch.service", "system.slice/web.service"));
}

namespace {

std::optional<LowPriority> some_priority() {
  return *rc::gen::element<std::optional<LowPriority>>(std::nullopt, LowPriority::idle, LowPriority::weight);
}

model::Snapshot some_host() {
  std::vector<model::Workload> workloads;
  std::vector<BestEffortGroup> groups;
  for (const char* id : {"a.slice/web", "b.slice/web", "c.slice/x/web"}) {
    if (*rc::gen::inRange(0, 3) == 0) workloads.push_back(latency_sensitive(id, 1));
  }
  for (const char* id : {"a.slice/batch", "b.slice/batch", "c.slice/x/batch", "d.slice"}) {
    if (*rc::gen::inRange(0, 2) == 0) continue;
    groups.push_back(
        {.id = id, .held = some_priority(), .owner = some_priority(), .fixed = *rc::gen::inRange(0, 5) == 0});
  }
  return host_of(std::move(workloads), std::move(groups));
}

}  // namespace

// What docs/decisions/priority.md says, group by group.
RC_GTEST_PROP(PriorityProperty, ThePlanLeadsToWhatThePageSays, ()) {
  const model::Snapshot before = some_host();
  const auto setting =
      *rc::gen::element(BestEffortPriority::idle, BestEffortPriority::weight, BestEffortPriority::leave);
  const auto proposal = propose(before, setting);
  model::Snapshot after = before;
  model::Plan plan;
  plan.actions = proposal.actions;
  testing::apply(plan, after);
  const bool low = !before.workloads.empty() && setting != BestEffortPriority::leave;
  for (std::size_t i = 0; i < before.groups.size(); ++i) {
    const BestEffortGroup& was = before.groups[i];
    const BestEffortGroup& is = after.groups[i];
    RC_ASSERT(is.owner == was.owner);
    if (was.fixed) {
      RC_ASSERT(is.held == was.held);
    } else if (!low || was.owner == LowPriority::idle) {
      RC_ASSERT(!is.held);
    } else {
      RC_ASSERT(model::priority_of(is) ==
                (setting == BestEffortPriority::idle ? LowPriority::idle : LowPriority::weight));
    }
  }
  RC_ASSERT(propose(after, setting).actions.empty());
  for (const model::Workload& service : before.workloads) {
    const bool unprotected =
        low && std::any_of(before.groups.begin(), before.groups.end(), [&](const BestEffortGroup& group) {
          return (group.fixed && !group.owner) || !yields_to(group.id, service.id);
        });
    const auto& warnings = proposal.findings.warnings;
    RC_ASSERT(std::any_of(warnings.begin(), warnings.end(),
                          [&](const auto& it) { return it.workload == service.id; }) == unprotected);
  }
}

}  // namespace berth::policies
