// SPDX-License-Identifier: Apache-2.0
// A replay decides what berth would have decided, with its own plans carried from tick to tick.
#include "replay/difference.h"
#include "replay/figures.h"
#include "replay/history.h"
#include "replay/side.h"
#include "tests/unit/policies/hosts.h"
#include "tests/unit/policies/straggler/stragglers.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::replay {
namespace {

namespace make = policies::testing;
using policies::PolicySettings;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

// A host with a service and a late task beside work that leaves most of its quota unused.
model::Snapshot mixed_host() {
  model::Snapshot snapshot = make::snapshot_of(make::host({.sockets = 2}));
  snapshot.time = 1000;
  snapshot.workloads = {make::batch("batch/x", 4, 0.5), make::late_task("job", 2),
                        make::latency_sensitive("web/a", 2), make::latency_sensitive("web/b", 2)};
  return snapshot;
}

void move_on(model::Snapshot& snapshot) {
  snapshot.time += 1;
  for (model::Workload& workload : snapshot.workloads) {
    if (workload.usage.empty()) continue;
    model::UsageSample sample = workload.usage.back();
    sample.time = snapshot.time;
    workload.usage.add(sample, 60);
  }
}

std::vector<std::string> texts(const std::vector<Decision>& decisions) {
  std::vector<std::string> list;
  for (const Decision& decision : decisions) {
    if (decision.kind != "advertise")
      list.push_back(fmt::format("{} {} {}", decision.kind, decision.workload, decision.after));
  }
  return list;
}

std::vector<std::string> texts(const model::Plan& plan) {
  std::vector<std::string> list;
  for (const model::Action& action : plan.actions) {
    std::string after;
    if (const auto* pin = action.sets<model::CpuSet>()) after = pin->to_string();
    if (const auto* quota = action.sets<model::CpuQuota>())
      after = quota->cores ? fmt::format("{:.2f} cores", *quota->cores) : "no limit";
    if (action.workload() != nullptr)
      list.push_back(fmt::format("{} {} {}", action.kind(), *action.workload(), after));
  }
  return list;
}

// Each plan is carried out in the snapshot itself, as enforcing does. The replay sees these snapshots. It
// also sees those of the same load without any change, as observing records them.
TEST(Side, DecidesAsEnforcingDid) {
  const PolicySettings settings;
  model::Snapshot enforced = mixed_host();
  model::Snapshot observed = mixed_host();
  Side of_enforced(settings);
  Side of_observed(settings);
  std::size_t decided = 0;
  for (int tick = 0; tick < 40; ++tick) {
    const model::Plan plan = policies::decide(enforced, settings);
    EXPECT_EQ(texts(of_enforced.step(enforced)), texts(plan)) << tick;
    EXPECT_EQ(texts(of_observed.step(observed)), texts(plan)) << tick;
    decided += texts(plan).size();
    make::carry_out(plan, enforced);
    for (const model::Action& action : plan.actions) {
      const auto* advertised = std::get_if<model::Advertise>(&action.what);
      if (advertised == nullptr) continue;
      auto& said =
          advertised->resource == model::Resource::cpu ? enforced.advertised.cpu : enforced.advertised.memory;
      said = {.factor = advertised->factor, .state = advertised->state};
    }
    move_on(enforced);
    move_on(observed);
  }
  EXPECT_GE(decided, 4U);
}

TEST(Side, TheRecordedPinsStandAtTheBeginning) {
  model::Snapshot snapshot = mixed_host();
  snapshot.workloads[2].cpus = make::cpus("0-1");
  snapshot.workloads[2].pinned_at = 900;
  snapshot.workloads[3].cpus = make::cpus("2-3");
  snapshot.workloads[3].pinned_at = 900;
  Side side{{}};
  side.step(snapshot);
  ASSERT_EQ(side.plan().findings.interference->instances.at("web/a").cpus, make::cpus("0-1"));
  // The recorded berth then moves one of them. This berth does not.
  move_on(snapshot);
  snapshot.workloads[2].cpus = make::cpus("4-5");
  side.step(snapshot);
  EXPECT_EQ(side.plan().findings.interference->instances.at("web/a").cpus, make::cpus("0-1"));
}

TEST(Side, AnotherRunOfAWorkloadHasNothingOfTheLastOne) {
  model::Snapshot snapshot = mixed_host();
  Side side{{}};
  EXPECT_THAT(texts(side.step(snapshot)), Contains(::testing::StartsWith("pin web/a")));
  move_on(snapshot);
  EXPECT_THAT(texts(side.step(snapshot)), Not(Contains(::testing::StartsWith("pin web/a"))));
  move_on(snapshot);
  snapshot.workloads[2].created += 5;
  EXPECT_THAT(texts(side.step(snapshot)), Contains(::testing::StartsWith("pin web/a")));
}

TEST(Side, AnAdvertisementReplacesWhatWasSaidOfItsOwnResource) {
  model::Snapshot snapshot = make::snapshot_of(make::host({}));
  snapshot.advertised.cpu = {.factor = 1.5, .state = model::SchedulingState::no_schedule};
  snapshot.advertised.memory = {.factor = 1.25, .state = model::SchedulingState::evict};
  Side side{{}};
  std::vector<std::string> said;
  for (const Decision& decision : side.step(snapshot)) {
    if (decision.kind == "advertise") said.push_back(decision.before + " -> " + decision.after);
  }
  EXPECT_THAT(said, ElementsAre("cpu no-schedule 1.50 -> cpu schedule 1.00",
                                "memory evict 1.25 -> memory schedule 1.00"));
}

TEST(Side, IdlePriorityThatIsGivenBackWasThere) {
  model::Snapshot snapshot = make::snapshot_of(make::host({}));
  snapshot.workloads = {make::best_effort("batch", 1)};
  snapshot.groups = {{.id = "batch", .held = model::LowPriority::idle}};
  Side side{{}};
  std::vector<std::string> values;
  for (const Decision& decision : side.step(snapshot)) {
    if (decision.action.attribute() == model::Attribute::cpu_idle)
      values.push_back(decision.before + " -> " + decision.after);
  }
  EXPECT_THAT(values, ElementsAre("1 -> as before"));
}

// Memory is nearly full, and most of it is of work that may be evicted.
model::Snapshot full_host() {
  model::Snapshot snapshot = make::snapshot_of(make::host({}));
  snapshot.time = 1000;
  snapshot.memory = {.total_bytes = 16 * kGiB, .available_bytes = kGiB / 8};
  for (const char* id : {"batch/x", "batch/y"}) {
    snapshot.workloads.push_back(make::with_memory(make::best_effort(id, 1), std::nullopt, 6 * kGiB));
    snapshot.workloads.back().evictable = true;
    snapshot.workloads.back().cpu_time_s = 100;
  }
  return snapshot;
}

PolicySettings evicting() {
  PolicySettings settings;
  settings.eviction.evict = true;
  settings.oversell.evict = true;
  settings.eviction.grace_s = 5;
  return settings;
}

TEST(Side, AnEvictedWorkloadIsGoneAfterItsGraceAndItsMemoryIsFree) {
  model::Snapshot snapshot = full_host();
  Side side(evicting());
  side.step(snapshot);
  ASSERT_EQ(side.figures().evictions, 1U);
  const std::string victim = side.history().evictions().at(0).workload;
  for (int tick = 0; tick < 60; ++tick) {
    move_on(snapshot);
    side.step(snapshot);
  }
  side.finish();
  // With its 6 GiB free, nothing else has to end.
  EXPECT_EQ(side.figures().evictions, 1U);
  EXPECT_EQ(side.figures().evicted_bytes, 6 * kGiB);
  EXPECT_DOUBLE_EQ(side.figures().evicted_cpu_s, 100);
  EXPECT_FALSE(side.plan().findings.oversell->candidates.contains(victim));
}

TEST(Standing, AnEvictionHasEndedThoughTheRecordedWorkloadGoesOn) {
  model::Snapshot recorded = full_host();
  Standing standing(recorded);
  model::Snapshot seen;
  standing.put_on(recorded, seen);
  model::Evict eviction;
  eviction.workload = "batch/x";
  eviction.grace_s = 5;
  model::Plan plan;
  plan.time = seen.time;
  plan.actions.push_back({.what = eviction, .policy = "eviction", .decision = {}, .reason = {}});
  standing.take(plan, seen, {});
  recorded.time = 1006;
  standing.put_on(recorded, seen);
  ASSERT_EQ(seen.workloads.size(), 1U);
  EXPECT_DOUBLE_EQ(seen.eviction_ended_at.value_or(0), 1005);
  // In the recording it ends much later, and not by an eviction.
  recorded.time = 1600;
  recorded.workloads.erase(recorded.workloads.begin());
  standing.put_on(recorded, seen);
  EXPECT_DOUBLE_EQ(seen.eviction_ended_at.value_or(0), 1005);
}

TEST(Side, WithoutEvictionNothingEnds) {
  model::Snapshot snapshot = full_host();
  Side side{{}};
  for (int tick = 0; tick < 20; ++tick) {
    side.step(snapshot);
    move_on(snapshot);
  }
  EXPECT_EQ(side.figures().evictions, 0U);
  EXPECT_THAT(side.history().evictions(), IsEmpty());
}

// A container's quota may have any period, such as 50 ms in 300 ms.
TEST(Standing, AQuotaOfAnyPeriodIsPutBack) {
  const double original = 50'000.0 / 300'000.0;
  model::Snapshot recorded = make::snapshot_of(make::host({}));
  recorded.workloads = {make::batch("batch/x", original, 0.05)};
  Standing standing(recorded);
  model::Snapshot seen;
  const auto set_quota = [&](double cores) {
    standing.put_on(recorded, seen);
    model::Plan plan;
    plan.time = seen.time;
    plan.actions.push_back({.what = model::Set{.workload = "batch/x", .value = model::CpuQuota{cores}},
                            .policy = "straggler",
                            .decision = {},
                            .reason = {}});
    standing.take(plan, seen, {});
    recorded.time += 1;
    standing.put_on(recorded, seen);
  };
  set_quota(0.1);
  EXPECT_TRUE(seen.workloads[0].held_cpu.has_value());
  EXPECT_DOUBLE_EQ(seen.workloads[0].cpu_quota_cores.value_or(0), 0.1);
  set_quota(original);
  EXPECT_FALSE(seen.workloads[0].held_cpu.has_value());
  EXPECT_DOUBLE_EQ(seen.workloads[0].cpu_quota_cores.value_or(0), original);
}

TEST(Figures, HoldUntilTheNextTickAndAGapCountsAsAMinute) {
  Figures figures;
  model::Snapshot seen = mixed_host();
  model::Plan plan;
  plan.findings.interference.emplace();
  const auto add = [&](double time, double score) {
    plan.time = seen.time = time;
    plan.findings.interference->score_node = score;
    figures.add(plan, seen);
  };
  add(1000, 1);
  add(1003, 0);
  add(1004, 5);
  add(5000, 0);
  figures.finish();
  EXPECT_DOUBLE_EQ(figures.time_s, 3 + 1 + 60);
  EXPECT_DOUBLE_EQ(*figures.score.mean(), (3 * 1 + 1 * 0 + 60 * 5) / 64.0);
  EXPECT_DOUBLE_EQ(figures.score_highest, 5);
  EXPECT_EQ(figures.ticks, 4U);
}

TEST(Figures, CountTheCoresWithheldFromBestEffortWork) {
  model::Snapshot seen = make::snapshot_of(make::host({}));
  seen.workloads = {
      make::held(make::batch("batch/x", 1.5, 1), model::HeldCause::preempted, 4),
      make::held(make::batch("batch/y", 2, 1), model::HeldCause::preempted, 3),
      make::held(make::batch("batch/unlimited", 2, 1), model::HeldCause::preempted, std::nullopt),
      make::batch("batch/free", 2, 1)};
  Figures figures;
  model::Plan plan;
  for (const double time : {1000.0, 1010.0}) {
    plan.time = time;
    figures.add(plan, seen);
  }
  EXPECT_DOUBLE_EQ(figures.withheld_core_s, 10 * (2.5 + 1));
}

TEST(Figures, TellTheLatenessOfEachTaskWhenLastJudged) {
  model::Snapshot snapshot = mixed_host();
  Side side{{}};
  side.step(snapshot);
  move_on(snapshot);
  side.step(snapshot);
  side.finish();
  EXPECT_EQ(side.figures().tasks, 1U);
  EXPECT_EQ(side.figures().late_tasks, 1U);
  // late_task: 100 s after its deadline.
  EXPECT_NEAR(side.figures().lateness_s, 100, 1e-6);
  EXPECT_DOUBLE_EQ(side.figures().straggling_s, 1);
  EXPECT_EQ(side.history().stragglers().count("job"), 1U);
}

TEST(Figures, CountALimitedNumberOfTasks) {
  model::Plan plan;
  auto& findings = plan.findings.straggler.emplace();
  for (std::size_t i = 0; i < Figures::kMostTasks + 10; ++i) findings.tasks[std::to_string(i)].deadline = 1;
  Figures figures;
  figures.add(plan, {});
  figures.finish();
  EXPECT_EQ(figures.tasks, Figures::kMostTasks);
}

TEST(Differences, AreTheDecisionsOfOneSideAlone) {
  PolicySettings wide;
  wide.straggler.max_growth = 4;
  PolicySettings narrow;
  narrow.straggler.max_growth = 1.1;
  Side first(wide);
  Side second(narrow);
  Differences differences(3);
  Differences none(3);
  model::Snapshot snapshot = mixed_host();
  for (int tick = 0; tick < 30; ++tick) {
    const auto decided = first.step(snapshot);
    differences.add(decided, second.step(snapshot));
    none.add(decided, decided);
    move_on(snapshot);
  }
  EXPECT_EQ(none.all(), 0U);
  EXPECT_GT(differences.all(), 0U);
  EXPECT_LE(differences.list().size(), 3U);
  EXPECT_GT(differences.ticks(), 0U);
  EXPECT_LE(differences.ticks(), 30U);
}

TEST(Series, KeepsALimitedNumberOfPoints) {
  Series series;
  for (int i = 0; i < 100'000; ++i)
    series.add({.time = double(i), .psi_full = i == 777 ? 50.0 : 1.0, .cpu_cores = 3});
  EXPECT_LT(series.points().size(), Series::kMostPoints);
  EXPECT_GE(series.points().size(), Series::kMostPoints / 2 - 1);
  double highest = 0;
  double before = -1;
  for (const Series::Point& point : series.points()) {
    EXPECT_GT(point.time, before);
    EXPECT_DOUBLE_EQ(point.cpu_cores, 3);
    before = point.time;
    highest = std::max(highest, point.psi_full);
  }
  EXPECT_DOUBLE_EQ(highest, 50);
}

TEST(History, KeepsALimitedNumberOfEachChange) {
  constexpr std::size_t kMore = 10;
  model::Snapshot seen;
  model::Plan plan;
  auto& findings = plan.findings.straggler.emplace();
  for (std::size_t i = 0; i < History::kMost + kMore; ++i) {
    const std::string name = std::to_string(i);
    model::Workload service = make::latency_sensitive(name, 1);
    service.cpus = model::CpuSet::range(0, 0);
    seen.workloads.push_back(make::held(service, model::HeldCause::preempted, 2));
    findings.tasks[name].straggler = true;
  }
  History history;
  history.add(plan, seen);
  history.finish();
  EXPECT_EQ(history.pins().size(), History::kMost);
  EXPECT_EQ(history.quotas().size(), History::kMost);
  EXPECT_EQ(history.stragglers().size(), History::kMost);
  EXPECT_EQ(history.dropped(), 3 * kMore);
}

TEST(History, HasTheTimesOfPinsAndQuotas) {
  model::Snapshot snapshot = mixed_host();
  Side side{{}};
  for (int tick = 0; tick < 10; ++tick) {
    side.step(snapshot);
    if (tick == 5) snapshot.workloads.pop_back();  // web/b ends
    move_on(snapshot);
  }
  side.finish();
  for (const PinSpan& span : side.history().pins()) {
    EXPECT_LT(span.from, span.to) << span.workload;
    EXPECT_FALSE(span.cpus.empty());
    // A pin stands from the tick after its decision on.
    if (span.workload == "web/b") {
      EXPECT_DOUBLE_EQ(span.to, 1006);
    }
    if (span.workload == "web/a") {
      EXPECT_DOUBLE_EQ(span.to, 1009);
    }
  }
  EXPECT_FALSE(side.history().quotas().empty());
  EXPECT_EQ(side.history().dropped(), 0U);
}

}  // namespace
}  // namespace berth::replay
