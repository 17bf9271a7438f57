// SPDX-License-Identifier: Apache-2.0
#include "tests/fleet/simulation.h"

#include "daemon/report/advertising.h"
#include "integrations/berth.h"
#include "model/hash.h"
#include "policies/decide.h"
#include "tests/fleet/moment.h"
#include "tests/judge/rows.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <utility>

#include <fmt/core.h>

namespace berth::fleet {

namespace {

constexpr double kEpoch_s = 1790000000;
// berthd's own ticks are a second apart. A step of the simulation has only the samples of its last minute.
constexpr int kSamples = 6;
constexpr double kSampleEvery_s = 10;
constexpr double kTick_s = 1;
constexpr double kSwing = 0.12;          // standard deviation of a sample
constexpr double kYoung_s = 600;         // a job's memory grows for so long
constexpr double kTight = 0.95;          // of the memory
constexpr double kKubeletLeaves = 0.99;  // the kubelet evicts above this share of the memory in use
constexpr double kServicePatience_s = 3600;
constexpr double kLongestPause_s = 900;  // between tries
constexpr int kMostTicks = 20;           // that evict, in one step

std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

double fraction_of(std::uint64_t x) { return static_cast<double>(x >> 11U) * 0x1.0p-53; }

std::string cgroup_of(const Pod& pod, std::string uid) {
  std::replace(uid.begin(), uid.end(), '-', '_');
  if (pod.arrival.latency_sensitive)
    return fmt::format("kubepods.slice/kubepods-pod{}.slice/cri-containerd-0.scope", uid);
  return fmt::format(
      "kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{}.slice/cri-containerd-0.scope", uid);
}

}  // namespace

double Interference::violations() const {
  const auto count = std::count_if(p99_ratios.begin(), p99_ratios.end(),
                                   [](double ratio) { return ratio > judge::kTolerated; });
  return p99_ratios.empty() ? 0 : static_cast<double>(count) / static_cast<double>(p99_ratios.size());
}

Simulation::Simulation(const Settings& settings)
    : settings_(settings), world_(world_of(settings.day)), day_(settings.day, world_) {
  if (settings.day.hosts < 1 || settings.day.step_s < 60 || settings.measure_every < 1)
    throw std::runtime_error("a fleet needs 1 host, steps of 60 s and a measurement every step at least");
  policies_.oversell.evict = true;
  // A host keeps pins from step to step, and no homes.
  policies_.interference.isolation = model::Isolation::vcpus;
  // A step stands for many ticks, in which the factor rises all the way.
  policies_.oversell.factor_rise *= settings.day.step_s / kTick_s;
  for (int i = 0; i < settings.day.hosts; ++i) {
    Host host;
    host.snapshot.host = fmt::format("n{:04}", i);
    host.snapshot.time = kEpoch_s;
    host.snapshot.topology = world_.topology;
    host.snapshot.memory.total_bytes = static_cast<std::uint64_t>(kHostMemory_bytes);
    host.snapshot.memory.available_bytes = host.snapshot.memory.total_bytes;
    host.pool = world_.topology.usable();
    if (settings.berth) {
      std::optional<std::string> warning;
      const os::Clock clock({.boot = [] { return kEpoch_s; }, .wall = [] { return kEpoch_s; }});
      host.used_shares = std::make_unique<daemon::UsedShares>("/nonexistent", clock, "", warning);
    }
    by_node_[host.snapshot.host] = hosts_.size();
    hosts_.push_back(std::move(host));
  }
}

std::string Simulation::node_name(std::size_t host) const { return hosts_.at(host).snapshot.host; }

Pod& Simulation::pod(const std::string& name) {
  const auto found = pods_.find(name);
  if (found == pods_.end()) throw std::runtime_error("no pod " + name);
  return found->second;
}

double Simulation::use_of(const Pod& pod) {
  if (pod.state != Pod::State::running) return 0;
  if (!pod.arrival.latency_sensitive) return pod.arrival.use_cores * pod.got;
  return day_.service_cores(pod.arrival.software, pod.arrival.cores, now_s_);
}

// 1 on average; the same for the same pod and time.
double Simulation::swing(const Pod& pod, int sample) const {
  const std::uint64_t seed =
      mixed(model::fnv1a(pod.arrival.name) ^
            mixed(static_cast<std::uint64_t>(steps_) * 64 + static_cast<std::uint64_t>(sample)));
  const double normal = policies::testing::normal_of(fraction_of(seed), fraction_of(mixed(seed)));
  return std::max(0.3, 1 + kSwing * normal);
}

void Simulation::place(const std::string& name, const Bound& bound) {
  Pod& it = pod(name);
  const auto node = by_node_.find(bound.node);
  if (node == by_node_.end()) throw std::runtime_error("no node " + bound.node);
  if (it.state != Pod::State::waiting) throw std::runtime_error(name + " does not wait");
  it.state = Pod::State::running;
  it.host = node->second;
  it.started_s = now_s_;
  it.done_core_s = 0;
  it.got = 1;
  it.cpus = {};
  it.pinned_at.reset();
  it.workload = cgroup_of(it, bound.uid);
  Host& host = hosts_[it.host];
  host.pods.insert(std::lower_bound(host.pods.begin(), host.pods.end(), name), name);
  host.is_new = true;
  std::erase(waiting_, name);
}

void Simulation::take_off(Pod& pod) {
  Host& host = hosts_[pod.host];
  std::erase(host.pods, pod.arrival.name);
  host.is_new = true;
}

// The job is lost, and its controller makes it anew.
void Simulation::evict(const std::string& name, double& counter) {
  Pod& it = pod(name);
  if (it.state != Pod::State::running) throw std::runtime_error(name + " does not run");
  take_off(it);
  it.state = Pod::State::waiting;
  it.tries = 0;
  it.next_try_s = now_s_;
  waiting_.push_back(name);
  if (!counts()) return;
  counter += 1;
  figures_.lost_core_s += it.done_core_s;
}

Simulation::Load Simulation::load_of(const Host& host) {
  Load load;
  double floating = 0;  // cores that services without vCPUs of their own use anywhere on the host
  for (const std::string& name : host.pods) {
    const Pod& it = pods_.at(name);
    const double young = std::min(1.0, (now_s_ - it.started_s) / kYoung_s);
    if (it.arrival.latency_sensitive) {
      if (it.cpus.empty()) floating += day_.service_cores(it.arrival.software, it.arrival.cores, now_s_);
      load.memory_bytes += it.arrival.memory_use_bytes;
    } else {
      load.jobs += it.arrival.use_cores;
      load.memory_bytes += it.arrival.memory_use_bytes * (0.5 + 0.5 * young);
    }
  }
  // Services come before jobs, as their weight is far greater.
  const double idle = std::max(0.0, 1 - floating / static_cast<double>(world_.topology.usable().size()));
  if (load.jobs > 0) load.got = std::min(1.0, idle * static_cast<double>(host.pool.size()) / load.jobs);
  return load;
}

// The host as its berthd sees it now.
void Simulation::see(std::size_t at) {
  Host& host = hosts_[at];
  model::Snapshot& snapshot = host.snapshot;
  snapshot.time = kEpoch_s + now_s_;
  snapshot.workloads.clear();
  const double memory = load_of(host).memory_bytes;
  snapshot.memory.available_bytes =
      snapshot.memory.total_bytes - static_cast<std::uint64_t>(std::min(memory, kHostMemory_bytes));
  double load1 = 0;
  std::uint64_t service_bytes = 0;
  for (const std::string& name : host.pods) {
    const Pod& it = pods_.at(name);
    const double age_s = now_s_ - it.started_s;
    model::Workload workload;
    workload.id = it.workload;
    workload.created = kEpoch_s + it.started_s;
    workload.cpus = it.cpus;
    workload.pinned_at = it.pinned_at;
    double bytes = it.arrival.memory_use_bytes;
    if (it.arrival.latency_sensitive) {
      // A Guaranteed pod with whole CPUs.
      workload.workload_class = model::WorkloadClass::latency_sensitive;
      workload.service = world_.services[it.arrival.software].name;
      workload.vcpus = it.arrival.cores;
      workload.cpu_quota_cores = it.arrival.cores;
      service_bytes += static_cast<std::uint64_t>(bytes);
    } else {
      workload.workload_class = model::WorkloadClass::best_effort;
      workload.service = fmt::format("batch-{}", it.arrival.software);
      bytes *= 0.5 + 0.5 * std::min(1.0, age_s / kYoung_s);
      workload.cpu_time_s = it.done_core_s;
    }
    const double use = use_of(it);
    load1 += it.arrival.latency_sensitive ? use : it.arrival.use_cores;
    for (int sample = 0; age_s > 0 && sample < kSamples; ++sample) {
      model::UsageSample reading;
      reading.time = snapshot.time - kSampleEvery_s * (kSamples - 1 - sample);
      reading.cpu_cores = std::min(use * swing(it, sample), static_cast<double>(it.arrival.cores));
      reading.memory_bytes = static_cast<std::uint64_t>(bytes);
      workload.usage.push_back(reading);
    }
    snapshot.workloads.push_back(std::move(workload));
  }
  std::sort(snapshot.workloads.begin(), snapshot.workloads.end(),
            [](const auto& a, const auto& b) { return a.id < b.id; });
  snapshot.load1 = load1;
  model::add_reading(snapshot.memory_readings, {.time = snapshot.time, .bytes = service_bytes});
  snapshot.used_shares = host.used_shares->all();
}

// One tick of berthd, and as many more as evict.
void Simulation::decide(std::size_t at, bool publishes) {
  Host& host = hosts_[at];
  std::map<std::string, std::string> names;  // by workload
  for (const std::string& name : host.pods) names[pods_.at(name).workload] = name;
  for (int tick = 0; tick < kMostTicks; ++tick) {
    see(at);
    const model::Plan plan = policies::decide(host.snapshot, policies_);
    std::vector<std::string> victims;
    for (const model::Action& action : plan.actions) {
      if (const auto* said = std::get_if<model::Advertise>(&action.what)) {
        auto& advertised = said->resource == model::Resource::cpu ? host.snapshot.advertised.cpu
                                                                  : host.snapshot.advertised.memory;
        advertised = {.factor = said->factor, .state = said->state};
        continue;
      }
      Pod& it = pod(names.at(*action.workload()));
      if (const auto* pin = action.sets<model::CpuSet>()) {
        it.cpus = *pin;
        it.pinned_at = host.snapshot.time;
      } else if (action.gives_back(model::Attribute::cpus)) {
        it.cpus = {};
        it.pinned_at.reset();
      } else if (std::holds_alternative<model::Evict>(action.what)) {
        victims.push_back(it.arrival.name);
      }
    }
    if (plan.findings.interference) host.pool = plan.findings.interference->best_effort.cpus;
    for (const std::string& victim : victims) evict(victim, figures_.evicted_for_memory);
    if (!victims.empty()) {
      host.snapshot.eviction_ended_at = host.snapshot.time;
      continue;
    }
    if (!publishes) return;
    host.used_shares->take(plan);
    // As berthd writes it, and as berth-kube reads it.
    const std::string document = daemon::state_json(plan, host.snapshot.advertised, {}, "enforce", kTick_s);
    const auto state = model::parse_node_state(document);
    if (!state) throw std::runtime_error("state.json: " + state.error().message());
    host.advertised_cores = state->cpu.advertised;
    host.be_cores = state->cpu.for_best_effort();
    const kubernetes::Wanted wanted = kubernetes::wanted_of({.state = *state, .silence = {}}, true);
    if (!host.was_published || kubernetes::is_urgent(wanted, host.published) ||
        kubernetes::is_news(wanted, host.published, policies_.safety.min_change)) {
      host.published = wanted;
      host.was_published = true;
      host.has_news = true;
    }
    return;
  }
}

// A step passes on the host.
void Simulation::run(std::size_t at) {
  Host& host = hosts_[at];
  const Load load = load_of(host);
  const double step_s = settings_.day.step_s;
  for (const std::string& name : host.pods) {
    Pod& it = pods_.at(name);
    if (it.arrival.latency_sensitive) {
      if (counts()) figures_.service_asked_core_s += it.arrival.cores * step_s;
      continue;
    }
    it.got = load.got;
    // It ends within the step.
    const double left = it.arrival.use_cores * it.arrival.duration_s - it.done_core_s;
    const double done = std::min(left, it.arrival.use_cores * load.got * step_s);
    it.done_core_s += done;
    if (!counts()) continue;
    figures_.job_core_s += done;
    figures_.job_asked_core_s += it.arrival.cores * step_s;
  }
  if (!counts()) return;
  figures_.host_steps += 1;
  figures_.short_of_cpu += load.got < 0.95 ? 1 : 0;
  figures_.short_of_memory += load.memory_bytes > kTight * kHostMemory_bytes ? 1 : 0;
  figures_.closed += host.published.closed.empty() ? 0 : 1;
  figures_.advertised_cores += host.advertised_cores;
  figures_.be_cores += host.be_cores;
}

// If memory still runs out, the kubelet evicts the pod that exceeds its request most.
void Simulation::relieve_memory(std::size_t at) {
  Host& host = hosts_[at];
  while (load_of(host).memory_bytes > kKubeletLeaves * kHostMemory_bytes) {
    const std::string* worst = nullptr;
    double most = 0;
    for (const std::string& name : host.pods) {
      const Pod& it = pods_.at(name);
      if (it.arrival.latency_sensitive) continue;
      const double above = it.arrival.memory_use_bytes - it.arrival.memory_bytes + kHostMemory_bytes;
      if (above > most) worst = &name;
      most = std::max(most, above);
    }
    if (worst == nullptr) return;
    evict(std::string(*worst), figures_.evicted_for_memory);
  }
}

void Simulation::measure(std::size_t at) {
  const Host& host = hosts_[at];
  const double got = load_of(host).got;
  Moment moment;
  moment.pool = host.pool;
  for (const std::string& name : host.pods) {
    const Pod& it = pods_.at(name);
    const Arrival& arrival = it.arrival;
    if (!arrival.latency_sensitive) {
      moment.jobs.push_back(
          {.software = arrival.software, .cores = arrival.cores, .use_cores = arrival.use_cores});
      figures_.job_cores += arrival.use_cores * got;
      continue;
    }
    const double cores = day_.service_cores(arrival.software, arrival.cores, now_s_);
    moment.services.push_back(
        {.software = arrival.software, .vcpus = arrival.cores, .cores = cores, .cpus = it.cpus});
    figures_.service_cores_alone += cores;
  }
  const std::uint64_t seed =
      mixed(settings_.day.seed ^ mixed(static_cast<std::uint64_t>(steps_) * hosts_.size() + at));
  const auto alone = served_alone(world_, moment, seed);
  const auto read = [&](Priority priority, Interference& sum) {
    const Shared found = shared(world_, moment, priority, seed);
    for (std::size_t i = 0; i < alone.size(); ++i) {
      sum.service_cores += moment.services[i].cores * found.services[i].cpu_for_work / alone[i].cpu_for_work;
      // Without a request there is nothing to compare.
      if (std::isfinite(alone[i].p99_s)) sum.p99_ratios.push_back(found.services[i].p99_s / alone[i].p99_s);
    }
    sum.job_work += found.job_work;
  };
  read(settings_.berth ? Priority::best_effort : Priority::request, figures_.interference);
  for (Moment::Service& it : moment.services) it.cpus = {};
  moment.pool = {};
  read(Priority::idle, figures_.idle_anywhere);
}

void Simulation::end_pods() {
  for (Host& host : hosts_) {
    const std::vector<std::string> names = host.pods;
    for (const std::string& name : names) {
      Pod& it = pods_.at(name);
      const Arrival& arrival = it.arrival;
      if (arrival.latency_sensitive) {
        if (now_s_ < it.started_s + arrival.duration_s) continue;
      } else {
        // The end is seen a step later at most.
        if (!it.is_late && now_s_ > arrival.deadline_s + settings_.day.step_s) {
          it.is_late = true;
          figures_.jobs_late += counts() ? 1 : 0;
        }
        if (it.done_core_s < arrival.use_cores * arrival.duration_s * (1 - 1e-9)) continue;
      }
      it.state = Pod::State::finished;
      take_off(it);
      if (!arrival.latency_sensitive && counts()) figures_.jobs_finished += 1;
    }
  }
}

void Simulation::publish(std::size_t at, Orders& orders) {
  Host& host = hosts_[at];
  if (host.has_news) orders.nodes.push_back({.node = host.snapshot.host, .wanted = host.published});
  host.has_news = false;
  // The others' figures move slowly, so a part of them is news at a time.
  if (host.is_new || (at + static_cast<std::size_t>(steps_)) % 6 == 0) orders.changed.push_back(at);
  host.is_new = false;
}

Orders Simulation::advance(const Answers& answers) {
  Orders orders;
  std::vector<std::string> ran;
  if (began_) {
    for (const std::string& name : answers.gone) evict(name, figures_.evicted_for_room);
    for (const auto& [name, bound] : answers.bound) place(name, bound);
    for (const Host& host : hosts_) ran.insert(ran.end(), host.pods.begin(), host.pods.end());
    // berthd pins new services within its next tick.
    for (std::size_t at = 0; settings_.berth && at < hosts_.size(); ++at) {
      if (hosts_[at].is_new) decide(at, false);
    }
    for (std::size_t at = 0; at < hosts_.size(); ++at) run(at);
    if (counts() && steps_ % settings_.measure_every == 0) {
      for (std::size_t at = 0; at < hosts_.size(); ++at) measure(at);
    }
    now_s_ += settings_.day.step_s;
    ++steps_;
    end_pods();
  }
  began_ = true;
  for (std::size_t at = 0; at < hosts_.size(); ++at) {
    if (settings_.berth) decide(at, true);
    relieve_memory(at);
  }
  for (std::size_t at = 0; settings_.berth && at < hosts_.size(); ++at) publish(at, orders);
  orders.time_s = now_s_;
  // Pods that are over on the hosts are removed from the cluster.
  for (const std::string& name : ran) {
    if (pods_.at(name).state != Pod::State::running) orders.remove.push_back(name);
  }
  for (Arrival& arrival : day_.arrivals(now_s_)) {
    if (counts()) (arrival.latency_sensitive ? figures_.services : figures_.jobs) += 1;
    waiting_.push_back(arrival.name);
    Pod fresh;
    fresh.next_try_s = now_s_;
    const std::string name = arrival.name;
    fresh.arrival = std::move(arrival);
    pods_.emplace(name, std::move(fresh));
  }
  std::vector<std::string> still;
  for (const std::string& name : waiting_) {
    Pod& it = pods_.at(name);
    const Arrival& arrival = it.arrival;
    const bool gives_up = arrival.latency_sensitive ? now_s_ - arrival.time_s >= kServicePatience_s
                                                    : now_s_ + arrival.duration_s > arrival.deadline_s;
    if (gives_up) {
      it.state = Pod::State::rejected;
      if (counts()) (arrival.latency_sensitive ? figures_.services_rejected : figures_.jobs_rejected) += 1;
      continue;
    }
    still.push_back(name);
    if (now_s_ < it.next_try_s) continue;
    // As a queue does: the pauses become longer.
    it.next_try_s = now_s_ + std::min(kLongestPause_s, settings_.day.step_s * (1 << std::min(it.tries, 4)));
    ++it.tries;
    orders.create.push_back(&it);
  }
  waiting_ = std::move(still);
  // Services first; a scheduler with priorities does so, too.
  std::stable_sort(orders.create.begin(), orders.create.end(), [](const Pod* a, const Pod* b) {
    return a->arrival.latency_sensitive > b->arrival.latency_sensitive;
  });
  return orders;
}

}  // namespace berth::fleet
