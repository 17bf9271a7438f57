// SPDX-License-Identifier: Apache-2.0
// Where the simulated kernel puts threads: at a wake-up (select_idle_sibling), and later (load_balance).
#include "tests/judge/kernel.h"

#include <algorithm>
#include <cstddef>
#include <stdexcept>

namespace berth::judge {

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

int Kernel::choose_cpu(int number) const {
  const Thread& thread = threads_[number];
  const int count = static_cast<int>(cpus_.size());
  int target = thread.cpu;
  if (target < 0 || !may_run(number, target)) {
    // Of those that it may use, one that is free, else the one with the fewest.
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
  if (hybrid_) return choose_by_capacity(number, target);
  if (is_free(target)) return target;
  const auto& domain = by_domain_[places_[target].domain];
  const auto start =
      static_cast<std::size_t>(std::find(domain.begin(), domain.end(), target) - domain.begin());
  const auto idle = [this](int cpu) { return cpus_[cpu].current < 0 && cpus_[cpu].waiting.empty(); };
  int found = -1;
  for (std::size_t i = 1; i < domain.size(); ++i) {
    const int cpu = domain[(start + i) % domain.size()];
    if (!may_run(number, cpu) || !is_free(cpu)) continue;
    const int sibling = cpus_[cpu].sibling;
    if (idle(cpu) && (sibling < 0 || idle(sibling))) return cpu;
    if (found < 0) found = cpu;
  }
  return found >= 0 ? found : target;
}

// Takes a waiting thread of another vCPU, of its own cache first. `hot_too`: one that ran a moment ago, too.
// `fair_only`: none of the idle class.
bool Kernel::pull(int cpu, bool hot_too, bool fair_only) {
  // Most searches end here.
  const bool any = std::any_of(groups_.begin(), groups_.end(), [&](const GroupState& group) {
    return group.runnable > group.running && group.settings.mask.test(static_cast<std::size_t>(cpu)) &&
           !(fair_only && group.settings.idle);
  });
  if (!any) return false;
  for (const bool same_domain : {true, false}) {
    int busiest = -1;
    std::size_t index = 0;
    for (int other = 0; other < static_cast<int>(cpus_.size()); ++other) {
      if (other == cpu || (places_[other].domain == places_[cpu].domain) != same_domain) continue;
      const Cpu& it = cpus_[other];
      if (it.current < 0 || (busiest >= 0 && it.waiting.size() <= cpus_[busiest].waiting.size())) continue;
      for (std::size_t i = 0; i < it.waiting.size(); ++i) {
        const int number = it.waiting[i];
        const Thread& thread = threads_[number];
        if (!may_run(number, cpu) || groups_[thread.group].throttled) continue;
        if (fair_only && idle_class(number)) continue;
        const bool hot = !idle_class(number) && now_ - thread.stopped < rules_.migration_cost;
        if (hot && !hot_too) continue;
        busiest = other;
        index = i;
        break;
      }
    }
    if (busiest < 0) continue;
    Cpu& from = cpus_[busiest];
    const int number = from.waiting[index];
    Thread& thread = threads_[number];
    thread.lag =
        rules_.version == Version::cfs ? thread.vruntime - from.least_vruntime : lag_of(thread, from);
    from.waiting.erase(from.waiting.begin() + static_cast<std::ptrdiff_t>(index));
    place(number, cpu);
    thread.cpu = cpu;
    cpus_[cpu].waiting.push_back(number);
    return true;
  }
  return false;
}

// A core that runs two threads gives one to an idle core of its domain. A core gives a thread that does not
// fit to an idle core with more capacity (update_misfit_status).
void Kernel::spread(int cpu) {
  const int sibling = cpus_[cpu].sibling;
  if (cpus_[cpu].current >= 0 || (sibling >= 0 && cpus_[sibling].current >= 0)) return;
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
    threads_[number].cpu = cpu;
    cpus_[cpu].waiting.push_back(number);
    reschedule(other);
    reschedule(cpu);
    return;
  }
}

// A vCPU that runs the idle class alone takes what waits elsewhere (rebalance_domains counts it as idle).
void Kernel::relieve(int cpu) {
  if (cpus_[cpu].current < 0 || !is_free(cpu) || !pull(cpu, true, true)) return;
  put_back(cpu);
  reschedule(cpu);
}

}  // namespace berth::judge
