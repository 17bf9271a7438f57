// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/policies/eviction/naive_eviction.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

namespace berth::policies::naive {

namespace {

using model::SparkApp;
using model::SparkStage;
using model::Workload;

constexpr double kMiB = 1024.0 * 1024;

class Naive {
 public:
  Naive(const model::Snapshot& snapshot, const EvictionSettings& settings)
      : snap_(snapshot), set_(settings) {}

  Eviction run() {
    predict();
    for (const SparkApp& app : snap_.spark_apps) out_.apps[app.id] = worth(app);
    order();
    find_held();
    decide();
    hold();
    keep();
    return std::move(out_);
  }

 private:
  static bool best_effort(const Workload& w) { return w.workload_class == model::WorkloadClass::best_effort; }

  static double last_memory(const Workload& w) {
    double bytes = 0;
    for (const auto& s : w.usage)
      if (s.memory_bytes) bytes = static_cast<double>(*s.memory_bytes);
    return bytes;
  }

  // The kernel frees pages a while after their process lost them.
  double memory_going(const Workload& w) const {
    double bytes = last_memory(w);
    for (const auto& s : w.usage)
      if (s.time >= snap_.time - 2 && s.memory_bytes)
        bytes = std::max(bytes, static_cast<double>(*s.memory_bytes));
    return bytes;
  }

  void predict() {
    std::set<double> times;
    for (const Workload& w : snap_.workloads)
      for (const auto& s : w.usage)
        if (!best_effort(w) && s.memory_bytes) times.insert(s.time);
    while (times.size() > static_cast<std::size_t>(set_.window)) times.erase(times.begin());
    std::vector<double> sums;
    for (const double time : times) {
      double sum = 0;
      for (const Workload& w : snap_.workloads) {
        double seen = 0;
        for (const auto& s : w.usage)
          if (!best_effort(w) && s.memory_bytes && s.time <= time)
            seen = static_cast<double>(*s.memory_bytes);
        sum += seen;
      }
      sums.push_back(sum);
    }
    if (sums.empty()) return;
    const auto n = static_cast<double>(sums.size());
    double mean = 0;
    for (const double s : sums) mean += s / n;
    double variance = 0;
    for (const double s : sums) variance += (s - mean) * (s - mean) / n;
    double mean_time = 0;
    for (const double t : times) mean_time += t / n;
    double up = 0;
    double down = 0;
    std::size_t i = 0;
    for (const double t : times) {
      up += (t - mean_time) * (sums[i++] - mean);
      down += (t - mean_time) * (t - mean_time);
    }
    if (down <= 0) return;
    if (up / down * (*times.rbegin() - *times.begin()) <= 1e-9 * mean) return;
    out_.delta = mean > 0 ? set_.delta_weight * std::sqrt(variance) / mean : 0;
    out_.growth = std::max(0.0, mean + set_.z * std::sqrt(variance) - sums.back());
  }

  static std::vector<const SparkStage*> children(const SparkApp& app, const SparkStage& stage) {
    std::vector<const SparkStage*> list;
    for (const SparkStage& other : app.stages)
      if (std::count(other.parents.begin(), other.parents.end(), stage.id) > 0) list.push_back(&other);
    return list;
  }

  static double done(const SparkStage& stage) {
    return static_cast<double>(stage.tasks.size()) / static_cast<double>(stage.partitions);
  }

  AppWorth worth(const SparkApp& app) const {
    AppWorth w;
    for (const SparkStage& stage : app.stages) {
      double read = 0;
      double ratio = 0;
      double with = 0;
      for (const auto& task : stage.tasks) {
        const auto input = static_cast<double>(task.input_bytes);
        if (set_.complexity == Complexity::pooled || task.input_bytes == 0) {
          w.computation += task.duration_s;
        } else {
          read += input;
          ratio += task.duration_s / input;
          with += 1;
        }
      }
      if (with > 0) w.computation += read * ratio / with;
      double most = 0;
      for (const SparkStage* child : children(app, stage)) most = std::max(most, done(*child));
      w.transmission += static_cast<double>(stage.shuffle_write_bytes) * most;
      w.done += done(stage);
    }
    w.recalculation = set_.alpha * w.computation + set_.beta_s_per_byte * w.transmission;
    auto expected = static_cast<double>(app.stages.size());
    for (const SparkStage& stage : app.stages) {
      const bool job_is_over =
          std::all_of(app.stages.begin(), app.stages.end(), [&](const SparkStage& other) {
            return other.job != stage.job || static_cast<int>(other.tasks.size()) >= other.partitions;
          });
      if (stage.job >= 0 && job_is_over) expected += 1;
    }
    if (w.done > 0)
      w.remaining = set_.gamma * app.calculated_time_s * (expected - w.done) / std::max(w.done, 0.01);
    w.cost = w.recalculation - out_.delta * w.remaining;
    return w;
  }

  // Whether it goes with the executor what the task computed, and the program has kept.
  static bool keeps(const SparkStage& stage, const model::SparkTask& task, const std::string& executor) {
    if (!stage.cached) return false;
    for (const auto& other : stage.tasks)
      if (!other.kept_by.empty()) return std::count(task.kept_by.begin(), task.kept_by.end(), executor) > 0;
    return task.executor == executor;
  }

  static bool goes(const SparkApp& app, const SparkStage& stage, const std::string& executor) {
    return std::any_of(stage.tasks.begin(), stage.tasks.end(),
                       [&](const auto& task) { return keeps(stage, task, executor); }) ||
           writing_goes(app, stage, executor);
  }

  // By jobs more than one, of which one is the latest or still has something to do.
  static bool is_read_again_and_again(const SparkApp& app, const std::vector<const SparkStage*>& readers) {
    const auto name = [](const SparkStage& stage) {
      return stage.job >= 0 ? "job " + std::to_string(stage.job) : "stage " + std::to_string(stage.id);
    };
    std::map<int, std::string> by_id;
    std::set<std::string> at_present;
    for (const SparkStage& stage : app.stages) {
      by_id[stage.id] = name(stage);
      if (done(stage) < 1) at_present.insert(name(stage));
    }
    at_present.insert(by_id.rbegin()->second);
    std::set<std::string> reading;
    for (const SparkStage* reader : readers) reading.insert(name(*reader));
    return reading.size() > 1 && std::any_of(reading.begin(), reading.end(), [&](const std::string& job) {
             return at_present.contains(job);
           });
  }

  // Whether what the executor wrote in this stage has yet to be read, and goes with it.
  static bool writing_goes(const SparkApp& app, const SparkStage& stage, const std::string& executor) {
    if (app.shuffle_service || std::none_of(stage.tasks.begin(), stage.tasks.end(), [&](const auto& task) {
          return task.executor == executor && !keeps(stage, task, executor);
        }))
      return false;
    const auto readers = children(app, stage);
    if (readers.empty()) return stage.shuffle_write_bytes > 0;
    if (is_read_again_and_again(app, readers)) return true;
    return std::any_of(readers.begin(), readers.end(), [&](const SparkStage* reader) {
      return reader->tasks.size() < static_cast<std::size_t>(reader->partitions) ||
             goes(app, *reader, executor);
    });
  }

  double executor_cost(const SparkApp& app, const std::string& executor) const {
    double run = 0;
    double kept = 0;
    double moved = 0;
    for (const SparkStage& stage : app.stages) {
      const bool written = writing_goes(app, stage, executor);
      double count = 0;
      for (const auto& task : stage.tasks) {
        if (keeps(stage, task, executor)) {
          kept += task.duration_s;
        } else if (written && task.executor == executor) {
          run += task.duration_s;
          count += 1;
        }
      }
      if (!written) continue;
      moved +=
          static_cast<double>(stage.shuffle_write_bytes) * count / static_cast<double>(stage.tasks.size());
    }
    double cost = kept + (app.migration ? std::min(run, set_.beta_s_per_byte * moved) : run);
    for (const auto& task : app.running)
      if (task.executor == executor) cost += task.elapsed_s;
    return cost;
  }

  double to_repeat(const Workload& w) const {
    if (set_.rank == EvictionRank::cost) return cpu_seconds(w);
    return cpu_seconds(w) + (w.created > 0 && w.created < snap_.time ? (snap_.time - w.created) * 0.01 : 0);
  }

  double cpu_seconds(const Workload& w) const {
    if (w.cpu_time_s) return *w.cpu_time_s;
    if (w.usage.empty()) return 0;
    double mean = 0;
    for (const auto& s : w.usage) mean += s.cpu_cores / static_cast<double>(w.usage.size());
    return mean * std::max(0.0, snap_.time - (w.created > 0 ? w.created : w.usage.front().time));
  }

  const SparkApp* app_of(const Workload& w) const {
    for (const SparkApp& app : snap_.spark_apps)
      if (w.spark && app.id == w.spark->app) return &app;
    return nullptr;
  }

  double key(double cost, double bytes) const {
    if (bytes <= 0) return std::numeric_limits<double>::infinity();
    return set_.rank == EvictionRank::cost ? cost : cost / bytes;
  }

  void order() {
    const bool wanted =
        snap_.memory.total_bytes > 0 && (need() > 0 || snap_.memory.psi_full_avg10 > set_.psi_full);
    std::map<std::string, std::vector<const Workload*>> apps;
    Groups groups;
    for (const Workload& w : snap_.workloads) {
      if (!best_effort(w) || w.spared || (!w.spark && !wanted)) continue;
      if (w.spark) {
        apps[w.spark->app].push_back(&w);
      } else {
        out_.costs[w.id] = to_repeat(w);
        groups.push_back({{key(out_.costs[w.id], last_memory(w)), w.id}, {&w}});
      }
    }
    for (auto& [id, members] : apps) {
      const SparkApp* app = app_of(*members.front());
      double cost = app != nullptr ? out_.apps[id].cost : 0;
      double bytes = 0;
      for (const Workload* w : members) {
        bytes += last_memory(*w);
        if (app == nullptr) {
          cost += to_repeat(*w);
          out_.costs[w->id] = to_repeat(*w);
        } else if (w->spark->role == model::SparkRole::driver) {
          out_.costs[w->id] = out_.apps[id].cost;
        } else {
          out_.costs[w->id] = executor_cost(*app, w->spark->executor.value_or(""));
        }
      }
      std::sort(members.begin(), members.end(), [&](const Workload* a, const Workload* b) {
        if (drives(*a) != drives(*b)) return drives(*b);
        const double a_key = key(out_.costs[a->id], last_memory(*a));
        const double b_key = key(out_.costs[b->id], last_memory(*b));
        return a_key != b_key ? a_key < b_key : a->id < b->id;
      });
      groups.push_back({{key(cost, bytes), id}, members});
    }
    if (set_.rank == EvictionRank::loss_per_byte) return order_one_by_one(groups);
    std::sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [rank, members] : groups)
      for (const Workload* w : members) out_.order.push_back(w->id);
  }

  using Groups = std::vector<std::pair<std::pair<double, std::string>, std::vector<const Workload*>>>;

  void order_one_by_one(const Groups& groups) {
    std::map<std::string, double> keys;
    std::vector<const Workload*> all;
    for (const auto& [rank, members] : groups) {
      double held = 0;
      double dearest = -std::numeric_limits<double>::infinity();
      for (const Workload* w : members) held += last_memory(*w);
      for (const Workload* w : members) {
        all.push_back(w);
        if (drives(*w)) continue;
        keys[w->id] = key(std::max(5.0, out_.costs[w->id]), last_memory(*w));
        if (app_of(*w) != nullptr && held > 0)
          keys[w->id] -= out_.delta * out_.apps[w->spark->app].remaining / held;
        dearest = std::max(dearest, keys[w->id]);
      }
      for (const Workload* w : members)
        if (drives(*w))
          keys[w->id] = std::max(dearest, key(std::max(5.0, out_.costs[w->id]), last_memory(*w)));
    }
    std::sort(all.begin(), all.end(), [&](const Workload* a, const Workload* b) {
      if (keys[a->id] != keys[b->id]) return keys[a->id] < keys[b->id];
      if (drives(*a) != drives(*b)) return drives(*b);
      if (last_memory(*a) != last_memory(*b)) return last_memory(*a) > last_memory(*b);
      return a->id < b->id;
    });
    for (const Workload* w : all) out_.order.push_back(w->id);
  }

  static bool drives(const Workload& w) { return w.spark && w.spark->role == model::SparkRole::driver; }

  const Workload& find(const std::string& id) const {
    return *std::find_if(snap_.workloads.begin(), snap_.workloads.end(),
                         [&](const Workload& w) { return w.id == id; });
  }

  static bool may_go(const Workload& w) {
    return !w.evicted_at && !w.fixed.life && !(w.fixed.cpu && w.fixed.memory && !w.leaf_since) &&
           last_memory(w) > 0;
  }

  double freed_without(const std::string& without) const {
    double freed = 0;
    for (const std::string& id : out_.victims) freed += id == without ? 0 : last_memory(find(id));
    return freed;
  }

  void take_from(double least) {
    out_.victims.clear();
    for (const std::string& id : out_.order) {
      if (!may_go(find(id)) || last_memory(find(id)) < least) continue;
      if (!out_.victims.empty() && freed_without("") >= out_.need) return;
      out_.victims.push_back(id);
    }
  }

  // Small ones only if the others are not enough; then none without which the need is covered, too.
  void take_victims() {
    take_from(std::max(16 * kMiB, out_.need / 100));
    if (freed_without("") < out_.need) take_from(16 * kMiB);
    const std::vector<std::string> all = out_.victims;
    for (auto id = all.rbegin(); id != all.rend(); ++id)
      if (out_.victims.size() > 1 && freed_without(*id) >= out_.need) std::erase(out_.victims, *id);
  }

  static double high(const Workload& w) {
    return w.memory_high_bytes ? static_cast<double>(*w.memory_high_bytes)
                               : std::numeric_limits<double>::infinity();
  }

  void find_held() {
    if (set_.hold_s == 0) return;
    for (const Workload& w : snap_.workloads) {
      if (!best_effort(w) || w.spared || w.evicted_at || !w.spark || drives(w)) continue;
      for (const auto& [app, time] : snap_.spark_evicted)
        if (app == w.spark->app && w.created > time) out_.held.insert(w.id);
    }
  }

  void hold() {
    if (set_.evict && !out_.victims.empty()) out_.held.erase(out_.victims.front());
    for (const std::string& id : out_.held) {
      const Workload& w = find(id);
      if (!w.fixed.cpu) out_.held_cores[id] = w.cpu_quota_cores ? std::min(*w.cpu_quota_cores, 0.1) : 0.1;
    }
  }

  void keep() {
    if (snap_.memory.psi_full_avg10 <= set_.psi_full / 2) return;
    for (const Workload& w : snap_.workloads) {
      if (!best_effort(w) || w.fixed.memory || !w.memory_high_bytes || out_.limits.contains(w.id)) continue;
      if (w.held_memory && w.held_memory->cause == model::HeldCause::preempted) out_.kept[w.id] = high(w);
    }
  }

  double reserve() const { return std::ceil(set_.reserve * static_cast<double>(snap_.memory.total_bytes)); }

  double need() const {
    double going = 0;
    for (const Workload& w : snap_.workloads)
      if (w.evicted_at) going += memory_going(w);
    return std::max(
        0.0, std::ceil(out_.growth) + reserve() - going - static_cast<double>(snap_.memory.available_bytes));
  }

  void decide() {
    if (snap_.memory.total_bytes == 0) return;
    out_.need = need();
    if (out_.need > 0) return take_victims();
    if (snap_.memory.psi_full_avg10 <= set_.psi_full) return;
    for (const Workload& w : snap_.workloads)
      if (w.evicted_at) return;
    if (snap_.eviction_ended_at && *snap_.eviction_ended_at <= snap_.time &&
        snap_.time - *snap_.eviction_ended_at < 10)
      return;
    for (const Workload& w : snap_.workloads) {
      if (!best_effort(w) || !w.held_memory || w.fixed.memory) continue;
      const double ago = snap_.time - w.held_memory->changed_at;
      if (ago >= 0 && ago < 10) return;
    }
    std::vector<std::pair<double, const Workload*>> caches;
    for (const Workload& w : snap_.workloads) {
      if (!best_effort(w) || w.fixed.memory || w.evicted_at) continue;
      if (!w.cache_bytes || w.usage.empty() || !w.usage.back().memory_bytes) continue;
      const double spare = static_cast<double>(*w.usage.back().memory_bytes) - 16 * kMiB;
      const double part = std::min(static_cast<double>(*w.cache_bytes), spare);
      if (part <= 0) continue;
      caches.emplace_back(part, &w);
    }
    std::sort(caches.begin(), caches.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second->id < b.second->id;
    });
    double missing = reserve();
    for (const auto& [part, w] : caches) {
      if (missing <= 0) break;
      const double taken = std::min(part, missing);
      const double limit = static_cast<double>(*w->usage.back().memory_bytes) - taken;
      if (high(*w) <= limit) continue;
      missing -= taken;
      out_.limits[w->id] = limit;
    }
    if (reserve() > 0 && missing <= 0) return;
    out_.limits.clear();
    take_victims();
  }

  const model::Snapshot& snap_;
  const EvictionSettings& set_;
  Eviction out_;
};

}  // namespace

Eviction evict(const model::Snapshot& snapshot, const EvictionSettings& settings) {
  return Naive(snapshot, settings).run();
}

}  // namespace berth::policies::naive
