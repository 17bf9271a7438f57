// SPDX-License-Identifier: Apache-2.0
// Days on one node whose queue of batch jobs never ends: how much each way to oversell gains, and how often
// memory passes the threshold at which work would have to end.
//
//   bench-oversell-day [DAYS [SEED]]
//
// The days follow each other on the same node, so that from the second one on the day before is known. Of the
// policy's methods each is run with what the daemon remembers of the last day, and without.
//
// The generator, one tick a minute, 32 vCPUs and 96 GiB:
//
// Eight services of 2 cores and 8 GiB use 20 to 70 % of their requests, with a tide: a sine over the day, all
// within three hours of each other. About ten bursts a day of 5 to 20 minutes hit all of them at once with
// 30 % more. Memory follows both, by less.
//
// Jobs of 1 to 4 cores and 3 to 10 GiB are three hours long on average (exponential). They use a skewed share
// of their requests (most little, few all): 20 to 100 % of CPU, 40 to 100 % of memory. Memory rises over the
// first half hour. A burst adds a fifth of both. Noise is 10 %.
//
// A job starts once all requests, its own included, are within the advertised amount of both resources, and
// both take work. At the evict threshold jobs are ended in the policy's order, as many as it says.
#include "policies/oversell/peak.h"
#include "policies/oversell/policy.h"
#include "tests/unit/policies/draws.h"
#include "tests/unit/policies/placement/gpu_hosts.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <numbers>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace {

using berth::policies::PeakMethod;
using berth::policies::PolicySettings;
using berth::policies::testing::Draws;
using berth::policies::testing::kGiB;
namespace model = berth::model;
namespace policies = berth::policies;
namespace testing = berth::policies::testing;

constexpr int kMinutes = 24 * 60;
constexpr double kMinute = 60;
constexpr double kCores = 32;
constexpr double kMemoryGib = 96;
constexpr std::size_t kWindow = 60;
constexpr double kEvict = 0.95;
constexpr int kOtherNoise = 1'000'000'000;  // further than any day

struct Profile {
  bool service = false;
  double cores = 0;
  double gib = 0;
  double cpu_share = 0;
  double memory_share = 0;
  double phase = 0;      // of a service, in minutes
  double minutes = 1e9;  // how long it lives
  std::uint64_t noise = 0;
};

struct Day {
  std::vector<Profile> services;  // whose tides come every day
  std::vector<double> burst;      // by minute, 0 or 1
  std::vector<Profile> jobs;      // in the order in which they queue
};

Day draw_days(std::uint64_t seed, int days) {
  Draws draws(seed);
  Day day;
  for (int i = 0; i < 8; ++i) {
    day.services.push_back({.service = true,
                            .cores = 2,
                            .gib = 8,
                            .phase = draws.number(0, 180) * 1.0,
                            .noise = static_cast<std::uint64_t>(draws.number(0, 1 << 30))});
  }
  const int minutes = days * kMinutes;
  day.burst.assign(static_cast<std::size_t>(minutes), 0);
  for (int i = 0; i < 10 * days; ++i) {
    const int start = draws.number(0, minutes - 1);
    const int length = draws.number(5, 20);
    for (int t = start; t < std::min(minutes, start + length); ++t)
      day.burst[static_cast<std::size_t>(t)] = 1;
  }
  for (int i = 0; i < 2000 * days; ++i) {
    const double skew = draws.fraction();
    const double memory_skew = draws.fraction();
    day.jobs.push_back({.cores = draws.number(1, 4) * 1.0,
                        .gib = draws.number(3, 10) * 1.0,
                        .cpu_share = 0.2 + 0.8 * skew * skew,
                        .memory_share = 0.4 + 0.6 * memory_skew * memory_skew,
                        .minutes = 5 - 180 * std::log(1 - 0.999999 * draws.fraction()),
                        .noise = static_cast<std::uint64_t>(draws.number(0, 1 << 30))});
  }
  return day;
}

struct Task {
  Profile profile;
  int started = 0;
  std::string id;
  std::deque<model::UsageSample> usage;
};

// -1..1, the same for the same workload and minute.
double noise(const Profile& profile, int minute) {
  std::uint64_t x = profile.noise * 6364136223846793005ULL + static_cast<std::uint64_t>(minute);
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  return static_cast<double>(x % 20001) / 10000 - 1;
}

void sample(Task& task, const Day& day, int minute) {
  const Profile& it = task.profile;
  double cpu = it.cpu_share;
  double memory = it.memory_share;
  if (it.service) {
    const double angle = 2 * std::numbers::pi * (minute - it.phase) / kMinutes;
    const double tide = (1 - std::cos(angle)) / 2;
    const double burst = day.burst[static_cast<std::size_t>(minute)];
    cpu = 0.2 + 0.5 * tide + 0.3 * burst;
    memory = 0.5 + 0.3 * tide + 0.15 * burst;
  } else {
    const double burst = 1 + 0.2 * day.burst[static_cast<std::size_t>(minute)];
    cpu *= burst;
    memory *= burst * std::min(1.0, 0.2 + (minute - task.started) / 30.0);
  }
  model::UsageSample made;
  made.time = minute * kMinute;
  made.cpu_cores = it.cores * std::clamp(cpu * (1 + 0.1 * noise(it, minute)), 0.0, 1.0);
  made.memory_bytes = static_cast<std::uint64_t>(
      it.gib * std::clamp(memory * (1 + 0.1 * noise(it, minute + kOtherNoise)), 0.0, 1.0) *
      static_cast<double>(kGiB));
  task.usage.push_back(made);
  if (task.usage.size() > kWindow) task.usage.pop_front();
}

struct Use {
  double cores = 0;
  double gib = 0;
};

// The p98 of all that was seen, each sample worth half after 12 hours, times 1.1.
class DecayingPeak {
 public:
  void add(double value) {
    for (auto& [seen, weight] : samples_) weight *= kDecay;
    samples_.emplace_back(value, 1.0);
    if (samples_.size() > kMost) samples_.erase(samples_.begin());
  }
  double peak() const {
    auto sorted = samples_;
    std::sort(sorted.begin(), sorted.end());
    double total = 0;
    for (const auto& [value, weight] : sorted) total += weight;
    double below = 0;
    for (const auto& [value, weight] : sorted) {
      below += weight;
      if (below >= 0.98 * total) return 1.1 * value;
    }
    return 0;
  }

 private:
  static constexpr double kDecay = 0.99903773;        // 0.5 ^ (1 / 720)
  static constexpr std::size_t kMost = 4 * kMinutes;  // what is older weighs 1/256
  std::vector<std::pair<double, double>> samples_;
};

enum class Way { none, fixed, decaying, window, policy };

struct Tally {
  double requested_cores = 0;  // core minutes
  double requested_gib = 0;
  double used_cores = 0;
  double used_gib = 0;
  long evict_minutes = 0;
  long crossings = 0;  // of the evict threshold, upwards
  long evictions = 0;
  long oom_minutes = 0;      // more than there is
  long starved_minutes = 0;  // more CPU wanted than there is
};

class Node {
 public:
  Node(const Day& day, Way way, PeakMethod method) : day_(day), way_(way) {
    settings_.oversell.peak = method;
    snapshot_ = testing::snapshot_of(testing::host({.sockets = 1, .cores_per_llc = 16}));
    snapshot_.memory.total_bytes = static_cast<std::uint64_t>(kMemoryGib) * kGiB;
    snapshot_.advertised.cpu.emplace();
    snapshot_.advertised.memory.emplace();
    for (std::size_t i = 0; i < day.services.size(); ++i)
      start(day.services[i], "service-" + std::to_string(i), -kMinutes);
  }

  // Of the first day, and of all later ones.
  std::pair<Tally, Tally> run(int days) {
    bool above = false;
    Tally first;
    for (minute_ = 0; minute_ < days * kMinutes; ++minute_) {
      if (minute_ == kMinutes) first = std::exchange(tally_, {});
      std::erase_if(tasks_, [&](const Task& task) { return minute_ - task.started > task.profile.minutes; });
      for (Task& task : tasks_) sample(task, day_, minute_);
      Use use = in_use();
      cpu_peak_.add(use.cores);
      memory_peak_.add(use.gib);
      fill_snapshot(use);
      const policies::OversellProposal proposal = policies::propose_advertising(snapshot_, settings_);
      const model::OversellFindings& findings = proposal.findings;
      if (way_ == Way::policy) remember(findings);
      if (way_ == Way::policy || way_ == Way::window) {
        for (const model::Action& action : proposal.actions)
          remember(std::get<model::Advertise>(action.what));
      } else {
        snapshot_.advertised.cpu = advertised(findings.cpu, cpu_peak_);
        snapshot_.advertised.memory = advertised(findings.memory, memory_peak_);
      }
      count(use, above);
      for (int i = 0; i < findings.evict_count; ++i) {
        const std::string& victim = findings.order[static_cast<std::size_t>(i)];
        std::erase_if(tasks_, [&](const Task& task) { return task.id == victim; });
        ++tally_.evictions;
      }
      admit();
    }
    if (days == 1) std::swap(first, tally_);
    return {first, tally_};
  }

 private:
  void start(const Profile& profile, std::string id, int when) {
    tasks_.push_back({.profile = profile, .started = when, .id = std::move(id), .usage = {}});
  }

  // As berthd does (daemon/observe/used_shares.h, policies/after.h).
  void remember(const model::OversellFindings& findings) {
    recent_.push_back({.samples = 1,
                       .cpu = findings.cpu.utilisation,
                       .memory = findings.memory.utilisation,
                       .load1 = snapshot_.load1});
    // With the next tick they are five minutes.
    if (recent_.size() > 4) recent_.pop_front();
    model::RecentUse& mean = snapshot_.recent_use.emplace();
    mean.samples = static_cast<int>(recent_.size());
    for (const model::RecentUse& tick : recent_) {
      mean.cpu += tick.cpu / mean.samples;
      mean.memory += tick.memory / mean.samples;
      mean.load1 += tick.load1 / mean.samples;
    }
    if (!findings.cpu.used_share || !findings.memory.used_share) return;
    auto& shares = snapshot_.used_shares;
    const double begins = std::floor(minute_ / 5.0) * 5 * kMinute;
    if (shares.empty() || shares.back().time < begins) shares.push_back({.time = begins});
    shares.back().cpu = std::max(shares.back().cpu, *findings.cpu.used_share);
    shares.back().memory = std::max(shares.back().memory, *findings.memory.used_share);
    if (shares.front().time <= begins - kMinutes * kMinute) shares.erase(shares.begin());
  }

  Use in_use() const {
    Use use;
    for (const Task& task : tasks_) {
      use.cores += task.usage.back().cpu_cores;
      use.gib += static_cast<double>(*task.usage.back().memory_bytes) / static_cast<double>(kGiB);
    }
    return use;
  }

  Use requested() const {
    Use use;
    for (const Task& task : tasks_) {
      use.cores += task.profile.cores;
      use.gib += task.profile.gib;
    }
    return use;
  }

  void fill_snapshot(const Use& use) {
    snapshot_.time = minute_ * kMinute;
    snapshot_.load1 = use.cores;
    const double left = std::max(0.0, kMemoryGib - use.gib);
    snapshot_.memory.available_bytes = static_cast<std::uint64_t>(left * static_cast<double>(kGiB));
    snapshot_.workloads.clear();
    for (const Task& task : tasks_) {
      model::Workload workload;
      workload.id = task.id;
      workload.service = task.id;
      workload.created = task.started * kMinute;
      workload.cpu_quota_cores = task.profile.cores;
      workload.memory_request_bytes = static_cast<std::uint64_t>(task.profile.gib) * kGiB;
      workload.evictable = !task.profile.service;
      if (task.profile.service) workload.workload_class = model::WorkloadClass::latency_sensitive;
      workload.usage = std::vector(task.usage.begin(), task.usage.end());
      snapshot_.workloads.push_back(std::move(workload));
    }
  }

  // A scheduler knows what was advertised, and no finding.
  void remember(const model::Advertise& said) {
    auto& resource =
        said.resource == model::Resource::cpu ? snapshot_.advertised.cpu : snapshot_.advertised.memory;
    resource = {.factor = said.factor, .state = said.state};
  }

  model::AdvertisedResource advertised(const model::OversoldResource& found, const DecayingPeak& peak) const {
    double factor = 1;
    if (way_ == Way::fixed) factor = 1.2;
    if (way_ == Way::decaying) {
      // In what the workloads asked for, as the policy counts it; bytes there, GiB here.
      const double scale = found.capacity > 1e6 ? static_cast<double>(kGiB) : 1;
      factor = std::clamp(found.request / (peak.peak() * scale), 1.0, 1.5);
    }
    return {.factor = factor, .state = found.state};
  }

  void count(const Use& use, bool& above) {
    const Use asked = requested();
    tally_.requested_cores += asked.cores;
    tally_.requested_gib += asked.gib;
    tally_.used_cores += std::min(kCores, use.cores);
    tally_.used_gib += use.gib;
    const bool now = use.gib / kMemoryGib >= kEvict;
    tally_.evict_minutes += now ? 1 : 0;
    tally_.crossings += now && !above ? 1 : 0;
    tally_.oom_minutes += use.gib > kMemoryGib ? 1 : 0;
    tally_.starved_minutes += use.cores > kCores ? 1 : 0;
    above = now;
  }

  void admit() {
    const model::Advertised& said = snapshot_.advertised;
    if (said.cpu->state != model::SchedulingState::schedule) return;
    if (said.memory->state != model::SchedulingState::schedule) return;
    for (Use asked = requested(); next_ < day_.jobs.size(); ++next_) {
      const Profile& job = day_.jobs[next_];
      asked.cores += job.cores;
      asked.gib += job.gib;
      if (asked.cores > said.cpu->factor * kCores || asked.gib > said.memory->factor * kMemoryGib) return;
      start(job, "job-" + std::to_string(next_), minute_);
    }
  }

  const Day& day_;
  Way way_;
  PolicySettings settings_;
  model::Snapshot snapshot_;
  std::deque<model::RecentUse> recent_;
  std::vector<Task> tasks_;
  DecayingPeak cpu_peak_;
  DecayingPeak memory_peak_;
  std::size_t next_ = 0;
  int minute_ = 0;
  Tally tally_;
};

struct Case {
  const char* name;
  Way way;
  PeakMethod method;
};

void print(const Case& it, const Tally& sum, const Tally& base, double minutes) {
  const auto of = [minutes](double amount, double all) { return 100 * amount / minutes / all; };
  const double days = minutes / kMinutes;
  std::printf("%-22s %9.1f%% %9.1f%% %+7.1f%% %+7.1f%% %7.1f%% %7.1f%% %9.1f %9.1f %9.1f %8.1f%%\n", it.name,
              of(sum.requested_cores, kCores), of(sum.requested_gib, kMemoryGib),
              100 * (sum.requested_cores / base.requested_cores - 1),
              100 * (sum.requested_gib / base.requested_gib - 1), of(sum.used_cores, kCores),
              of(sum.used_gib, kMemoryGib), static_cast<double>(sum.crossings) / days,
              static_cast<double>(sum.evict_minutes) / days, static_cast<double>(sum.evictions) / days,
              100 * static_cast<double>(sum.starved_minutes) / minutes);
}

}  // namespace

int main(int argc, char** argv) {
  const int days = argc > 1 ? std::max(1, std::atoi(argv[1])) : 10;
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  const std::vector<Case> cases{{"none", Way::none, PeakMethod::max},
                                {"fixed 1.2", Way::fixed, PeakMethod::max},
                                {"p98 x 1.1, 12 h", Way::decaying, PeakMethod::max},
                                {"weighted", Way::policy, PeakMethod::weighted},
                                {"percentile, window", Way::window, PeakMethod::percentile},
                                {"normal, window", Way::window, PeakMethod::normal},
                                {"max, window", Way::window, PeakMethod::max},
                                {"percentile", Way::policy, PeakMethod::percentile},
                                {"normal", Way::policy, PeakMethod::normal},
                                {"max", Way::policy, PeakMethod::max}};
  const Day drawn = draw_days(seed * 1'000'003, days);
  std::vector<std::pair<Tally, Tally>> tallies;
  tallies.reserve(cases.size());
  for (const Case& it : cases) tallies.push_back(Node(drawn, it.way, it.method).run(days));
  for (const bool later : {false, true}) {
    if (later && days == 1) break;
    std::printf("%s, seed %llu; of 32 cores and 96 GiB; crossings, minutes and evictions a day\n",
                later ? "every day after that" : "the first day", static_cast<unsigned long long>(seed));
    std::printf("%-22s %10s %10s %8s %8s %8s %8s %9s %9s %9s %9s\n", "", "asked CPU", "asked mem", "gain CPU",
                "gain mem", "used CPU", "used mem", "crossings", "evict min", "evictions", "CPU full");
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const auto& base = later ? tallies[0].second : tallies[0].first;
      print(cases[i], later ? tallies[i].second : tallies[i].first, base,
            (later ? days - 1.0 : 1.0) * kMinutes);
    }
  }
  return 0;
}
