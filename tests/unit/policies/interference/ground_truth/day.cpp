// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/policies/interference/ground_truth/day.h"

#include "policies/decide.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <tuple>
#include <utility>

#include <fmt/core.h>

namespace berth::policies::testing {

namespace {

constexpr int kHours = 24;
constexpr double kHour_s = 3600;
constexpr double kStart_s = 1790000000;
constexpr int kMostDraws = 10;   // of a size, until one fits
constexpr int kRounds = 3;       // of berth, once an hour; the others are those of arrivals
constexpr double kRound_s = 11;  // pins may move again
constexpr double kNoise = 0.1;   // of a mean use

class DayMaker {
 public:
  DayMaker(const World& world, const DaySettings& settings)
      : world_(world), settings_(settings), draws_(settings.seed) {}

  Day make() {
    Day day;
    for (int hour = 0; hour <= kHours; ++hour) {
      hour_ = &day.hours.emplace_back();
      const double end_s = (hour + 1) * kHour_s;
      const double wave = (1 - std::cos(2 * std::numbers::pi * std::max(0, hour - 1) / kHours)) / 2;
      const double share = settings_.least + (settings_.most - settings_.least) * wave;
      wanted_ = std::min(static_cast<int>(share * cpus()), cpus() - 1);
      time_s_ = hour * kHour_s + 2 * kRounds * kRound_s;  // after the rounds of the last hour
      while (owned_ > wanted_) leave(static_cast<std::size_t>(draws_.number(0, count() - 1)));
      fill();
      while (true) {
        const auto next =
            std::min_element(staying_.begin(), staying_.end(),
                             [](const auto& a, const auto& b) { return a.until_s < b.until_s; });
        if (next == staying_.end() || next->until_s >= end_s) break;
        time_s_ = std::max(time_s_ + 1, next->until_s);
        leave(static_cast<std::size_t>(next - staying_.begin()));
        fill();
      }
      for (const Staying& it : staying_) hour_->mix.instances.push_back(it.instance);
      hour_->mix.batch_threads = draw_batch(world_, cpus() - owned_, draws_);
    }
    return day;
  }

 private:
  struct Staying {
    Mix::Instance instance;
    double until_s = 0;
  };

  int cpus() const { return static_cast<int>(world_.topology.usable().size()); }
  int count() const { return static_cast<int>(staying_.size()); }

  void leave(std::size_t at) {
    hour_->changes.push_back({.time_s = time_s_, .leaves = true, .instance = staying_[at].instance});
    owned_ -= staying_[at].instance.vcpus;
    staying_.erase(staying_.begin() + static_cast<std::ptrdiff_t>(at));
  }

  void fill() {
    for (int failures = 0; failures < kMostDraws;) {
      const int vcpus = draw_vcpus(draws_);
      if (owned_ + vcpus > wanted_) {
        ++failures;
        continue;
      }
      Staying it;
      it.instance.id = fmt::format("web-{:05}", made_++);
      it.instance.service =
          static_cast<std::size_t>(draws_.number(0, static_cast<int>(world_.services.size()) - 1));
      it.instance.vcpus = vcpus;
      it.until_s = time_s_ + exponential(draws_, settings_.stay_h * kHour_s);
      hour_->changes.push_back({.time_s = time_s_, .leaves = false, .instance = it.instance});
      owned_ += vcpus;
      time_s_ += 0.01;  // in this order
      staying_.push_back(std::move(it));
    }
  }

  const World& world_;
  const DaySettings& settings_;
  Draws draws_;
  Day::Hour* hour_ = nullptr;
  std::vector<Staying> staying_;  // by arrival
  int owned_ = 0;
  int wanted_ = 0;
  int made_ = 0;
  double time_s_ = 0;
};

// Each instance has vCPUs of its own. Batch work has the others, and so have instances without a place.
class Exclusive : public Method {
 public:
  Exclusive(const World& world, Baseline baseline, std::uint64_t seed)
      : world_(world), baseline_(baseline), free_(world.topology.usable()), draws_(seed) {}

  void arrive(const Mix::Instance& instance, double /*time_s*/) override {
    const model::CpuSet own = take(instance.vcpus);
    free_ -= own;
    places_[instance.id] = own;
  }
  void leave(const std::string& id) override {
    free_ |= places_.at(id);
    places_.erase(id);
  }
  std::vector<Figures> truth(const Mix& mix, double day) const override {
    Places places = places_;
    for (auto& [id, cpus] : places) {
      if (cpus.empty()) cpus = free_;
    }
    for (std::size_t i = 0; i < mix.batch_threads.size(); ++i) places[batch_id(i)] = free_;
    return truth_of(world_, mix, places, day);
  }
  int unplaced() const override {
    return static_cast<int>(std::count_if(places_.begin(), places_.end(),
                                          [](const auto& place) { return place.second.empty(); }));
  }

 private:
  model::CpuSet take(int vcpus) {
    if (baseline_ == Baseline::packed) return take_packed(world_.topology, free_, vcpus);
    if (baseline_ == Baseline::spread) return take_spread(world_.topology, free_, vcpus);
    return take_random(world_.topology, free_, vcpus, draws_);
  }

  const World& world_;
  Baseline baseline_;
  model::CpuSet free_;
  Draws draws_;
  Places places_;
};

// The kernel moves all threads, those of an instance within one part of the host.
class Floating : public Method {
 public:
  Floating(const World& world, Roams roams, const Kernel& kernel)
      : world_(world), roams_(roams), kernel_(kernel), requests_(parts_of(world, roams)) {}

  void arrive(const Mix::Instance& instance, double /*time_s*/) override {
    const auto least = std::min_element(requests_.begin(), requests_.end());
    *least += instance.vcpus;
    places_[instance.id] = {.part = static_cast<std::size_t>(least - requests_.begin()),
                            .vcpus = instance.vcpus};
  }
  void leave(const std::string& id) override {
    requests_[places_.at(id).part] -= places_.at(id).vcpus;
    places_.erase(id);
  }
  std::vector<Figures> truth(const Mix& mix, double day) const override {
    std::vector<std::size_t> part;
    for (const Mix::Instance& instance : mix.instances) part.push_back(places_.at(instance.id).part);
    return truth_of_floating(world_, mix, roams_, part, kernel_, day);
  }

 private:
  struct Place {
    std::size_t part = 0;
    int vcpus = 0;
  };

  const World& world_;
  Roams roams_;
  Kernel kernel_;
  std::vector<int> requests_;  // vCPUs, by part
  std::map<std::string, Place> places_;
};

class Berth : public Method {
 public:
  Berth(const World& world, const InterferenceSettings& settings,
        const std::map<std::string, model::ServiceProfile>& models, std::uint64_t seed)
      : world_(world), snapshot_(snapshot_of(world.topology)), draws_(seed) {
    settings_.interference = settings;
    snapshot_.services = models;
    for (std::size_t i = 0; i < world.batch.size(); ++i)
      snapshot_.workloads.push_back(best_effort(batch_id(i)));
  }

  void arrive(const Mix::Instance& instance, double time_s) override {
    auto workload = latency_sensitive(instance.id, instance.vcpus, kStart_s + time_s);
    workload.service = world_.services[instance.service].name;
    snapshot_.workloads.push_back(std::move(workload));
    decide_at(time_s);
  }
  void leave(const std::string& id) override {
    std::erase_if(snapshot_.workloads, [&](const model::Workload& workload) { return workload.id == id; });
  }
  void settle(double time_s) override {
    for (int round = 0; round < kRounds; ++round) decide_at(time_s + round * kRound_s);
  }
  std::vector<Figures> truth(const Mix& mix, double day) const override {
    return truth_of(world_, mix, places_of(snapshot_), day);
  }
  void see(const Mix& mix, const std::vector<Figures>& figures, double time_s) override {
    std::map<std::string, double> cores;
    for (std::size_t i = 0; i < figures.size(); ++i) {
      const std::size_t instances = mix.instances.size();
      const std::string id = i < instances ? mix.instances[i].id : batch_id(i - instances);
      cores[id] = figures[i].cores * (1 + kNoise * (2 * draws_.fraction() - 1));
    }
    for (model::Workload& workload : snapshot_.workloads)
      set_use(workload, kStart_s + time_s, cores.at(workload.id));
  }
  int unplaced() const override {
    return static_cast<int>(std::count_if(
        snapshot_.workloads.begin(), snapshot_.workloads.end(), [](const model::Workload& workload) {
          return workload.workload_class == model::WorkloadClass::latency_sensitive && workload.cpus.empty();
        }));
  }
  int moves() const override { return moves_; }

 private:
  void decide_at(double time_s) {
    snapshot_.time = kStart_s + time_s;
    const model::Plan plan = decide(snapshot_, settings_, {"interference"});
    apply_and_date(plan, snapshot_);
    moves_ += static_cast<int>(plan.findings.interference->moved.size());
  }

  const World& world_;
  PolicySettings settings_;
  model::Snapshot snapshot_;
  Draws draws_;
  int moves_ = 0;
};

}  // namespace

const char* to_string(Baseline baseline) {
  switch (baseline) {
    case Baseline::random:
      return "random";
    case Baseline::all_on_all:
      return "all-on-all";
    case Baseline::packed:
      return "packed";
    case Baseline::spread:
      return "spread";
    case Baseline::numa_balanced:
      return "NUMA-balanced";
    case Baseline::idle_core_first:
      return "idle core first";
  }
  return "";
}

Day draw_day(const World& world, const DaySettings& settings) { return DayMaker(world, settings).make(); }

std::unique_ptr<Method> make_method(const World& world, Baseline baseline, std::uint64_t seed) {
  const double cache_vcpus = world.shape.cores_per_llc * world.shape.threads_per_core;
  switch (baseline) {
    case Baseline::all_on_all:
      return std::make_unique<Floating>(world, Roams::host, Kernel{});
    case Baseline::numa_balanced:
      return std::make_unique<Floating>(world, Roams::socket, Kernel{});
    case Baseline::idle_core_first:
      return std::make_unique<Floating>(world, Roams::llc, Kernel{.searched_vcpus = cache_vcpus});
    case Baseline::random:
    case Baseline::packed:
    case Baseline::spread:
      break;
  }
  return std::make_unique<Exclusive>(world, baseline, seed);
}

std::unique_ptr<Method> make_method(const World& world, const InterferenceSettings& settings,
                                    const std::map<std::string, model::ServiceProfile>& models,
                                    std::uint64_t seed) {
  return std::make_unique<Berth>(world, settings, models, seed);
}

Judge::Judge(const World& world) : world_(world), batch_alone_(batch_alone(world)) {}

const Figures& Judge::without_neighbours(const Mix::Instance& instance, double day) {
  const auto [known, fresh] = alone_.emplace(std::tuple(instance.service, instance.vcpus, day), Figures());
  if (fresh) {
    const Service& service = world_.services[instance.service];
    known->second = alone(world_, service, instance.vcpus, service.load * load_at(service, day));
  }
  return known->second;
}

Score Judge::at(const Mix& mix, const std::vector<Figures>& figures, double day) {
  Score score;
  double wanted = 0;
  double done = 0;
  for (std::size_t i = 0; i < mix.instances.size(); ++i) {
    const Figures& without = without_neighbours(mix.instances[i], day);
    const double slowdown = figures[i].cpi / without.cpi - 1;
    score.slowdown += slowdown / static_cast<double>(mix.instances.size());
    score.extra_cores += without.cores * slowdown / static_cast<double>(world_.topology.usable().size());
    wanted += without.instructions;
    done += std::min(without.instructions, figures[i].instructions);
  }
  if (wanted > 0) score.undone = 1 - done / wanted;
  double batch_wanted = 0;
  double batch_done = 0;
  for (std::size_t i = 0; i < mix.batch_threads.size(); ++i) {
    batch_wanted += mix.batch_threads[i] * batch_alone_[i];
    batch_done += figures[mix.instances.size() + i].instructions;
  }
  if (batch_wanted > 0) score.batch = batch_done / batch_wanted;
  return score;
}

Score Judge::play(const Day& day, Method& method) {
  Score mean;
  const auto judged = static_cast<double>(day.hours.size() - 1);
  int moves_before = 0;
  for (std::size_t hour = 0; hour < day.hours.size(); ++hour) {
    const Day::Hour& it = day.hours[hour];
    for (const Day::Change& change : it.changes) {
      if (change.leaves) {
        method.leave(change.instance.id);
      } else {
        method.arrive(change.instance, change.time_s);
      }
    }
    const double end_s = static_cast<double>(hour + 1) * kHour_s;
    method.settle(end_s);
    const double time_of_day = static_cast<double>(hour) / kHours;
    const std::vector<Figures> figures = method.truth(it.mix, time_of_day);
    method.see(it.mix, figures, end_s);
    if (hour == 0) {
      moves_before = method.moves();
      continue;
    }
    const Score one = at(it.mix, figures, time_of_day);
    mean.extra_cores += one.extra_cores / judged;
    mean.slowdown += one.slowdown / judged;
    mean.batch += one.batch / judged;
    mean.undone += one.undone / judged;
    if (!it.mix.instances.empty())
      mean.unplaced += method.unplaced() / static_cast<double>(it.mix.instances.size()) / judged;
  }
  mean.moves = (method.moves() - moves_before) / judged;
  return mean;
}

}  // namespace berth::policies::testing
