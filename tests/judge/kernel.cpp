// SPDX-License-Identifier: Apache-2.0
#include "tests/judge/kernel.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

namespace berth::judge {

namespace {

constexpr double kNiceZero = 1024;
constexpr double kIdleWeight = 3;   // WEIGHT_IDLEPRIO
constexpr double kLeastWeight = 2;  // MIN_SHARES
constexpr Time kQuotaPeriod = 100 * kMillisecond;
constexpr int kFirstBits = 10;  // of model::DelayHistogram
constexpr double kDone = 0.5;   // ns of work
constexpr double kFits = 1.25;  // fits_capacity

}  // namespace

std::vector<CpuPlace> shape(int sockets, int domains, int cores, int threads) {
  std::vector<CpuPlace> places;
  for (int socket = 0; socket < sockets; ++socket) {
    for (int domain = 0; domain < domains; ++domain) {
      for (int core = 0; core < cores; ++core) {
        for (int thread = 0; thread < threads; ++thread) {
          const int number = socket * domains + domain;
          places.push_back({.core = number * cores + core, .domain = number, .socket = socket});
        }
      }
    }
  }
  return places;
}

Kernel::Kernel(std::vector<CpuPlace> places, const Rules& rules, Speed speed, Done done, Timer timer)
    : places_(std::move(places)),
      rules_(rules),
      speed_(std::move(speed)),
      done_(std::move(done)),
      timer_(std::move(timer)),
      cpus_(places_.size()) {
  if (places_.empty() || places_.size() > kMostCpus) throw std::invalid_argument("number of vCPUs");
  const auto factor = static_cast<Time>(std::bit_width(std::min<std::size_t>(places_.size(), 8)));
  slice_ = static_cast<double>(rules.base_slice * factor);
  latency_ = static_cast<double>(rules.latency * factor);
  least_granularity_ = static_cast<double>(rules.least_granularity * factor);
  wakeup_granularity_ = static_cast<double>(rules.wakeup_granularity * factor);
  for (int cpu = 0; cpu < static_cast<int>(places_.size()); ++cpu) {
    hybrid_ = hybrid_ || places_[cpu].capacity != places_[0].capacity;
    const auto domain = static_cast<std::size_t>(places_[cpu].domain);
    if (by_domain_.size() <= domain) by_domain_.resize(domain + 1);
    by_domain_[domain].push_back(cpu);
    for (int other = 0; other < static_cast<int>(places_.size()); ++other) {
      if (other != cpu && places_[other].core == places_[cpu].core) cpus_[cpu].sibling = other;
    }
  }
  push(rules_.spread_period, Kind::period, -1);
  for (int cpu = 0; cpu < static_cast<int>(places_.size()); ++cpu) {
    const Time offset = rules_.tick * cpu / static_cast<Time>(places_.size());
    if (cpus_[cpu].sibling < 0 && by_domain_[places_[cpu].domain].size() > 1)
      push(rules_.tick + offset, Kind::balance, cpu);
  }
}

int Kernel::add_group(const Group& group) {
  groups_.push_back({.settings = group, .used = {}});
  const int number = static_cast<int>(groups_.size()) - 1;
  if (group.quota_cores) {
    groups_.back().left = *group.quota_cores * static_cast<double>(kQuotaPeriod);
    push(now_ + kQuotaPeriod, Kind::period, number);
  }
  return number;
}

int Kernel::add_thread(int group) {
  threads_.push_back({.group = group});
  return static_cast<int>(threads_.size()) - 1;
}

void Kernel::push(Time time, Kind kind, std::int64_t what, std::uint64_t generation) {
  events_.push({.time = time, .order = sequence_++, .kind = kind, .what = what, .generation = generation});
}

void Kernel::at(Time when, std::int64_t what) { push(std::max(when, now_), Kind::timer, what); }

double Kernel::weight_of(const Thread& thread) const {
  const GroupState& group = groups_[thread.group];
  const double weight = group.settings.idle ? kIdleWeight : group.settings.weight;
  return group.settings.per_thread ? weight : std::max(kLeastWeight, weight / std::max(1, group.runnable));
}

double Kernel::speed_now(int cpu) const {
  const int sibling = cpus_[cpu].sibling;
  return speed_(threads_[cpus_[cpu].current].group, cpu, sibling < 0 ? -1 : running(sibling)) *
         places_[cpu].capacity;
}

void Kernel::count_use(Thread& thread, double capacity) const {
  if (!hybrid_) return;
  thread.use = followed(thread.use, capacity, now_ - thread.use_at);
  thread.use_at = now_;
}

bool Kernel::fits(const Thread& thread, int cpu) const { return kFits * thread.use < places_[cpu].capacity; }

bool Kernel::may_run(int thread, int cpu) const {
  return groups_[threads_[thread].group].settings.mask.test(cpu);
}

bool Kernel::is_idle(int cpu) const {
  const Cpu& it = cpus_[cpu];
  return it.current < 0 && it.waiting.empty() && !it.taken;
}

// available_idle_cpu, sched_idle_cpu: real-time work counts among what runs there.
bool Kernel::is_free(int cpu) const {
  const Cpu& it = cpus_[cpu];
  if (it.taken) return false;
  if (it.current >= 0 && !idle_class(it.current)) return false;
  return std::all_of(it.waiting.begin(), it.waiting.end(), [this](int thread) { return idle_class(thread); });
}

double Kernel::mean_vruntime(const Cpu& cpu) const {
  double weights = 0;
  double sum = 0;
  // Relative to one of them: the differences are small, and the sums are not.
  const int first = cpu.current >= 0 ? cpu.current : cpu.waiting.front();
  const double base = threads_[first].vruntime;
  const auto add = [&](int number) {
    const Thread& thread = threads_[number];
    const double weight = weight_of(thread);
    weights += weight;
    sum += weight * (thread.vruntime - base);
  };
  if (cpu.current >= 0) add(cpu.current);
  for (const int number : cpu.waiting) add(number);
  return base + sum / weights;
}

// update_entity_lag: the mean less its own vruntime, within two slices or a tick.
double Kernel::lag_of(const Thread& thread, const Cpu& cpu) const {
  const double mean = cpu.current < 0 && cpu.waiting.empty() ? cpu.least_vruntime : mean_vruntime(cpu);
  const double limit = std::max(2 * slice_, static_cast<double>(rules_.tick)) * kNiceZero / weight_of(thread);
  return std::clamp(mean - thread.vruntime, -limit, limit);
}

void Kernel::count(int cpu) {
  Cpu& it = cpus_[cpu];
  if (it.current < 0) return;
  Thread& thread = threads_[it.current];
  const auto elapsed = static_cast<double>(now_ - thread.since);
  thread.since = now_;
  if (elapsed == 0) return;
  count_use(thread, places_[cpu].capacity);
  thread.left -= elapsed * it.speed;
  thread.vruntime += elapsed * kNiceZero / weight_of(thread);
  Used& used = groups_[thread.group].used;
  used.cpu_s += elapsed * 1e-9;
  used.work_s += elapsed * it.speed * 1e-9;
  double least = thread.vruntime;
  for (const int number : it.waiting) least = std::min(least, threads_[number].vruntime);
  it.least_vruntime = std::max(it.least_vruntime, least);
}

// update_curr: the progress of what runs there, and the end of its slice. True: others may have their turn.
// The kernel looks when a thread comes or goes, and at ticks. Between these a slice lasts longer.
bool Kernel::slice_ends(int cpu) {
  Cpu& it = cpus_[cpu];
  count(cpu);
  if (rules_.version == Version::cfs || it.current < 0) return false;
  Thread& thread = threads_[it.current];
  if (thread.vruntime < thread.deadline) return false;
  thread.deadline = thread.vruntime + slice_ * kNiceZero / weight_of(thread);
  return !it.waiting.empty();
}

void Kernel::start_clock(int cpu) {
  Cpu& it = cpus_[cpu];
  ++it.generation;
  if (it.current < 0) return;
  const double left = std::max(0.0, threads_[it.current].left) / it.speed;
  if (left > static_cast<double>(1'000 * kSecond)) return;
  push(now_ + static_cast<Time>(std::ceil(left)), Kind::work_ends, cpu, it.generation);
}

void Kernel::respeed(int cpu) {
  if (cpu < 0 || cpus_[cpu].current < 0) return;
  const double speed = speed_now(cpu);
  if (speed == cpus_[cpu].speed) return;
  count(cpu);
  cpus_[cpu].speed = speed;
  start_clock(cpu);
}

void Kernel::change_speeds() {
  for (int cpu = 0; cpu < static_cast<int>(cpus_.size()); ++cpu) respeed(cpu);
}

// The vruntime of a thread that comes to a run queue.
void Kernel::place(int number, int cpu) {
  Thread& thread = threads_[number];
  const Cpu& it = cpus_[cpu];
  const bool alone = it.current < 0 && it.waiting.empty();
  if (rules_.version == Version::cfs) {
    const double credit = idle_class(number) ? least_granularity_ : latency_ / 2;
    // `lag` is the distance from the least vruntime at the moment when the thread left.
    thread.vruntime = std::max(it.least_vruntime + thread.lag, it.least_vruntime - credit);
    return;
  }
  if (alone) {
    thread.vruntime = it.least_vruntime;
  } else {
    const double mean = mean_vruntime(it);
    double lag = thread.lag;
    if (lag != 0) {
      double weights = 0;
      if (it.current >= 0) weights += weight_of(threads_[it.current]);
      for (const int other : it.waiting) weights += weight_of(threads_[other]);
      lag *= (weights + weight_of(thread)) / weights;
    }
    thread.vruntime = mean - lag;
  }
  thread.deadline = thread.vruntime + slice_ * kNiceZero / weight_of(thread);
}

// The next thread that is to run: an index into `waiting`, or -1 for the current one, if there is any.
int Kernel::pick(const Cpu& cpu) const {
  const auto pickable = [this](int number) { return !groups_[threads_[number].group].throttled; };
  int best = -1;
  const int current = cpu.current >= 0 && pickable(cpu.current) ? cpu.current : -1;
  if (rules_.version == Version::cfs) {
    double least = current >= 0 ? threads_[current].vruntime : std::numeric_limits<double>::infinity();
    for (int i = 0; i < static_cast<int>(cpu.waiting.size()); ++i) {
      const Thread& thread = threads_[cpu.waiting[i]];
      if (!pickable(cpu.waiting[i]) || thread.vruntime >= least) continue;
      least = thread.vruntime;
      best = i;
    }
    return best;
  }
  if (cpu.current < 0 && cpu.waiting.empty()) return -1;
  const double mean = mean_vruntime(cpu);
  const auto eligible = [&](int number) { return threads_[number].vruntime <= mean + 1e-3; };
  const bool current_may = current >= 0 && eligible(current);
  if (current_may && threads_[current].vruntime < threads_[current].protected_until) return -1;
  double deadline = current_may ? threads_[current].deadline : std::numeric_limits<double>::infinity();
  for (int i = 0; i < static_cast<int>(cpu.waiting.size()); ++i) {
    const int number = cpu.waiting[i];
    if (!pickable(number) || !eligible(number) || threads_[number].deadline >= deadline) continue;
    deadline = threads_[number].deadline;
    best = i;
  }
  if (best >= 0 || current_may) return best;
  // Those that are throttled took the mean: the least that may run.
  double least = current >= 0 ? threads_[current].vruntime : std::numeric_limits<double>::infinity();
  for (int i = 0; i < static_cast<int>(cpu.waiting.size()); ++i) {
    if (!pickable(cpu.waiting[i]) || threads_[cpu.waiting[i]].vruntime >= least) continue;
    least = threads_[cpu.waiting[i]].vruntime;
    best = i;
  }
  return best;
}

// `thread` waits there.
bool Kernel::preempts(int thread, const Cpu& cpu) const {
  const bool idle = idle_class(thread);
  if (const bool current_idle = idle_class(cpu.current); current_idle != idle) return current_idle;
  if (rules_.version == Version::cfs) {
    return threads_[cpu.current].vruntime - threads_[thread].vruntime >
           wakeup_granularity_ * kNiceZero / weight_of(threads_[thread]);
  }
  const int picked = pick(cpu);
  return picked >= 0 && cpu.waiting[picked] == thread;
}

void Kernel::count_quota(int number) {
  GroupState& group = groups_[number];
  group.left -= static_cast<double>(now_ - group.counted) * group.running;
  group.counted = now_;
}

void Kernel::change_running(int number, int by) {
  GroupState& group = groups_[number];
  if (group.settings.quota_cores) count_quota(number);
  group.running += by;
  ++group.generation;
  if (!group.settings.quota_cores || group.running == 0) return;
  const double left = std::max(0.0, group.left) / group.running;
  push(now_ + static_cast<Time>(std::ceil(left)), Kind::quota_ends, number, group.generation);
}

void Kernel::set_current(Cpu& cpu, int number) const {
  cpu.current = number;
  cpu.use.decay(now_);
  cpu.use.weight = number >= 0 ? 1 : 0;
}

void Kernel::run(int cpu, int number) {
  Cpu& it = cpus_[cpu];
  Thread& thread = threads_[number];
  Used& used = groups_[thread.group].used;
  used.wait_s += static_cast<double>(now_ - thread.since) * 1e-9;
  ++used.switches;
  const int bucket =
      static_cast<int>(std::bit_width(static_cast<std::uint64_t>(now_ - thread.since))) - kFirstBits;
  ++used.delay[static_cast<std::size_t>(std::clamp(bucket, 0, static_cast<int>(used.delay.size()) - 1))];
  thread.state = State::running;
  thread.cpu = cpu;
  thread.since = now_;
  thread.began = now_;
  thread.protected_until = thread.deadline;  // set_protect_slice
  thread.left += static_cast<double>(rules_.switch_cost);
  set_current(it, number);
  change_running(thread.group, 1);
  count_use(thread, 0);
  it.speed = speed_now(cpu);
  start_clock(cpu);
  respeed(it.sibling);
}

void Kernel::put_back(int cpu) {
  Cpu& it = cpus_[cpu];
  count(cpu);
  const int number = it.current;
  set_current(it, -1);
  Thread& thread = threads_[number];
  thread.state = State::waiting;
  thread.stopped = now_;
  it.waiting.push_back(number);
  ++it.generation;
  change_running(thread.group, -1);
}

// Gives a vCPU that runs nothing to the next one, if there is any.
void Kernel::reschedule(int cpu) {
  Cpu& it = cpus_[cpu];
  if (it.taken) return;
  const auto any = [&] {
    return std::any_of(it.waiting.begin(), it.waiting.end(),
                       [this](int number) { return !groups_[threads_[number].group].throttled; });
  };
  while (any() || pull(cpu, Search::newly_idle)) {
    const int picked = pick(it);
    const int number = it.waiting[picked];
    it.waiting.erase(it.waiting.begin() + picked);
    if (Thread& thread = threads_[number]; thread.delayed) {
      // pick_next_entity: its turn has come, so it owes nothing (DELAY_ZERO), and leaves.
      thread.delayed = false;
      thread.lag = 0;
      may_run_now(number, false);
      if (it.waiting.empty()) it.least_vruntime = std::max(it.least_vruntime, thread.vruntime);
      continue;
    }
    run(cpu, number);
    want_tick(cpu);
    return;
  }
  ++it.generation;
  respeed(it.sibling);
}

void Kernel::enqueue(int number, int cpu) {
  Cpu& it = cpus_[cpu];
  const bool over = slice_ends(cpu);
  Thread& thread = threads_[number];
  if (thread.delayed) {
    // requeue_delayed_entity: it is still there, where it was, but has no claim for the time of its sleep.
    thread.delayed = false;
    if (lag_of(thread, it) > 0) {
      std::erase(it.waiting, number);
      thread.lag = 0;
      place(number, cpu);
      it.waiting.push_back(number);
    }
  } else {
    place(number, cpu);
    move_to(number, cpu);
    it.waiting.push_back(number);
    may_run_now(number, true);
  }
  if (groups_[thread.group].throttled) return;
  if (it.current < 0) {
    reschedule(cpu);
  } else if (over || preempts(number, it)) {
    // The kernel's way to the next pick counts for the one that leaves, so the idle class catches up
    // meanwhile.
    Thread& leaves = threads_[it.current];
    leaves.vruntime += static_cast<double>(rules_.switch_cost) * kNiceZero / weight_of(leaves);
    put_back(cpu);
    reschedule(cpu);
  } else {
    want_tick(cpu);
  }
}

void Kernel::wake(int number, Time work) {
  Thread& thread = threads_[number];
  if (thread.state != State::sleeping) throw std::logic_error("it does not sleep");
  thread.left = static_cast<double>(work);
  thread.state = State::waiting;
  thread.since = now_;
  count_use(thread, 0);
  // ttwu_runnable: one that is still in a queue stays there.
  const int cpu = thread.delayed ? thread.cpu : choose_cpu(number);
  ++groups_[thread.group].runnable;
  enqueue(number, cpu);
}

void Kernel::leave(int cpu) {
  Cpu& it = cpus_[cpu];
  const int number = it.current;
  Thread& thread = threads_[number];
  if (rules_.version == Version::cfs) {
    thread.lag = thread.vruntime - it.least_vruntime;
  } else {
    slice_ends(cpu);
    thread.lag = lag_of(thread, it);
    // dequeue_entity: one that had more than its share waits in its queue until the others have caught up.
    thread.delayed = thread.lag < 0;
  }
  if (thread.delayed) {
    it.waiting.push_back(number);
  } else if (it.waiting.empty()) {
    it.least_vruntime = std::max(it.least_vruntime, thread.vruntime);
  }
  set_current(it, -1);
  if (!thread.delayed) may_run_now(number, false);
  ++it.generation;
  thread.state = State::sleeping;
  thread.stopped = now_;
  change_running(thread.group, -1);
  --groups_[thread.group].runnable;
  reschedule(cpu);
}

void Kernel::want_tick(int cpu) {
  Cpu& it = cpus_[cpu];
  if (it.ticks || it.waiting.empty() || it.current < 0) return;
  it.ticks = true;
  // Ticks of the vCPUs are not at the same moment.
  const Time offset = rules_.tick * cpu / static_cast<Time>(cpus_.size());
  push(((now_ - offset) / rules_.tick + 1) * rules_.tick + offset, Kind::tick, cpu);
}

void Kernel::tick(int cpu) {
  Cpu& it = cpus_[cpu];
  it.ticks = false;
  if (it.current < 0 || it.waiting.empty()) return;
  bool over = slice_ends(cpu);
  const Thread& thread = threads_[it.current];
  if (rules_.version == Version::cfs) {
    double weights = weight_of(thread);
    double least = std::numeric_limits<double>::infinity();
    for (const int number : it.waiting) {
      weights += weight_of(threads_[number]);
      least = std::min(least, threads_[number].vruntime);
    }
    const auto runnable = static_cast<double>(it.waiting.size() + 1);
    const double period = std::max(latency_, runnable * least_granularity_);
    const double slice = std::max(period * weight_of(thread) / weights, least_granularity_);
    const auto ran = static_cast<double>(now_ - thread.began);
    over = ran > slice || (ran >= least_granularity_ && thread.vruntime - least > slice);
  }
  if (over) {
    put_back(cpu);
    reschedule(cpu);
  }
  // An idle vCPU takes what waits here (nohz_balancer_kick).
  for (int other = 0; other < static_cast<int>(cpus_.size()) && !it.waiting.empty(); ++other) {
    if (is_idle(other) && pull(other, Search::of_idle)) reschedule(other);
  }
  want_tick(cpu);
}

void Kernel::throttle(int number) {
  groups_[number].throttled = true;
  for (int cpu = 0; cpu < static_cast<int>(cpus_.size()); ++cpu) {
    if (running(cpu) != number) continue;
    put_back(cpu);
    reschedule(cpu);
  }
}

void Kernel::take(int cpu, Time length, std::int64_t what) {
  Cpu& it = cpus_[cpu];
  it.taken_until = std::max(it.taken_until, now_) + length;
  push(it.taken_until, Kind::taken_ends, what, static_cast<std::uint64_t>(cpu));
  if (std::exchange(it.taken, true) || it.current < 0) return;
  slice_ends(cpu);
  // put_prev_entity: the thread goes back to the tree, so the next pick compares it with the others, as
  // pick_eevdf protects only one that still runs.
  put_back(cpu);
  respeed(it.sibling);
}

void Kernel::give_back(int cpu, std::int64_t what) {
  waker_ = cpu;
  timer_(what);
  waker_ = -1;
  Cpu& it = cpus_[cpu];
  if (it.taken_until > now_) return;
  it.taken = false;
  reschedule(cpu);
}

void Kernel::finish(int cpu) {
  count(cpu);
  const int number = cpus_[cpu].current;
  Thread& thread = threads_[number];
  if (thread.left > kDone) {
    start_clock(cpu);
    return;
  }
  const auto more = done_(number);
  Thread& after = threads_[number];  // the callback may have added threads
  if (more) {
    after.left += static_cast<double>(*more);
    if (cpus_[cpu].current == number) start_clock(cpu);
  } else if (cpus_[cpu].current == number) {
    leave(cpu);
  } else {
    std::erase(cpus_[after.cpu].waiting, number);
    may_run_now(number, false);
    after.state = State::sleeping;
    --groups_[after.group].runnable;
  }
}

void Kernel::set_group(int number, const Group& settings) {
  GroupState& group = groups_[number];
  if (settings.quota_cores.has_value() != group.settings.quota_cores.has_value())
    throw std::invalid_argument("a quota comes with its group");
  for (int cpu = 0; cpu < static_cast<int>(cpus_.size()); ++cpu) {
    if (running(cpu) == number) count(cpu);
  }
  group.settings = settings;
  std::vector<int> moved;
  for (int cpu = 0; cpu < static_cast<int>(cpus_.size()); ++cpu) {
    if (settings.mask.test(cpu)) continue;
    if (running(cpu) == number) put_back(cpu);
    std::vector<int> gone;
    std::erase_if(cpus_[cpu].waiting, [&](int thread) {
      if (threads_[thread].group != number) return false;
      gone.push_back(thread);
      return true;
    });
    for (const int thread : gone) {
      may_run_now(thread, false);
      if (!std::exchange(threads_[thread].delayed, false)) moved.push_back(thread);
    }
  }
  for (const int thread : moved) enqueue(thread, choose_cpu(thread));
  for (int cpu = 0; cpu < static_cast<int>(cpus_.size()); ++cpu) {
    if (cpus_[cpu].current < 0) reschedule(cpu);
  }
}

void Kernel::handle(const Event& event) {
  const int number = static_cast<int>(event.what);
  switch (event.kind) {
    case Kind::work_ends:
      if (event.generation == cpus_[number].generation) finish(number);
      break;
    case Kind::tick:
      tick(number);
      break;
    case Kind::balance:
      rebalance(number);
      break;
    case Kind::taken_ends:
      give_back(static_cast<int>(event.generation), event.what);
      break;
    case Kind::timer:
      timer_(event.what);
      break;
    case Kind::quota_ends:
      if (event.generation != groups_[number].generation) break;
      count_quota(number);
      throttle(number);
      break;
    case Kind::period:
      if (number < 0) {
        for (int cpu = 0; cpu < static_cast<int>(cpus_.size()); ++cpu) {
          spread(cpu);
          relieve(cpu);
        }
        push(now_ + rules_.spread_period, Kind::period, -1);
        break;
      }
      count_quota(number);
      groups_[number].left = *groups_[number].settings.quota_cores * static_cast<double>(kQuotaPeriod);
      push(now_ + kQuotaPeriod, Kind::period, number);
      change_running(number, 0);
      if (!std::exchange(groups_[number].throttled, false)) break;
      for (int cpu = 0; cpu < static_cast<int>(cpus_.size()); ++cpu) {
        if (cpus_[cpu].waiting.empty()) continue;
        if (cpus_[cpu].current >= 0) put_back(cpu);
        reschedule(cpu);
      }
      break;
  }
}

void Kernel::run_until(Time end) {
  while (!events_.empty() && events_.top().time <= end) {
    const Event event = events_.top();
    events_.pop();
    now_ = event.time;
    handle(event);
  }
  now_ = end;
  for (int cpu = 0; cpu < static_cast<int>(cpus_.size()); ++cpu) count(cpu);
}

}  // namespace berth::judge
