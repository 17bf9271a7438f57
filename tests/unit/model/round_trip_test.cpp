// SPDX-License-Identifier: Apache-2.0
// Each written document is read back as the same value, to the last bit of every double.
#include "model/json.h"
#include "tests/paths.h"
#include "tests/unit/model/generators.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::model {
namespace {

namespace gen = rc::gen;

CpuSet some_cpus() {
  CpuSet cpus;
  for (const int cpu : *gen::container<std::vector<int>>(gen::inRange(0, 300))) cpus.insert(cpu);
  return cpus;
}

std::uint64_t some_bytes() { return *gen::inRange<std::uint64_t>(0, kMaxBytes + 1); }

Action some_action() {
  Action action;
  switch (*gen::inRange(0, 6)) {
    case 0:
      action.what = Set{*testing::names(), some_cpus()};
      break;
    case 1:
      action.what = GiveBack{*testing::names(), Attribute::cpus};
      break;
    case 2: {
      CpuQuota quota;
      if (*gen::arbitrary<bool>()) quota.cores = 0.001 + *testing::amounts(100);
      action.what = Set{*testing::names(), quota};
      break;
    }
    case 3: {
      MemoryHigh limit;
      if (*gen::arbitrary<bool>()) limit.bytes = some_bytes();
      action.what = Set{*testing::names(), limit};
      break;
    }
    case 4:
      action.what =
          Evict{*testing::names(),
                *gen::element(EvictionStep::decommission, EvictionStep::terminate, EvictionStep::kill),
                some_bytes()};
      break;
    default:
      action.what = Advertise{
          *gen::element(Resource::cpu, Resource::memory), *testing::amounts(2), *testing::amounts(1e12),
          *gen::element(SchedulingState::schedule, SchedulingState::no_schedule, SchedulingState::evict)};
  }
  action.policy = *testing::names();
  action.decision = *testing::names();
  action.reason = *testing::names() + "\n\t\x01";
  return action;
}

std::vector<WorkloadFinding> some_findings() {
  std::vector<WorkloadFinding> findings;
  const int count = *gen::inRange(0, 3);
  for (int index = 0; index < count; ++index) findings.push_back({*testing::names(), *testing::names()});
  return findings;
}

InterferenceFindings some_interference() {
  InterferenceFindings findings;
  findings.weighting = "overlap";
  findings.search = "window";
  findings.score_node = *testing::finite_doubles();
  if (*gen::arbitrary<bool>()) findings.score_unpinned = *testing::finite_doubles();
  if (*gen::arbitrary<bool>()) findings.lower_bound = *testing::finite_doubles();
  if (*gen::arbitrary<bool>()) findings.gap = *testing::fractions();
  if (*gen::arbitrary<bool>()) findings.search_reason = *testing::names();
  for (int more = *gen::inRange(0, 3); more > 0; --more) findings.moved.push_back(*testing::names());
  const int count = *gen::inRange(0, 4);
  for (int index = 0; index < count; ++index) {
    findings.domains.emplace(*gen::inRange(0, 500), *testing::finite_doubles());
    PlacedInstance placed;
    placed.cpus = some_cpus();
    placed.cpu_sc = *testing::finite_doubles();
    placed.cpu_ss = *testing::finite_doubles();
    placed.score = *testing::finite_doubles();
    placed.pressure = *testing::fractions();
    placed.model = *gen::element(ModelOrigin::fallback, ModelOrigin::given, ModelOrigin::fitted);
    placed.model_reason = *testing::names();
    findings.instances.emplace(*testing::names(), placed);
  }
  findings.unplaceable = some_findings();
  findings.best_effort = {.cpus = some_cpus(), .utilisation = *testing::fractions()};
  for (int more = *gen::inRange(0, 3); more > 0; --more) {
    findings.best_effort.domains[*gen::inRange(0, 500)] = {
        .cpus = some_cpus(), .cores = *gen::inRange(0, 9), .fell_at = *testing::amounts(1e9)};
    findings.shared[*testing::names()] = {.home = CpuSet{0, 2},
                                          .cpus = some_cpus(),
                                          .cores = *testing::amounts(16),
                                          .score = *testing::finite_doubles(),
                                          .reason = *testing::names()};
  }
  findings.unconfined = some_findings();
  if (*gen::arbitrary<bool>())
    findings.warnings.push_back(
        {.workload = "web", .cause = WarningCause::quota, .vcpus = 3, .reason = "why"});
  if (*gen::arbitrary<bool>())
    findings.warnings.push_back({.workload = "web", .cause = WarningCause::place, .reason = "why"});
  if (*gen::arbitrary<bool>())
    findings.warnings.push_back({.workload = "web", .cause = WarningCause::priority, .reason = "why"});
  if (*gen::arbitrary<bool>()) findings.absent_reserved = CpuSet::range(20, 23);
  if (*gen::arbitrary<bool>()) findings.shared_reserved = CpuSet::range(0, 3);
  if (*gen::arbitrary<bool>()) findings.best_effort.reserved = CpuSet::range(0, 1);
  for (int more = *gen::inRange(0, 3); more > 0; --more) {
    WaitingInstance& waiting = findings.waiting[*testing::names()];
    waiting.runq_latency_s = *testing::amounts(60);
    waiting.cause =
        *gen::element(WaitCause::quota, WaitCause::vcpus, WaitCause::best_effort, WaitCause::unknown);
    waiting.vcpus = *gen::inRange(0, 100);
    waiting.quieter = some_cpus();
    waiting.reason = *testing::names();
  }
  return findings;
}

Resources some_resources() { return {*testing::amounts(100), some_bytes()}; }

StragglerTask some_task() {
  StragglerTask task;
  task.straggler = *gen::arbitrary<bool>();
  task.reason = *testing::names();
  const int samples = *gen::inRange(0, 5);
  for (int index = 0; index < samples; ++index)
    task.samples.push_back({*testing::amounts(1e9), *testing::fractions()});
  if (*gen::arbitrary<bool>()) task.deadline = *testing::amounts(1e9);
  if (*gen::arbitrary<bool>()) task.v1 = *testing::finite_doubles();
  if (*gen::arbitrary<bool>()) task.v2 = *testing::finite_doubles();
  if (*gen::arbitrary<bool>()) task.finish = *testing::finite_doubles();
  if (*gen::arbitrary<bool>()) task.growth = *testing::amounts(10);
  if (*gen::arbitrary<bool>()) task.allocation_cores = *testing::amounts(100);
  if (*gen::arbitrary<bool>()) task.allocation_bytes = some_bytes();
  task.extension = some_resources();
  task.granted = some_resources();
  if (*gen::arbitrary<bool>()) task.vcpus = *gen::inRange(1, 100);
  return task;
}

RedundantTask some_redundant() {
  RedundantTask task;
  if (*gen::arbitrary<bool>()) task.cpu = RedundantCpu{*testing::amounts(2), *testing::amounts(100)};
  if (*gen::arbitrary<bool>()) task.memory = RedundantMemory{*testing::amounts(2), some_bytes()};
  return task;
}

StragglerFindings some_straggler() {
  using Kind = LimitMove::Kind;
  StragglerFindings findings;
  const int count = *gen::inRange(0, 4);
  for (int index = 0; index < count; ++index) {
    findings.tasks.emplace(*testing::names(), some_task());
    findings.redundant.emplace(*testing::names(), some_redundant());
    findings.keeping.emplace(*testing::names(), *testing::names());
    findings.moves.push_back(
        {*gen::element(Kind::reclaim, Kind::preempt, Kind::recall, Kind::restore, Kind::release),
         *testing::names(), some_resources(), *testing::names()});
    findings.relocate.push_back({*testing::names(), some_resources()});
  }
  findings.idle = some_resources();
  findings.needed = some_resources();
  return findings;
}

EvictionFindings some_spark() {
  using Kind = EvictionCandidate::Kind;
  EvictionFindings findings;
  findings.complexity = *testing::names();
  findings.rank = *testing::names();
  findings.demand = {static_cast<std::size_t>(*gen::inRange(0, 100)),
                     *testing::amounts(1e12),
                     *testing::amounts(1e12),
                     some_bytes(),
                     *testing::finite_doubles(),
                     *gen::arbitrary<bool>()};
  if (*gen::arbitrary<bool>())
    findings.forecast = MemoryForecast{.shape = *gen::element<std::string>("few", "trend", "cycle"),
                                       .horizon_s = *testing::amounts(300),
                                       .peak_bytes = *testing::amounts(1e15),
                                       .margin_bytes = *testing::finite_doubles(),
                                       .slope_bytes_per_s = *testing::finite_doubles(),
                                       .readings = static_cast<std::size_t>(*gen::inRange(0, 600)),
                                       .errors = static_cast<std::size_t>(*gen::inRange(0, 40))};
  findings.delta = *testing::amounts(3);
  findings.growth_bytes = some_bytes();
  findings.available_bytes = some_bytes();
  findings.reserve_bytes = some_bytes();
  findings.freeing_bytes = some_bytes();
  findings.need_bytes = some_bytes();
  findings.psi_full_avg10 = *testing::amounts(100);
  findings.trigger = *gen::element(EvictionTrigger::none, EvictionTrigger::need, EvictionTrigger::pressure);
  findings.reason = *testing::names();
  if (*gen::arbitrary<bool>()) findings.held.emplace(*testing::names(), *testing::names());
  if (*gen::arbitrary<bool>()) findings.spared.emplace(*testing::names(), *testing::names());
  const int count = *gen::inRange(0, 4);
  for (int index = 0; index < count; ++index) {
    SparkAppFigures app{*testing::amounts(1e9),
                        *testing::amounts(1e15),
                        *testing::amounts(1e9),
                        static_cast<std::size_t>(index),
                        static_cast<std::size_t>(2 * index),
                        *testing::amounts(9),
                        *testing::amounts(1e9),
                        *testing::finite_doubles(),
                        some_bytes(),
                        std::nullopt};
    if (*gen::arbitrary<bool>()) app.cost_per_byte = *testing::finite_doubles();
    findings.apps.emplace(*testing::names(), app);
    EvictionCandidate candidate;
    candidate.kind = *gen::element(Kind::executor, Kind::driver, Kind::other);
    if (*gen::arbitrary<bool>()) candidate.app = *testing::names();
    candidate.lost_s = *testing::amounts(1e9);
    candidate.running_s = *testing::amounts(1e9);
    candidate.cost_s = *testing::finite_doubles();
    candidate.frees_bytes = some_bytes();
    if (*gen::arbitrary<bool>()) candidate.rank_key = *testing::finite_doubles();
    candidate.reason = *testing::names();
    findings.candidates.emplace(*testing::names(), candidate);
    findings.order.push_back(*testing::names());
    findings.reclaim.push_back({*testing::names(), some_bytes(), *testing::names()});
    findings.victims.push_back({*testing::names(), some_bytes(), *testing::names()});
  }
  return findings;
}

OversoldResource some_oversold() {
  OversoldResource resource;
  resource.capacity = *testing::amounts(1e12);
  resource.request = *testing::amounts(1e12);
  resource.samples = *gen::inRange(0, 3600);
  if (*gen::arbitrary<bool>()) resource.percentile = *testing::amounts(1e12);
  if (*gen::arbitrary<bool>()) resource.normal = *testing::amounts(1e12);
  if (*gen::arbitrary<bool>()) resource.weighted = *testing::finite_doubles();
  resource.warming = *testing::amounts(1e12);
  resource.peak = *testing::amounts(1e12);
  resource.wanted = 1 + *testing::fractions();
  resource.factor = 1 + *testing::fractions();
  resource.utilisation = *testing::fractions();
  resource.state =
      *gen::element(SchedulingState::schedule, SchedulingState::no_schedule, SchedulingState::evict);
  resource.reason = *testing::names();
  return resource;
}

OversellFindings some_oversell() {
  OversellFindings findings;
  findings.method = "max";
  findings.cpu = some_oversold();
  findings.memory = some_oversold();
  findings.stop_threshold = *testing::fractions();
  findings.evict_threshold = *testing::fractions();
  findings.evict_count = *gen::inRange(0, 3);
  const int count = *gen::inRange(0, 4);
  std::map<std::string, double> warming;
  for (int index = 0; index < count; ++index) {
    const std::string id = *testing::names();
    findings.order.push_back(id);
    if (*gen::arbitrary<bool>()) findings.chosen.push_back(id);
    OversellCandidate candidate{.stage = *gen::inRange(1, 4),
                                .priority = *gen::inRange(-100, 100),
                                .cost = *testing::amounts(1e9),
                                .memory_bytes = some_bytes()};
    if (*gen::arbitrary<bool>()) candidate.running_priority = *testing::amounts(1e9);
    findings.candidates.emplace(id, candidate);
    warming.emplace(*testing::names(), *testing::amounts(600));
  }
  findings.warming = warming;
  if (*gen::arbitrary<bool>()) findings.warning = *testing::names();
  return findings;
}

std::map<GpuLink, int> some_links() {
  std::map<GpuLink, int> links;
  for (const GpuLink link : kGpuLinks) {
    if (*gen::inRange(0, 3) == 0) links[link] = *gen::inRange(1, 2017);
  }
  return links;
}

PlacementFindings some_placement() {
  PlacementFindings findings;
  for (int left = *gen::inRange(0, 3); left > 0; --left) {
    BinRanking& bins = findings.pending[*testing::names()];
    for (int bin = *gen::inRange(0, 3); bin > 0; --bin) {
      bins.fitting.push_back({.host = *testing::names(),
                              .numa = *gen::inRange(0, 8),
                              .numa_nodes = *gen::element(CpuSet(), CpuSet{0, 3}),
                              .cpus = some_cpus(),
                              .gpus = {*testing::names()},
                              .gpu_links = some_links(),
                              .cpu_left_cores = *testing::amounts(100),
                              .memory_left_bytes = some_bytes(),
                              .free_share = *testing::fractions(),
                              .gpus_total = *gen::inRange(0, 9),
                              .gpus_left = *gen::inRange(0, 9),
                              .gpu_memory_left_bytes = some_bytes(),
                              .reason = *testing::names()});
      bins.rejected.push_back({.host = *testing::names(),
                               .numa = *gen::inRange(0, 8),
                               .numa_nodes = *gen::element(CpuSet(), CpuSet{0, 1}),
                               .reason = *testing::names()});
    }
  }
  return findings;
}

RC_GTEST_PROP(RoundTrip, Snapshot, ()) {
  const Snapshot snapshot = *testing::snapshots();
  const std::string text = to_json(snapshot);
  const auto again = parse_snapshot(text);
  if (!again) RC_FAIL(again.error().message() + " in " + text);
  RC_ASSERT(again->warnings.empty());
  RC_ASSERT(again->snapshot == snapshot);
  RC_ASSERT(to_json(again->snapshot) == text);
}

RC_GTEST_PROP(RoundTrip, Topology, ()) {
  testing::TopologyShape shape;
  shape.max_threads = 4;
  const Topology topology = *testing::topologies(shape);
  const auto again = parse_topology(to_json(topology));
  if (!again) RC_FAIL(again.error().message());
  RC_ASSERT(*again == topology);
}

RC_GTEST_PROP(RoundTrip, Plan, ()) {
  Plan plan;
  plan.host = *testing::names();
  plan.time = *testing::amounts(2e9);
  const int actions = *gen::inRange(0, 6);
  for (int index = 0; index < actions; ++index) plan.actions.push_back(some_action());
  if (*gen::arbitrary<bool>()) plan.findings.interference = some_interference();
  if (*gen::arbitrary<bool>()) plan.findings.straggler = some_straggler();
  if (*gen::arbitrary<bool>()) plan.findings.eviction = some_spark();
  if (*gen::arbitrary<bool>()) plan.findings.oversell = some_oversell();
  if (*gen::arbitrary<bool>()) plan.findings.placement = some_placement();
  const std::string text = to_json(plan);
  const auto again = parse_plan(text);
  if (!again) RC_FAIL(again.error().message() + " in " + text);
  RC_ASSERT(*again == plan);
  RC_ASSERT(to_json(*again) == text);
}

// A document with one byte changed, cut out or put in is read or refused in one line, and never more.
RC_GTEST_PROP(RoundTrip, DamagedSnapshotsAreReadOrRefused, ()) {
  std::string text = to_json(*testing::snapshots());
  const auto at = static_cast<std::size_t>(*gen::inRange(0, static_cast<int>(text.size())));
  const char byte = *gen::arbitrary<char>();
  switch (*gen::inRange(0, 3)) {
    case 0:
      text[at] = byte;
      break;
    case 1:
      text.erase(at, 1);
      break;
    default:
      text.insert(at, 1, byte);
  }
  const auto parsed = parse_snapshot(text);
  if (!parsed) {
    RC_ASSERT(parsed.error().kind() == ErrorKind::invalid_input);
    RC_ASSERT(parsed.error().message().starts_with("$"));
    RC_ASSERT(parsed.error().message().find('\n') == std::string::npos);
  }
}

TEST(ExampleSnapshots, AreReadWithoutWarnings) {
  int read = 0;
  const auto resolve = [](const TopologyReference&) { return Topology::make({Cpu{}}); };
  for (const auto& entry : std::filesystem::directory_iterator(BERTH_SNAPSHOTS)) {
    std::ifstream file(entry.path());
    std::ostringstream text;
    text << file.rdbuf();
    const auto parsed = parse_snapshot(text.str(), resolve);
    ASSERT_TRUE(parsed) << entry.path() << ": " << parsed.error().message();
    EXPECT_THAT(parsed->warnings, ::testing::IsEmpty()) << entry.path();
    const auto again = parse_snapshot(to_json(parsed->snapshot));
    ASSERT_TRUE(again) << entry.path() << ": " << again.error().message();
    EXPECT_EQ(again->snapshot, parsed->snapshot) << entry.path();
    ++read;
  }
  EXPECT_GE(read, 4);
}

}  // namespace
}  // namespace berth::model
