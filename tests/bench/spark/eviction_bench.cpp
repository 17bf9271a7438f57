// SPDX-License-Identifier: Apache-2.0
// 100 Spark applications on one node, part done. berth and five other ways to choose victims free the same
// memory. The table compares the work that has to be done again, in task seconds. Prints a
// table; the same seeds give the same figures everywhere.
#include "policies/eviction/policy.h"
#include "tests/unit/policies/draws.h"
#include "tests/unit/policies/hosts.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace berth;
using policies::testing::Draws;

constexpr int kApplications = 100;
constexpr int kSeeds = 20;
constexpr double kMiB = 1024.0 * 1024;

// A figure spread over some orders of magnitude, around `middle`.
double spread(Draws& draws, double middle, double decades) {
  return middle * std::pow(10.0, decades * (draws.fraction() + draws.fraction() - 1));
}

model::UsageSample sample(double time, double bytes) {
  model::UsageSample made;
  made.time = time;
  made.cpu_cores = 1;
  made.memory_bytes = static_cast<std::uint64_t>(bytes);
  return made;
}

model::Workload workload(const std::string& id, double created, double bytes, double now) {
  model::Workload made = policies::testing::best_effort(id, 1);
  made.created = created;
  made.usage = {sample(now, bytes)};
  return made;
}

// One application, done up to some task: a job that is a chain of stages, some of them joins of two earlier
// ones; or many jobs of two stages, of which those to come are not known.
void add_application(Draws& draws, int number, model::Snapshot& snapshot) {
  const std::string id = "app-" + std::to_string(1000 + number);
  model::SparkApp app;
  app.id = id;
  const int executors = draws.number(1, 8);
  const bool one_job = draws.chance(0.5);
  const int stages = one_job ? draws.number(2, 12) : 2 * draws.number(1, 6);
  const double part_done = draws.fraction();
  int left = 0;
  for (int i = 0; i < stages; ++i) {
    model::SparkStage& stage = app.stages.emplace_back();
    stage.id = i;
    if (one_job ? i > 0 && draws.chance(0.9) : i % 2 == 1) stage.parents.push_back(i - 1);
    if (one_job && i > 1 && draws.chance(0.2)) stage.parents.push_back(draws.number(0, i - 2));
    stage.partitions = draws.number(4, 60);
    if (one_job ? i + 1 < stages : i % 2 == 0)
      stage.shuffle_write_bytes = static_cast<std::uint64_t>(spread(draws, 300 * kMiB, 1));
    left += stage.partitions;
  }
  left = static_cast<int>(part_done * left);
  double run_s = 0;
  for (model::SparkStage& stage : app.stages) {
    const double typical_s = spread(draws, 5, 1);
    const bool reads_input = stage.parents.empty();
    for (int task = 0; task < stage.partitions && left > 0; ++task, --left) {
      const double duration_s = spread(draws, typical_s, 0.4);
      run_s += duration_s;
      stage.tasks.push_back({std::to_string(draws.number(1, executors)),
                             reads_input ? static_cast<std::uint64_t>(spread(draws, 64 * kMiB, 0.3)) : 0,
                             duration_s});
    }
    if (left == 0 && stage.tasks.size() < static_cast<std::size_t>(stage.partitions)) {
      for (int executor = 1; executor <= executors; ++executor)
        app.running.push_back({std::to_string(executor), spread(draws, typical_s, 0.4) * draws.fraction()});
      left = -1;
    }
  }
  while (!one_job && app.stages.size() > 2 && app.stages[app.stages.size() - 2].tasks.empty())
    app.stages.resize(app.stages.size() - 2);
  app.calculated_time_s = run_s / executors;
  const double created = snapshot.time - app.calculated_time_s;
  const double bytes = spread(draws, 2000 * kMiB, 0.7);
  for (int executor = 1; executor <= executors; ++executor) {
    model::Workload made =
        workload(id + "/" + std::to_string(executor), created, spread(draws, bytes, 0.1), snapshot.time);
    made.spark = model::SparkIdentity{id, model::SparkRole::executor, std::to_string(executor)};
    snapshot.workloads.push_back(std::move(made));
  }
  model::Workload driver = workload(id + "/driver", created, spread(draws, 700 * kMiB, 0.2), snapshot.time);
  driver.spark = model::SparkIdentity{id, model::SparkRole::driver, std::nullopt};
  snapshot.workloads.push_back(std::move(driver));
  snapshot.spark_apps.push_back(std::move(app));
}

// With the need as the reserve of a node that has nothing available. `climbing`: the latency-sensitive
// workload grew by half over the window; else it stays as it is.
model::Snapshot node(std::uint64_t seed, double share, bool climbing) {
  Draws draws(seed);
  model::Snapshot snapshot = policies::testing::snapshot_of(policies::testing::host({}));
  snapshot.time = 1e6;
  for (int i = 0; i < kApplications; ++i) add_application(draws, i, snapshot);
  double held = 0;
  for (const model::Workload& one : snapshot.workloads)
    held += static_cast<double>(*one.usage.back().memory_bytes);
  snapshot.memory.total_bytes =
      static_cast<std::uint64_t>(share * held / policies::EvictionSettings().reserve);
  snapshot.memory.available_bytes = 0;
  model::Workload web = policies::testing::latency_sensitive("web", 1);
  for (int i = 0; i < 60; ++i) {
    const double bytes = 1000 * kMiB * (climbing ? 1 + i / 120.0 : 1.0);
    web.usage.push_back(sample(snapshot.time - 59 + i, bytes));
  }
  snapshot.workloads.push_back(std::move(web));
  std::sort(snapshot.workloads.begin(), snapshot.workloads.end(),
            [](const auto& a, const auto& b) { return a.id < b.id; });
  return snapshot;
}

// Task seconds that an application does again after it lost these executors all at once, or its driver: what
// Spark's scheduler recomputes of lost map output, as far as later stages still need it, and the running
// tasks.
double lost_work(const model::SparkApp& app, const std::set<std::string>& executors, bool driver) {
  double lost = 0;
  for (const model::SparkRunningTask& task : app.running)
    if (driver || executors.contains(task.executor)) lost += task.elapsed_s;
  std::set<int> running_again;  // stages of which a task has to
  for (auto stage = app.stages.rbegin(); stage != app.stages.rend(); ++stage) {
    const bool last = stage->id == app.stages.back().id;
    bool needed = driver;
    for (const model::SparkStage& other : app.stages) {
      const bool reads = std::count(other.parents.begin(), other.parents.end(), stage->id) > 0;
      if (reads && running_again.contains(other.id)) needed = true;
    }
    double again = 0;
    for (const model::SparkTask& task : stage->tasks)
      if (driver || (needed && !last && executors.contains(task.executor))) again += task.duration_s;
    if (again > 0 || stage->tasks.size() < static_cast<std::size_t>(stage->partitions))
      running_again.insert(stage->id);
    lost += again;
  }
  return lost;
}

struct Outcome {
  double lost_s = 0;
  double freed = 0;
};

Outcome evict(const model::Snapshot& snapshot, const std::vector<std::string>& order, double need) {
  std::map<std::string, const model::Workload*> by_id;
  for (const model::Workload& one : snapshot.workloads) by_id[one.id] = &one;
  std::map<std::string, std::pair<std::set<std::string>, bool>> gone;
  Outcome outcome;
  for (const std::string& id : order) {
    if (outcome.freed >= need) break;
    const model::Workload& one = *by_id.at(id);
    outcome.freed += static_cast<double>(*one.usage.back().memory_bytes);
    if (one.spark->role == model::SparkRole::driver) {
      gone[one.spark->app].second = true;
    } else {
      gone[one.spark->app].first.insert(*one.spark->executor);
    }
  }
  for (const model::SparkApp& app : snapshot.spark_apps)
    if (const auto found = gone.find(app.id); found != gone.end())
      outcome.lost_s += lost_work(app, found->second.first, found->second.second);
  return outcome;
}

// Executors by a key, ascending, and drivers only after all of them: kinder than to choose among both.
std::vector<std::string> by_key(const model::Snapshot& snapshot,
                                const std::function<double(const model::Workload&)>& key) {
  std::vector<std::pair<std::pair<bool, double>, std::string>> list;
  for (const model::Workload& one : snapshot.workloads) {
    if (!one.spark) continue;
    list.push_back({{one.spark->role == model::SparkRole::driver, key(one)}, one.id});
  }
  std::sort(list.begin(), list.end());
  std::vector<std::string> order;
  for (const auto& [rank, id] : list) order.push_back(id);
  return order;
}

// Application by application, that with the least sum of run times first; its driver last.
std::vector<std::string> by_sum(const model::Snapshot& snapshot) {
  std::map<std::string, double> sums;
  for (const model::SparkApp& app : snapshot.spark_apps)
    for (const model::SparkStage& stage : app.stages)
      for (const model::SparkTask& task : stage.tasks) sums[app.id] += task.duration_s;
  std::vector<std::pair<std::pair<double, std::string>, std::pair<bool, std::string>>> list;
  for (const model::Workload& one : snapshot.workloads) {
    if (!one.spark) continue;
    list.push_back(
        {{sums[one.spark->app], one.spark->app}, {one.spark->role == model::SparkRole::driver, one.id}});
  }
  std::sort(list.begin(), list.end());
  std::vector<std::string> order;
  for (const auto& [rank, member] : list) order.push_back(member.second);
  return order;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

using Method = std::function<std::vector<std::string>(const model::Snapshot&, std::uint64_t)>;

// `delta`: the weight of the rise of demand; the publication has 1, berth 0.
std::vector<std::string> berth_order(const model::Snapshot& snapshot, policies::EvictionRank rank,
                                     double delta = 1) {
  policies::EvictionSettings settings;
  settings.rank = rank;
  settings.delta_weight = delta;
  return policies::propose_evictions(snapshot, settings).findings.order;
}

}  // namespace

int main() {
  const std::vector<std::pair<const char*, Method>> methods{
      {"berth",
       [](const auto& it, auto) { return berth_order(it, policies::EvictionRank::loss_per_byte, 0); }},
      {"berth, delta = 1",
       [](const auto& it, auto) { return berth_order(it, policies::EvictionRank::loss_per_byte); }},
      {"rank = cost-per-byte",
       [](const auto& it, auto) { return berth_order(it, policies::EvictionRank::cost_per_byte); }},
      {"rank = cost", [](const auto& it, auto) { return berth_order(it, policies::EvictionRank::cost); }},
      {"random",
       [](const auto& it, auto seed) {
         Draws draws(seed + 1000);
         return by_key(it, [&](const auto&) { return draws.fraction(); });
       }},
      {"largest memory",
       [](const auto& it, auto) {
         return by_key(it,
                       [](const auto& one) { return -static_cast<double>(*one.usage.back().memory_bytes); });
       }},
      {"youngest first",
       [](const auto& it, auto) { return by_key(it, [](const auto& one) { return -one.created; }); }},
      {"sum of T", [](const auto& it, auto) { return by_sum(it); }},
  };
  for (const bool climbing : {false, true}) {
    for (const double share : {0.05, 0.2, 0.5}) {
      std::printf("\n%.0f %% of what %d applications hold, demand %s, seeds 1 to %d\n", share * 100,
                  kApplications, climbing ? "climbs" : "is level", kSeeds);
      std::printf("  %-20s %12s %12s %12s %10s %10s\n", "", "median s", "least s", "most s", "of random",
                  "of largest");
      std::map<std::string, std::vector<double>> lost;
      for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
        const model::Snapshot snapshot = node(seed, share, climbing);
        double need = 0;
        for (const model::Workload& one : snapshot.workloads)
          if (one.spark) need += share * static_cast<double>(*one.usage.back().memory_bytes);
        for (const auto& [name, method] : methods)
          lost[name].push_back(evict(snapshot, method(snapshot, seed), need).lost_s);
      }
      for (const auto& [name, method] : methods) {
        const auto& values = lost[name];
        std::printf("  %-20s %12.0f %12.0f %12.0f %10.2f %10.2f\n", name, median(values),
                    *std::min_element(values.begin(), values.end()),
                    *std::max_element(values.begin(), values.end()), median(values) / median(lost["random"]),
                    median(values) / median(lost["largest memory"]));
      }
    }
  }
  return 0;
}
