// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/placement/moves.h"

#include "policies/decide.h"
#include "tests/unit/policies/interference/ground_truth/day.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/core.h>

namespace berth::policies::bench {

namespace {

using namespace berth::policies::testing;  // NOLINT(google-build-using-namespace)

using Models = std::map<std::string, model::ServiceProfile>;

constexpr double kStart_s = 1790000000;
constexpr int kDay_s = 86400;
constexpr int kMinute_s = 60;
constexpr int kHour_s = 3600;
constexpr int kArrivals_s = 300;       // the first instances come one after the other
constexpr int kWarmUp_s = 600;         // their places settle
constexpr int kRecent_s = 600;         // a move is undone, or repeated, within this time
constexpr double kMoveCost_s = 0.010;  // of CPU, for each vCPU

constexpr double kNoise = 0.3;  // coefficients of variation
constexpr double kDrift = 0.2;
constexpr double kDriftTime_s = 120;
constexpr double kBurstEvery_s = 900;
constexpr double kBurst_s = 30;
constexpr double kBatchChange_s = 600;

struct Load {
  const char* name = "";
  double share = 0;
};
constexpr std::array kLoads{Load{"30 %", 0.30}, Load{"60 %", 0.60}, Load{"95 %", 0.95}};

struct Way {
  std::string name;
  PolicySettings settings;
  std::size_t history = 60;  // samples, as sampling.history
  bool learned = false;
};

Way way(const char* name, const InterferenceSettings& interference) {
  Way it{.name = name, .settings = {}};
  it.settings.interference = interference;
  it.settings.interference.isolation = model::Isolation::vcpus;
  return it;
}

std::vector<Way> ways(bool variants) {
  const InterferenceSettings no_moves{.search = Search::optimal, .max_moves = 0};
  const InterferenceSettings optimal{.search = Search::optimal};
  std::vector<Way> list{way("window", {}), way("optimal, no moves", no_moves), way("optimal", optimal)};
  for (Way it : {way("learned, no moves", no_moves), way("learned", optimal)}) {
    it.learned = true;
    list.push_back(std::move(it));
  }
  if (!variants) return list;
  const auto vary = [&](const char* name, const auto& change) {
    list.push_back(way(name, {.search = Search::optimal}));
    list.back().learned = true;
    change(list.back());
  };
  vary("learned, min_gain 0.1", [](Way& it) { it.settings.interference.min_gain = 0.1; });
  vary("learned, min_gain 0.02", [](Way& it) { it.settings.interference.min_gain = 0.02; });
  vary("learned, repin_cooldown 10 min", [](Way& it) { it.settings.safety.repin_cooldown_s = 600; });
  vary("learned, history 300", [](Way& it) { it.history = 300; });
  return list;
}

// Log-normal with a mean of 1.
class LogNormal {
 public:
  explicit LogNormal(double variation)
      : sigma_(std::sqrt(std::log(1 + variation * variation))), mean_(-sigma_ * sigma_ / 2) {}
  double at(double normal) const { return std::exp(mean_ + sigma_ * normal); }

 private:
  double sigma_;
  double mean_;
};

// Factors of the load by second, of one service.
std::vector<double> service_factors(int seconds, Draws& draws) {
  const LogNormal drift(kDrift);
  const double kept = std::exp(-1 / kDriftTime_s);
  const double fresh = std::sqrt(1 - kept * kept);
  double drifted = normal(draws);
  double burst = 1;
  double burst_left_s = 0;
  std::vector<double> factors;
  for (int second = 0; second < seconds; ++second) {
    drifted = kept * drifted + fresh * normal(draws);
    if (burst_left_s <= 0 && draws.chance(1 / kBurstEvery_s)) {
      burst_left_s = exponential(draws, kBurst_s);
      burst = 1.5 + 1.5 * draws.fraction();
    }
    factors.push_back(drift.at(drifted) * (burst_left_s > 0 ? burst : 1));
    burst_left_s -= 1;
  }
  return factors;
}

std::vector<double> batch_factors(int seconds, Draws& draws) {
  std::vector<double> factors;
  double factor = 2 * draws.fraction();
  for (int second = 0; second < seconds; ++second) {
    if (draws.chance(1 / kBatchChange_s)) factor = 2 * draws.fraction();
    factors.push_back(factor);
  }
  return factors;
}

double mean_of_minute(const std::vector<double>& factors, int second) {
  const auto from = static_cast<std::size_t>(second - second % kMinute_s);
  const std::size_t to = std::min(factors.size(), from + kMinute_s);
  double sum = 0;
  for (std::size_t i = from; i < to; ++i) sum += factors[i];
  return sum / static_cast<double>(to - from);
}

// All that no placement changes: all ways play the same one.
struct Play {
  int steady_s = 0;  // seconds without changes, after the warm-up
  int seconds = 0;   // in all
  double start = 0;  // time of the day, 0..1
  std::vector<Day::Change>
      changes;  // the first instances come, then others come and go; times in seconds of the play
  std::vector<std::vector<double>> services;  // factors of the load by second
  std::vector<std::vector<double>> batch;     // threads for each vCPU without an instance, by second
  std::uint64_t seed = 0;

  bool judged(int second) const { return second >= kWarmUp_s; }
  bool steady(int second) const { return judged(second) && second < kWarmUp_s + steady_s; }
  double day(int second) const { return std::fmod(start + static_cast<double>(second) / kDay_s, 1); }
};

Play draw_play(const World& world, const Load& load, double hours, int time, int times) {
  const auto seed = 2000 + static_cast<std::uint64_t>(time);
  // An instance stays an hour on average, which makes many events.
  const Day day = draw_day(world, {.least = load.share, .most = load.share, .stay_h = 1, .seed = seed});
  Play play;
  play.steady_s = static_cast<int>(hours * kHour_s);
  play.seconds = kWarmUp_s + 2 * play.steady_s;
  play.start = static_cast<double>(time) / times;
  const auto& first = day.hours[0].mix.instances;
  for (const Mix::Instance& instance : first) {
    const double time_s =
        kArrivals_s * static_cast<double>(play.changes.size()) / static_cast<double>(first.size());
    play.changes.push_back({.time_s = time_s, .leaves = false, .instance = instance});
  }
  for (std::size_t hour = 1; hour < day.hours.size(); ++hour) {
    for (Day::Change change : day.hours[hour].changes) {
      change.time_s += kWarmUp_s + play.steady_s - kHour_s;
      play.changes.push_back(std::move(change));
    }
  }
  Draws draws(seed + 1000);
  for (std::size_t i = 0; i < world.services.size(); ++i)
    play.services.push_back(service_factors(play.seconds, draws));
  for (std::size_t i = 0; i < world.batch.size(); ++i)
    play.batch.push_back(batch_factors(play.seconds, draws));
  play.seed = seed;
  return play;
}

struct Outcome {
  double instance_hours = 0;  // of the time without changes
  int moves = 0;              // in that time
  int repeated = 0;           // moves of an instance that moved in the ten minutes before
  int undone = 0;             // moves that mostly gain vCPUs that the instance had in the ten minutes before
  int other_cache = 0;
  int other_socket = 0;
  double most = 0;  // moves an hour of one instance
  int events = 0;
  int moves_with_events = 0;
  double instance_hours_with_events = 0;
  double extra = 0;   // cores, by vCPU of the host, summed over minutes
  double charge = 0;  // CPU seconds by vCPU of the host
  int minutes = 0;
  int seconds = 0;
  double cpu_s = 0;
  int ticks = 0;

  double extra_share() const { return extra / minutes; }
  double charged_share() const { return extra_share() + charge / seconds; }
};

void add(Outcome& sum, const Outcome& it) {
  sum.instance_hours += it.instance_hours;
  sum.moves += it.moves;
  sum.repeated += it.repeated;
  sum.undone += it.undone;
  sum.other_cache += it.other_cache;
  sum.other_socket += it.other_socket;
  sum.most = std::max(sum.most, it.most);
  sum.events += it.events;
  sum.moves_with_events += it.moves_with_events;
  sum.instance_hours_with_events += it.instance_hours_with_events;
  sum.extra += it.extra;
  sum.charge += it.charge;
  sum.minutes += it.minutes;
  sum.seconds += it.seconds;
  sum.cpu_s += it.cpu_s;
  sum.ticks += it.ticks;
}

// The first vCPUs of the domains that a place lies in.
std::set<int> domains_of(const std::vector<model::Domain>& domains, const model::CpuSet& place) {
  std::set<int> in;
  for (const model::Domain& domain : domains) {
    if (domain.cpus.intersects(place)) in.insert(domain.cpus.first());
  }
  return in;
}

class Player {
 public:
  Player(const World& world, const Play& play, const Way& way, const Models& models)
      : world_(world),
        play_(play),
        way_(way),
        snapshot_(snapshot_of(world.topology)),
        draws_(play.seed + 5000),
        cpus_(static_cast<double>(world.topology.usable().size())) {
    if (way.learned) snapshot_.services = models;
    for (std::size_t i = 0; i < world.batch.size(); ++i) {
      snapshot_.workloads.push_back(best_effort(batch_id(i)));
      snapshot_.workloads.back().usage = {};
    }
  }

  Outcome run() {
    std::size_t next = 0;
    for (int second = 0; second < play_.seconds; ++second) {
      for (; next < play_.changes.size() && play_.changes[next].time_s < second + 1; ++next)
        change(play_.changes[next], second);
      if (stale_ || second % kMinute_s == 0) measure(second);
      if (play_.judged(second) && second % kMinute_s == 0) judge(second);
      sample(second);
      decide_at(second);
    }
    for (const auto& [id, moves] : moves_of_)
      outcome_.most = std::max(outcome_.most, moves * static_cast<double>(kHour_s) / play_.steady_s);
    return outcome_;
  }

 private:
  struct Past {
    int until = 0;  // second
    model::CpuSet cpus;
  };

  void arrive(const Mix::Instance& instance, int second) {
    auto workload = latency_sensitive(instance.id, instance.vcpus, kStart_s + second);
    workload.service = world_.services[instance.service].name;
    workload.usage = {};
    // Ids rise with time, and follow those of batch work.
    snapshot_.workloads.push_back(std::move(workload));
  }

  void change(const Day::Change& change, int second) {
    if (play_.judged(second)) ++outcome_.events;
    if (!change.leaves) {
      mix_.instances.push_back(change.instance);
      arrive(change.instance, second);
    } else {
      const auto same = [&](const auto& it) { return it.id == change.instance.id; };
      std::erase_if(mix_.instances, same);
      std::erase_if(snapshot_.workloads, same);
    }
    stale_ = true;
  }

  // The mean loads of this minute as factors, those of batch software after those of instances.
  std::vector<double> swing_at(int second) const {
    std::vector<double> swing;
    for (const Mix::Instance& instance : mix_.instances)
      swing.push_back(mean_of_minute(play_.services[instance.service], second));
    for (const auto& factors : play_.batch) swing.push_back(mean_of_minute(factors, second));
    return swing;
  }

  // Asks the machine for its steady state with the mean loads of this minute.
  void measure(int second) {
    int owned = 0;
    for (const Mix::Instance& instance : mix_.instances) owned += instance.vcpus;
    const auto kinds = static_cast<double>(world_.batch.size());
    mix_.batch_threads.assign(world_.batch.size(), (cpus_ - owned) / kinds);
    figures_ = truth_of(world_, mix_, places_of(snapshot_), play_.day(second), swing_at(second));
    stale_ = false;
  }

  void judge(int second) {
    const std::vector<double> swing = swing_at(second);
    std::map<std::pair<std::size_t, int>, Figures> alone_here;  // by service and vCPUs
    for (std::size_t i = 0; i < mix_.instances.size(); ++i) {
      const Mix::Instance& instance = mix_.instances[i];
      const auto [it, fresh] = alone_here.emplace(std::pair(instance.service, instance.vcpus), Figures());
      if (fresh) {
        const Service& service = world_.services[instance.service];
        it->second = alone(world_, service, instance.vcpus,
                           service.load * load_at(service, play_.day(second)) * swing[i]);
      }
      outcome_.extra += it->second.cores * (figures_[i].cpi / it->second.cpi - 1) / cpus_;
    }
    ++outcome_.minutes;
  }

  // What each workload used in this second.
  void sample(int second) {
    std::map<std::string, double> cores;
    const LogNormal noise(kNoise);
    for (std::size_t i = 0; i < figures_.size(); ++i) {
      const bool is_batch = i >= mix_.instances.size();
      const std::size_t kind = i - mix_.instances.size();
      const auto& factors = is_batch ? play_.batch[kind] : play_.services[mix_.instances[i].service];
      const double mean = mean_of_minute(factors, second);
      const double now = mean > 0 ? factors[static_cast<std::size_t>(second)] / mean : 0;
      const double most = is_batch ? cpus_ : mix_.instances[i].vcpus;
      cores[is_batch ? batch_id(kind) : mix_.instances[i].id] =
          std::min(most, figures_[i].cores * now * noise.at(normal(draws_)));
    }
    const model::UsageWindow* like = nullptr;
    for (model::Workload& workload : snapshot_.workloads) {
      model::UsageSample sample;
      sample.time = kStart_s + second;
      sample.cpu_cores = cores.at(workload.id);
      // A new workload has its first sample a second later.
      if (workload.created < sample.time) workload.usage.add(sample, way_.history, like);
      like = &workload.usage;
    }
  }

  void decide_at(int second) {
    snapshot_.time = kStart_s + second;
    std::vector<std::pair<std::string, model::CpuSet>> before;
    for (const model::Workload& workload : snapshot_.workloads) {
      const bool serves = workload.workload_class == model::WorkloadClass::latency_sensitive;
      if (serves && !workload.cpus.empty()) before.emplace_back(workload.id, workload.cpus);
    }
    const std::clock_t started = std::clock();
    const model::Plan plan = decide(snapshot_, way_.settings, {"interference"});
    outcome_.cpu_s += static_cast<double>(std::clock() - started) / CLOCKS_PER_SEC;
    ++outcome_.ticks;
    apply_and_date(plan, snapshot_);
    if (play_.judged(second)) {
      ++outcome_.seconds;
      const double hours = static_cast<double>(mix_.instances.size()) / kHour_s;
      (play_.steady(second) ? outcome_.instance_hours : outcome_.instance_hours_with_events) += hours;
    }
    if (plan.actions.empty()) return;
    const Places places = places_of(snapshot_);
    for (const auto& [id, was] : before) {
      if (places.at(id) != was) moved(id, was, places.at(id), second);
    }
  }

  void moved(const std::string& id, const model::CpuSet& was, const model::CpuSet& is, int second) {
    std::vector<Past>& past = past_[id];
    std::erase_if(past, [&](const Past& it) { return it.until < second - kRecent_s; });
    model::CpuSet recent;
    for (const Past& it : past) recent |= it.cpus;
    const bool repeated = !past.empty();
    const model::CpuSet gained = is - was;
    const bool undone = 2 * (gained & recent).size() >= gained.size();
    past.push_back({.until = second, .cpus = was});
    if (!play_.judged(second)) return;
    outcome_.charge += kMoveCost_s * static_cast<double>(is.size()) / cpus_;
    if (!play_.steady(second)) {
      ++outcome_.moves_with_events;
      return;
    }
    ++outcome_.moves;
    ++moves_of_[id];
    outcome_.repeated += repeated ? 1 : 0;
    outcome_.undone += undone ? 1 : 0;
    const auto crosses = [&](const std::vector<model::Domain>& domains) {
      return domains_of(domains, was) != domains_of(domains, is);
    };
    outcome_.other_cache += crosses(world_.topology.domains(model::DomainKind::llc)) ? 1 : 0;
    outcome_.other_socket += crosses(world_.topology.sockets()) ? 1 : 0;
  }

  const World& world_;
  const Play& play_;
  const Way& way_;
  model::Snapshot snapshot_;
  Mix mix_;
  Draws draws_;
  double cpus_;
  std::vector<Figures> figures_;
  bool stale_ = true;  // the mix is another than that of the figures
  std::map<std::string, std::vector<Past>> past_;
  std::map<std::string, int> moves_of_;  // in the time without changes
  Outcome outcome_;
};

double per(double sum, double count) { return count > 0 ? sum / count : 0; }

void print_head() {
  const std::array columns{"node",
                           "load",
                           "way",
                           "instances",
                           "moves an instance and hour",
                           "most of one instance",
                           "moved again, %",
                           "undone, %",
                           "to another cache, %",
                           "to another socket, %",
                           "moves with changes",
                           "changes an hour",
                           "extra CPU, %",
                           "with the moves, %",
                           "of window",
                           "ms a tick"};
  fmt::print("\n|");
  for (const char* column : columns) fmt::print(" {} |", column);
  fmt::print("\n|");
  for (std::size_t i = 0; i < columns.size(); ++i) fmt::print("---|");
  fmt::print("\n");
}

void print(const Node& node, const Load& load, const Way& way, const Outcome& it, const Outcome& window,
           double hours) {
  const auto percent = [&](int count) { return 100 * per(count, it.moves); };
  fmt::print(
      "| {} | {} | {} | {:.0f} | {:.2f} | {:.1f} | {:.0f} | {:.0f} | {:.0f} | {:.0f} | {:.2f} | {:.0f} | "
      "{:.3f} | {:.3f} | {:.2f} | {:.2f} |\n",
      node.name, load.name, way.name, it.instance_hours / hours / node.times,
      per(it.moves, it.instance_hours), it.most, percent(it.repeated), percent(it.undone),
      percent(it.other_cache), percent(it.other_socket),
      per(it.moves_with_events, it.instance_hours_with_events),
      static_cast<double>(it.events) / hours / node.times, 100 * it.extra_share(), 100 * it.charged_share(),
      it.charged_share() / window.charged_share(), 1000 * it.cpu_s / it.ticks);
}

}  // namespace

void print_moves(const MovesSettings& settings) {
  print_head();
  const std::vector<Way> all = ways(settings.variants);
  int number = 0;
  for (const Node& node : nodes()) {
    if (++number != settings.only && settings.only > 0) continue;
    const std::clock_t started = std::clock();
    std::array<std::vector<Outcome>, kLoads.size()> outcomes;
    for (auto& of_load : outcomes) of_load.resize(all.size());
    for (int time = 0; time < node.times; ++time) {
      const auto seed = 1 + static_cast<std::uint64_t>(time);
      const World world = make_world(
          {.shape = node.shape, .llc_mib = node.llc_mib, .alike = false, .services = 8, .seed = seed});
      Lesson lesson;
      lesson.mixes = node.lesson_mixes;
      const Training training(world, lesson, 1000 + seed);
      for (std::size_t load = 0; load < kLoads.size(); ++load) {
        const Play play = draw_play(world, kLoads[load], settings.hours, time, node.times);
        for (std::size_t at = 0; at < all.size(); ++at)
          add(outcomes[load][at], Player(world, play, all[at], training.services()).run());
      }
    }
    for (std::size_t load = 0; load < kLoads.size(); ++load) {
      for (std::size_t at = 0; at < all.size(); ++at)
        print(node, kLoads[load], all[at], outcomes[load][at], outcomes[load][0], settings.hours);
    }
    fmt::print(stderr, "{}: {:.1f} s of CPU\n", node.name,
               static_cast<double>(std::clock() - started) / CLOCKS_PER_SEC);
  }
}

}  // namespace berth::policies::bench
