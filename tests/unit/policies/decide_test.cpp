// SPDX-License-Identifier: Apache-2.0
#include "policies/decide.h"

#include "model/json.h"
#include "policies/decision_id.h"
#include "policies/pins.h"
#include "policies/placement/host.h"
#include "tests/unit/policies/hosts.h"

#include <algorithm>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::policies {

namespace {

using testing::best_effort;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::latency_sensitive;
using ::testing::MatchesRegex;
using testing::pinned;
using testing::pins;

model::Snapshot mixed() {
  model::Snapshot snapshot = testing::snapshot_of(testing::host({.sockets = 2, .cores_per_llc = 4}));
  snapshot.host = "node-a";
  snapshot.workloads = {best_effort("batch", 2), latency_sensitive("db", 2, 1),
                        latency_sensitive("web", 3, 2)};
  return snapshot;
}

}  // namespace

TEST(Decide, PinsBothClassesServicesFirst) {
  const model::Plan plan = decide(mixed(), {});
  EXPECT_EQ(plan.host, "node-a");
  EXPECT_EQ(plan.time, 1000);
  EXPECT_THAT(pins(plan), ElementsAre("db=0-1", "web=4-6", "batch=2-3,7-15"));
  ASSERT_TRUE(plan.findings.interference.has_value());
}

TEST(Decide, RunsOnlyThePoliciesNamed) {
  EXPECT_THAT(policy_names(),
              ElementsAre("interference", "straggler", "eviction", "oversell", "placement", "quota"));
  const model::Plan both = decide(mixed(), {});
  EXPECT_TRUE(both.findings.straggler.has_value());
  model::Plan plan = decide(mixed(), {}, {"interference"});
  EXPECT_EQ(plan.findings.straggler, std::nullopt);
  EXPECT_EQ(plan.findings.oversell, std::nullopt);
  EXPECT_EQ(plan.findings.placement, std::nullopt);
  EXPECT_EQ(pins(plan), pins(both));
  plan = decide(mixed(), {}, {"straggler"});
  EXPECT_EQ(plan.findings.interference, std::nullopt);
  EXPECT_THAT(plan.actions, IsEmpty());
}

TEST(Decide, DoesNothingOnAnIdleNode) {
  model::Snapshot snapshot = mixed();
  snapshot.workloads.clear();
  const model::Plan plan = decide(snapshot, {});
  EXPECT_THAT(plan.actions, IsEmpty());
  EXPECT_EQ(plan.findings.interference->score_node, 0);
}

TEST(Decide, GivesTheSamePlanForASnapshotThatWentThroughJson) {
  const model::Snapshot snapshot = mixed();
  const auto parsed = model::parse_snapshot(model::to_json(snapshot));
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message();
  EXPECT_EQ(model::to_json(decide(parsed->snapshot, {})), model::to_json(decide(snapshot, {})));
}

// berthd's clock does not step, so documents of berthd are ahead of its snapshots once the wall clock was
// set.
TEST(Decide, GivesTheSamePlanForADocumentAfterTheWallClockWasSet) {
  for (const double ahead_s : {28800.125, 3600.0}) {
    model::Snapshot snapshot = mixed();
    snapshot.wall_ahead_s = ahead_s;
    snapshot.workloads.front().deadline = snapshot.time + 60;
    const auto parsed = model::parse_snapshot(model::to_json(snapshot));
    ASSERT_TRUE(parsed.has_value()) << parsed.error().message();
    EXPECT_EQ(parsed->snapshot.time, snapshot.time + ahead_s);
    EXPECT_EQ(parsed->snapshot.wall_ahead_s, 0);
    EXPECT_TRUE(
        std::any_of(parsed->snapshot.workloads.begin(), parsed->snapshot.workloads.end(),
                    [&](const model::Workload& it) { return it.deadline == snapshot.time + ahead_s + 60; }));
    EXPECT_EQ(model::to_json(decide(parsed->snapshot, {})), model::to_json(decide(snapshot, {})));
  }
}

TEST(Decide, LetsAPinMoveBecauseItsPlaceIsGoneInsideTheCoolDown) {
  model::Snapshot snapshot = mixed();
  snapshot.workloads = {pinned(latency_sensitive("db", 2), "0-1")};
  snapshot.workloads.front().pinned_at = snapshot.time - 1;
  PolicySettings settings;
  settings.interference.reserved_cpus = testing::cpus("0");
  EXPECT_THAT(pins(decide(snapshot, settings)), ElementsAre("db=1-2"));
}

// Pins that an admission counted on, and the plan did not give, would take room from what comes.
TEST(Decide, GivesServicesNoVcpuWhereOthersOwnAllNorDoPlannedPins) {
  model::Snapshot snapshot = mixed();
  snapshot.owned_cpus = {{.owner = "pod", .cpus = testing::cpus("0-15"), .how = model::OwnedHow::kubelet}};
  for (const char* reserved : {"", "0-1", "0-15"}) {
    PolicySettings settings;
    settings.interference.reserved_cpus = testing::cpus(reserved);
    EXPECT_THAT(decide(snapshot, settings).findings.interference->instances, IsEmpty()) << reserved;
    EXPECT_THAT(planned_pins(snapshot, settings), IsEmpty()) << reserved;
    EXPECT_EQ(Host(snapshot, settings).occupancy().placed_count(), 0) << reserved;
  }
}

TEST(DecisionId, IsTwelveHexDigitsAndTellsActionsApart) {
  std::set<std::string> ids;
  for (const model::Action& action : decide(mixed(), {}).actions) {
    EXPECT_THAT(action.decision, MatchesRegex("d-[0-9a-f]{12}"));
    EXPECT_TRUE(ids.insert(action.decision).second);
  }
}

TEST(DecisionId, DependsOnTimePolicyKindWorkloadAndValueOnly) {
  const model::Action action{.what = model::Set{"web", testing::cpus("0-3")},
                             .policy = "interference",
                             .decision = {},
                             .reason = "because"};
  // FNV-1a of "1790000000.5\ninterference\npin\nweb\n0-3": a stable name, so that logs of other versions
  // match.
  const std::string id = decision_id(1790000000.5, action);
  model::Action other = action;
  other.reason = "for other words";
  other.decision = "d-1";
  EXPECT_EQ(decision_id(1790000000.5, other), id);
  EXPECT_NE(decision_id(1790000001.5, action), id);
  other = action;
  other.policy = "straggler";
  EXPECT_NE(decision_id(1790000000.5, other), id);
  other.policy = action.policy;
  other.what = model::Set{"web", testing::cpus("0-2")};
  EXPECT_NE(decision_id(1790000000.5, other), id);
  other.what = model::Set{"db", testing::cpus("0-3")};
  EXPECT_NE(decision_id(1790000000.5, other), id);
  EXPECT_EQ(id, "d-d9e589ecdb35");
}

}  // namespace berth::policies
