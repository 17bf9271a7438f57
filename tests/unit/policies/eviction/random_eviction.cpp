// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/policies/eviction/random_eviction.h"

#include "tests/unit/policies/draws.h"
#include "tests/unit/policies/hosts.h"

#include <algorithm>
#include <string>

namespace berth::policies::testing {

namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

class Drawer : private Draws {
 public:
  using Draws::Draws;

  RandomCase draw() {
    RandomCase result{.snapshot = snapshot_of(host({})), .settings = {}};
    model::Snapshot& snapshot = result.snapshot;
    snapshot.memory.total_bytes = chance(0.95) ? bytes(32) : 0;
    snapshot.memory.available_bytes =
        static_cast<std::uint64_t>(static_cast<double>(snapshot.memory.total_bytes) * fraction());
    snapshot.memory.psi_full_avg10 = chance(0.5) ? 0 : 30 * fraction();
    EvictionSettings& settings = result.settings.eviction;
    settings.complexity = chance(0.5) ? Complexity::pooled : Complexity::mean_of_ratios;
    settings.rank = chance(0.6)   ? EvictionRank::loss_per_byte
                    : chance(0.5) ? EvictionRank::cost_per_byte
                                  : EvictionRank::cost;
    settings.forecast = chance(0.5) ? ForecastRule::published : ForecastRule::learned;
    settings.delta_weight = chance(0.3) ? 0 : 2 * fraction();
    if (chance(0.5)) {
      settings.alpha = 2 * fraction();
      settings.beta_s_per_byte = 1e-7 * fraction();
      settings.gamma = 2 * fraction();
      settings.z = 4 * fraction();
      settings.window = number(2, 8);
      settings.reserve = 0.3 * fraction();
      settings.psi_full = 20 * fraction();
    }
    settings.evict = chance(0.5);
    settings.grace_s = chance(0.5) ? 30 : 0.5;
    if (chance(0.3)) snapshot.eviction_ended_at = snapshot.time - number(-5, 20);
    if (chance(0.3)) settings.hold_s = chance(0.3) ? 0 : number(1, 300);
    if (chance(0.2))
      snapshot.advertised.memory =
          model::AdvertisedResource{.factor = 1, .state = model::SchedulingState::evict};
    const int apps = number(0, 3);
    for (int i = 0; i < apps; ++i) {
      const std::string id = "app-" + std::to_string(i);
      const int executors = number(0, 4);
      if (chance(0.4)) snapshot.spark_evicted[id] = snapshot.time - number(-10, 400);
      if (chance(0.85)) snapshot.spark_apps.push_back(app(id, executors));
      for (int e = 0; e < executors; ++e) {
        model::Workload made = workload(snapshot.time, id + "/" + std::to_string(e));
        made.spark = model::SparkIdentity{id, model::SparkRole::executor, std::to_string(e)};
        snapshot.workloads.push_back(std::move(made));
      }
      if (chance(0.7)) {
        model::Workload made = workload(snapshot.time, id + "/driver");
        made.spark = model::SparkIdentity{id, model::SparkRole::driver, std::nullopt};
        snapshot.workloads.push_back(std::move(made));
      }
    }
    const int others = number(0, 4);
    for (int i = 0; i < others; ++i)
      snapshot.workloads.push_back(workload(snapshot.time, "batch-" + std::to_string(i)));
    const int sensitive = number(0, 3);
    for (int i = 0; i < sensitive; ++i) {
      model::Workload made = workload(snapshot.time, "web-" + std::to_string(i));
      made.workload_class = model::WorkloadClass::latency_sensitive;
      snapshot.workloads.push_back(std::move(made));
    }
    return result;
  }

 private:
  std::uint64_t bytes(double most_gib) {
    return static_cast<std::uint64_t>(most_gib * kGiB * fraction()) + 1;
  }

  model::Workload workload(double now, const std::string& id) {
    model::Workload made;
    made.id = id;
    made.service = id;
    if (chance(0.05)) made.workload_class = model::WorkloadClass::latency_sensitive;
    if (chance(0.1)) made.spared = "others live in it";
    if (chance(0.5)) made.cpu_time_s = 1000 * fraction();
    if (chance(0.5)) made.created = now - number(-5, 500);
    if (chance(0.4)) made.cache_bytes = bytes(2);
    if (chance(0.2)) {
      made.memory_high_bytes = bytes(4);
      made.original = model::OriginalLimits{};
      made.held_memory =
          model::HeldLimit{.cause = chance(0.6) ? model::HeldCause::preempted : model::HeldCause::lent,
                           .since = now - 100,
                           .changed_at = now - number(-5, 40)};
    }
    if (chance(0.1)) made.cpu_quota_cores = 2 * fraction() + 0.01;
    if (chance(0.08)) made.evicted_at = now - number(0, 20);
    made.fixed = {.cpu = chance(0.1), .memory = chance(0.1), .life = chance(0.1)};
    const bool climbs = chance(0.5);
    double use = chance(0.1) ? 0.01 : 2 * fraction();
    std::vector<model::UsageSample> samples;
    for (int i = number(0, 10); i > 0; --i) {
      model::UsageSample& sample = samples.emplace_back();
      sample.time = now - (chance(0.8) ? i : chance(0.5) ? i + 0.5 : i + 1);  // some twice
      sample.cpu_cores = 2 * fraction();
      if (chance(0.95)) sample.memory_bytes = static_cast<std::uint64_t>(use * kGiB);
      use += climbs ? 0.2 * fraction() : 0.2 * (fraction() - 0.5);
      use = std::max(0.0, use);
    }
    std::stable_sort(samples.begin(), samples.end(),
                     [](const auto& a, const auto& b) { return a.time < b.time; });
    made.usage = std::move(samples);
    return made;
  }

  model::SparkApp app(const std::string& id, int executors) {
    model::SparkApp made;
    made.id = id;
    made.calculated_time_s = 500 * fraction();
    made.shuffle_service = chance(0.15);
    made.migration = chance(0.25);
    const int stages = number(0, 6);
    const int jobs = number(0, 3);  // 0: not known
    for (int i = 0; i < stages; ++i) {
      model::SparkStage& stage = made.stages.emplace_back();
      stage.id = i;
      for (int parent = 0; parent < i; ++parent)
        if (chance(0.4)) stage.parents.push_back(parent);
      stage.partitions = number(1, 8);
      if (chance(0.6)) stage.shuffle_write_bytes = bytes(1);
      if (jobs > 0) stage.job = std::min(i / 2, jobs);
      stage.cached = chance(0.2);
      const bool said = chance(0.5);  // names the keeper
      const int completed = chance(0.4) ? stage.partitions : number(0, stage.partitions);
      for (int task = 0; task < completed; ++task) {
        // Now and then one of an executor that is gone, or elsewhere.
        stage.tasks.push_back({std::to_string(number(0, std::max(executors, 1))),
                               chance(0.3) ? 0 : bytes(0.1), 100 * fraction()});
        for (int keepers = said ? number(0, 2) : 0; keepers > 0; --keepers)
          stage.tasks.back().kept_by.push_back(std::to_string(number(0, std::max(executors, 1))));
      }
    }
    if (chance(0.5)) std::reverse(made.stages.begin(), made.stages.end());
    for (int i = number(0, 4); i > 0; --i)
      made.running.push_back({std::to_string(number(0, std::max(executors, 1))), 50 * fraction()});
    return made;
  }
};

}  // namespace

RandomCase random_spark_case(std::uint64_t seed) {
  RandomCase drawn = Drawer(seed).draw();
  std::sort(drawn.snapshot.workloads.begin(), drawn.snapshot.workloads.end(),
            [](const auto& a, const auto& b) { return a.id < b.id; });
  return drawn;
}

}  // namespace berth::policies::testing
