// SPDX-License-Identifier: Apache-2.0
// Where the simulated kernel puts threads: at a wake-up (select_idle_sibling), and later (load_balance).
#include "tests/judge/kernel.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>

namespace berth::judge {

namespace {

constexpr double kImbalance = 1.17;  // sd_init: imbalance_pct
constexpr Time kBusyFactor = 16;     // sd_init: busy_factor
constexpr int kCacheNiceTries = 1;   // sd_init: cache_nice_tries, of vCPUs that share a cache

}  // namespace

double Kernel::followed(double mean, double toward, Time passed) {
  constexpr double kHalfLife = 32.0 * kMillisecond;  // LOAD_AVG_PERIOD
  return toward + (mean - toward) * std::exp2(-static_cast<double>(passed) / kHalfLife);
}

void Kernel::Load::decay(Time now) {
  if (now == since) return;
  value = followed(value, weight, now - since);
  since = now;
}

void Kernel::queue_changed(int cpu) {
  Cpu& it = cpus_[cpu];
  it.load.decay(now_);
  it.load.weight = it.current < 0 ? 0 : weight_of(threads_[it.current]);
  for (const int number : it.waiting) it.load.weight += weight_of(threads_[number]);
}

// `thread` has come to the queue of its vCPU, or left it.
void Kernel::may_run_now(int number, bool may) {
  Thread& thread = threads_[number];
  thread.load.decay(now_);
  thread.load.weight = may ? weight_of(thread) : 0;
  queue_changed(thread.cpu);
}

// The load of a thread goes with it (detach_entity_load_avg, attach_entity_load_avg).
void Kernel::move_to(int number, int cpu) {
  Thread& thread = threads_[number];
  if (thread.cpu == cpu) return;
  if (thread.cpu < 0) {
    // A new one has the load of one that always ran (init_entity_runnable_average).
    thread.load = {.value = weight_of(thread), .weight = 0, .since = now_};
  } else {
    thread.load.decay(now_);
    queue_changed(thread.cpu);
    double& load = cpus_[thread.cpu].load.value;
    load = std::max(0.0, load - thread.load.value);
  }
  thread.cpu = cpu;
  cpus_[cpu].load.decay(now_);
  cpus_[cpu].load.value += thread.load.value;
}

// The first idle vCPU on which the thread fits, else the idle one with the most capacity.
int Kernel::choose_by_capacity(int number, int target) const {
  const int count = static_cast<int>(cpus_.size());
  int best = -1;
  for (int i = 0; i < count; ++i) {
    const int cpu = (target + i) % count;
    if (!may_run(number, cpu) || !is_free(cpu)) continue;
    if (fits(threads_[number], cpu)) return cpu;
    if (best < 0 || places_[cpu].capacity > places_[best].capacity) best = cpu;
  }
  return best >= 0 ? best : target;
}

// The waker's vCPU if it has less load with the thread than the previous one (wake_affine_weight). An idle
// previous one stays (wake_affine_idle).
int Kernel::wake_affine(int number, int prev) {
  if (waker_ < 0 || waker_ == prev || !may_run(number, waker_) || is_idle(prev) ||
      places_[waker_].domain != places_[prev].domain)
    return prev;
  Thread& thread = threads_[number];
  thread.load.decay(now_);
  cpus_[waker_].load.decay(now_);
  cpus_[prev].load.decay(now_);
  const double here = (cpus_[waker_].load.value + thread.load.value) / places_[waker_].capacity;
  const double there = std::max(0.0, cpus_[prev].load.value - thread.load.value) / places_[prev].capacity;
  return here < (1 + (kImbalance - 1) / 2) * there ? waker_ : prev;
}

// A search for an idle vCPU looks at so many (SIS_UTIL, update_idle_cpu_scan): at none above a use of 0.85.
// The use of idle-class threads counts like any other.
int Kernel::idle_scan(int domain) {
  double use = 0;
  for (const int cpu : by_domain_[domain]) {
    cpus_[cpu].use.decay(now_);
    use += cpus_[cpu].use.value;
  }
  const auto count = static_cast<double>(by_domain_[domain].size());
  const double over = kImbalance * use / count;
  return static_cast<int>(count * (1 - std::min(1.0, over * over)));
}

// Of those that it may use, one that is free, else the one with the fewest.
int Kernel::choose_first_cpu(int number) const {
  const int count = static_cast<int>(cpus_.size());
  int best = -1;
  std::size_t fewest = 0;
  for (int i = 0; i < count; ++i) {
    const int cpu = (i + number) % count;  // new threads are spread
    if (!may_run(number, cpu)) continue;
    const int sibling = cpus_[cpu].sibling;
    std::size_t here = 2 * (cpus_[cpu].waiting.size() + (cpus_[cpu].current >= 0 ? 1 : 0));
    if (sibling >= 0 && cpus_[sibling].current >= 0) ++here;
    if (best >= 0 && here >= fewest) continue;
    best = cpu;
    fewest = here;
  }
  if (best < 0) throw std::logic_error("a group may run nowhere");
  return best;
}

int Kernel::choose_cpu(int number) {
  const int prev = threads_[number].cpu;
  if (prev < 0 || !may_run(number, prev)) return choose_first_cpu(number);
  if (hybrid_) return choose_by_capacity(number, prev);
  const int target = wake_affine(number, prev);
  if (is_free(target)) return target;
  if (target != prev && is_free(prev)) return prev;
  const auto& domain = by_domain_[places_[target].domain];
  const auto start =
      static_cast<std::size_t>(std::find(domain.begin(), domain.end(), target) - domain.begin());
  const auto idle_core = [this](int cpu) {
    return is_idle(cpu) && (cpus_[cpu].sibling < 0 || is_idle(cpus_[cpu].sibling));
  };
  const int sibling = cpus_[prev].sibling;
  // Without a waker's vCPU, an idle core anywhere in the cache is found, else any free vCPU.
  const bool has_waker = waker_ >= 0;
  int scans = has_waker ? idle_scan(places_[target].domain) : static_cast<int>(domain.size());
  // select_idle_smt, select_idle_core: on cores of two threads, a hint says whether a core is idle.
  const bool any_core = sibling >= 0 && std::any_of(domain.begin(), domain.end(), idle_core);
  if (has_waker && sibling >= 0 && !any_core && may_run(number, sibling) && is_free(sibling)) return sibling;
  if (scans == 0) return target;
  int found = -1;
  for (std::size_t i = 1; i < domain.size() && (any_core || scans > 0); ++i) {
    const int cpu = domain[(start + i) % domain.size()];
    if (!may_run(number, cpu)) continue;
    --scans;
    if (!is_free(cpu)) continue;
    if (idle_core(cpu) || (has_waker && !any_core)) return cpu;
    if (found < 0) found = cpu;
  }
  return found >= 0 ? found : target;
}

void NewIdle::count(unsigned success) {
  ++calls;
  successes += success;
  if (calls < 1024) return;
  ratio = successes;
  calls /= 2;
  successes /= 2;
}

bool NewIdle::looks(unsigned dice) {
  if (dice <= 1 + ratio) return true;
  count(0);
  return false;
}

void NewIdle::found(bool any) {
  const unsigned sides = 1 + ratio;
  count(any ? (1024 + sides / 2) / sides : 0);
}

// Takes a waiting thread of another vCPU, of its own cache first. A newly idle vCPU takes none that ran a
// moment ago; one that runs the idle class takes no other of it.
bool Kernel::pull(int cpu, Search search) {
  const bool hot_too = search != Search::newly_idle;
  const bool fair_only = search == Search::fair_for_idle_class;
  // Most searches end here.
  const bool any = std::any_of(groups_.begin(), groups_.end(), [&](const GroupState& group) {
    return group.runnable > group.running && group.settings.mask.test(static_cast<std::size_t>(cpu)) &&
           !(fair_only && group.settings.idle);
  });
  if (!any) return false;
  const bool random = search == Search::newly_idle && rules_.version == Version::eevdf;
  for (const bool same_domain : {true, false}) {
    NewIdle& stats = cpus_[cpu].newly_idle[same_domain ? 0 : 1];
    if (random && !stats.looks(static_cast<unsigned>(dice_() % 1024))) continue;
    int busiest = -1;
    std::size_t index = 0;
    for (int other = 0; other < static_cast<int>(cpus_.size()); ++other) {
      if (other == cpu || (places_[other].domain == places_[cpu].domain) != same_domain) continue;
      const Cpu& it = cpus_[other];
      if ((it.current < 0 && !it.taken) ||
          (busiest >= 0 && it.waiting.size() <= cpus_[busiest].waiting.size()))
        continue;
      for (std::size_t i = 0; i < it.waiting.size(); ++i) {
        const int number = it.waiting[i];
        const Thread& thread = threads_[number];
        if (!may_run(number, cpu) || groups_[thread.group].throttled || thread.delayed) continue;
        if (fair_only && idle_class(number)) continue;
        const bool hot = !idle_class(number) && now_ - thread.stopped < rules_.migration_cost;
        if (hot && !hot_too) continue;
        busiest = other;
        index = i;
        break;
      }
    }
    if (random) stats.found(busiest >= 0);
    if (busiest < 0) continue;
    Cpu& from = cpus_[busiest];
    const int number = from.waiting[index];
    Thread& thread = threads_[number];
    slice_ends(busiest);
    thread.lag =
        rules_.version == Version::cfs ? thread.vruntime - from.least_vruntime : lag_of(thread, from);
    from.waiting.erase(from.waiting.begin() + static_cast<std::ptrdiff_t>(index));
    place(number, cpu);
    move_to(number, cpu);
    cpus_[cpu].waiting.push_back(number);
    queue_changed(cpu);
    return true;
  }
  return false;
}

// A vCPU that runs something takes waiting threads of the one with the most load for its capacity in its
// cache, now and then: those whose load is no more than half of the difference, or after a time in vain than
// a multiple of that.
void Kernel::rebalance(int cpu) {
  Cpu& it = cpus_[cpu];
  const auto& domain = by_domain_[places_[cpu].domain];
  const Time shortest = static_cast<Time>(domain.size()) * kMillisecond;
  const auto again = [&](Time interval) {
    it.balance.interval = interval;
    const Time next = is_free(cpu) ? interval : kBusyFactor * interval - rules_.tick;
    push(now_ + std::max(next, rules_.tick), Kind::balance, cpu);
  };
  const auto runnable = [this](const Cpu& of) {
    return std::count_if(of.waiting.begin(), of.waiting.end(),
                         [this](int number) { return !threads_[number].delayed; });
  };
  if (it.current < 0) return again(shortest);
  const auto load_of = [this](int number) { return cpus_[number].load.value / places_[number].capacity; };
  double total = 0;
  double capacity = 0;
  int busiest = -1;
  for (const int other : domain) {
    Cpu& of = cpus_[other];
    of.load.decay(now_);
    total += of.load.value;
    capacity += places_[other].capacity;
    if (other == cpu || of.current < 0 || runnable(of) == 0) continue;
    if (busiest < 0 || load_of(other) > load_of(busiest)) busiest = other;
  }
  const double mean = total / capacity;
  if (busiest < 0 || load_of(cpu) >= std::min(mean, load_of(busiest)) ||
      (runnable(it) > 0 && load_of(busiest) <= kImbalance * load_of(cpu))) {
    it.balance.failed = 0;
    return again(std::clamp(2 * it.balance.interval, shortest, 2 * shortest));
  }
  Cpu& from = cpus_[busiest];
  slice_ends(busiest);
  double imbalance = std::min((load_of(busiest) - mean) * places_[busiest].capacity,
                              (mean - load_of(cpu)) * places_[cpu].capacity);
  std::vector<int> moved;
  const double mean_there = mean_vruntime(from);
  for (const int number : from.waiting) {
    Thread& thread = threads_[number];
    const bool hot = !idle_class(number) && now_ - thread.stopped < rules_.migration_cost;
    // task_is_ineligible_on_dst_cpu, from 6.14 on: one that is not to run yet may as well wait there.
    const bool ineligible = rules_.version == Version::eevdf && thread.vruntime > mean_there;
    if (imbalance <= 0 || thread.delayed || !may_run(number, cpu) || groups_[thread.group].throttled ||
        (hot && it.balance.failed <= kCacheNiceTries) || (ineligible && it.balance.failed == 0))
      continue;
    thread.load.decay(now_);
    if (std::ldexp(thread.load.value, -it.balance.failed) > imbalance) continue;
    imbalance -= thread.load.value;
    moved.push_back(number);
  }
  it.balance.failed = moved.empty() ? it.balance.failed + 1 : 0;
  again(shortest);
  for (const int number : moved) {
    Thread& thread = threads_[number];
    thread.lag =
        rules_.version == Version::cfs ? thread.vruntime - from.least_vruntime : lag_of(thread, from);
    std::erase(from.waiting, number);
    enqueue(number, cpu);
  }
}

// A core that runs two threads gives one to an idle core of its domain. A core gives a thread that does not
// fit to an idle core with more capacity (update_misfit_status).
void Kernel::spread(int cpu) {
  const int sibling = cpus_[cpu].sibling;
  if (cpus_[cpu].current >= 0 || cpus_[cpu].taken || (sibling >= 0 && cpus_[sibling].current >= 0)) return;
  for (const int other : by_domain_[places_[cpu].domain]) {
    if (cpus_[other].current < 0) continue;
    const int beside = cpus_[other].sibling;
    const bool crowded = sibling >= 0 && beside >= 0 && cpus_[beside].current >= 0;
    bool misfit = false;
    if (hybrid_ && places_[cpu].capacity > places_[other].capacity) {
      count(other);
      misfit = !fits(threads_[cpus_[other].current], other);
    }
    if (!crowded && !misfit) continue;
    const int number = cpus_[other].current;
    if (!may_run(number, cpu)) continue;
    put_back(other);
    std::erase(cpus_[other].waiting, number);
    threads_[number].lag = 0;
    place(number, cpu);
    move_to(number, cpu);
    cpus_[cpu].waiting.push_back(number);
    queue_changed(cpu);
    reschedule(other);
    reschedule(cpu);
    return;
  }
}

// A vCPU that runs the idle class alone takes what waits elsewhere (rebalance_domains counts it as idle).
void Kernel::relieve(int cpu) {
  if (cpus_[cpu].current < 0 || !is_free(cpu) || !pull(cpu, Search::fair_for_idle_class)) return;
  put_back(cpu);
  reschedule(cpu);
}

}  // namespace berth::judge
