// SPDX-License-Identifier: Apache-2.0
// The scheduler of Linux for fair tasks, event by event: run queues, slices, preemption, the choice of a vCPU
// at a wake-up, balancing, the idle class, masks and quotas. Time is in nanoseconds; work is in nanoseconds
// of a vCPU whose core and cache a thread has for itself.
//
// Each function follows one of the kernel's source, in kernel/sched/fair.c:
//
// | here | Linux 6.1 (CFS) | Linux 6.12 (EEVDF) |
// |---|---|---|
// | pick() | pick_next_entity: least vruntime | pick_eevdf: earliest deadline of those that are eligible |
// | place() | place_entity: GENTLE_FAIR_SLEEPERS | place_entity: PLACE_LAG, DELAY_DEQUEUE, DELAY_ZERO |
// | preempts() | check_preempt_wakeup: wakeup_gran | check_preempt_wakeup_fair: RUN_TO_PARITY |
// | tick() | check_preempt_tick: sched_slice, least granularity | update_deadline |
// | choose_cpu() | wake_affine, select_idle_sibling: previous vCPU, idle core, idle vCPU | the same |
// | pull() | newidle_balance, task_hot | the same, and NI_RANDOM (6.12.65, 6.18.5) |
// | choose_by_capacity() | select_idle_capacity | the same |
//
// In both, rebalance() follows load_balance (find_busiest_group, calculate_imbalance, detach_tasks), and Load
// follows ___update_load_avg.
//
// Some things are simpler than in Linux. The weight of a group is divided evenly among its runnable threads,
// as calc_group_shares does in the long run. Only the real-time work of take() is a waker somewhere: others
// are on the previous vCPU of the thread that they wake, so wake_affine has no choice, and their search for
// an idle vCPU looks at the whole cache. vCPUs that run something balance their loads within a cache, and
// only if their cores have one thread: the rule was compared with a kernel there alone. On a hybrid processor
// a thread's use is util_avg alone, without util_est.
#pragma once

#include "model/cgroup_counters.h"

#include <array>
#include <bitset>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <random>
#include <vector>

namespace berth::judge {

using Time = std::int64_t;
inline constexpr Time kMicrosecond = 1'000;
inline constexpr Time kMillisecond = 1'000'000;
inline constexpr Time kSecond = 1'000'000'000;

inline constexpr int kMostCpus = 256;
using CpuMask = std::bitset<kMostCpus>;

// A vCPU's place; each is a number from 0 on.
struct CpuPlace {
  int core = 0;
  int domain = 0;  // the last-level cache
  int socket = 0;
  double capacity = 1;  // of the core, as a share of the fastest core's
};
// Sockets of so many domains of so many cores of so many threads. Siblings have adjacent numbers.
std::vector<CpuPlace> shape(int sockets, int domains, int cores, int threads);

enum class Version { cfs, eevdf };

struct Rules {
  Version version = Version::eevdf;
  Time tick = 4 * kMillisecond;  // CONFIG_HZ=250
  // sysctl_sched_base_slice and the others are multiplied by 1 + log2 of the vCPUs, at most 8
  // (update_sysctl).
  Time base_slice = 700 * kMicrosecond;         // EEVDF; 750 before 6.15
  Time latency = 6 * kMillisecond;              // CFS
  Time least_granularity = 750 * kMicrosecond;  // CFS
  Time wakeup_granularity = 1 * kMillisecond;   // CFS
  Time migration_cost = 500 * kMicrosecond;     // a thread that ran so recently stays, if it can
  // Free: no source of the kernel says them. The first is of each switch to another thread; the second is the
  // time after which a core that runs two threads gives one to an idle core (need_active_balance); the
  // third is Contention's.
  Time switch_cost = 2 * kMicrosecond;
  Time spread_period = 20 * kMillisecond;
  Time cache_memory = 10 * kMillisecond;
};

// A cgroup, or the threads of one program.
struct Group {
  double weight = 1024;  // of the group, or of each thread
  bool per_thread = false;
  bool idle = false;                  // cpu.idle, or SCHED_IDLE
  CpuMask mask;                       // where it may run
  std::optional<double> quota_cores;  // cpu.max, of a period of 100 ms

  friend bool operator==(const Group&, const Group&) = default;
};

// Figures of a group since the start.
struct Used {
  double cpu_s = 0;   // on a vCPU
  double work_s = 0;  // progress
  double wait_s = 0;  // of threads that could run and had no vCPU
  std::uint64_t switches = 0;
  model::DelayHistogram delay{};  // as ebpf/bpf/switch.bpf.c counts waits
};

// A newly idle vCPU looks for waiting threads of others as often as it found some of late
// (sched_balance_newidle with NI_RANDOM, update_newidle_stats; from Linux 6.12.65 and 6.18.5 on).
struct NewIdle {
  unsigned calls = 512;
  unsigned successes = 256;
  unsigned ratio = 512;  // of 1024
  // `dice` has 1024 sides. A search that is left out counts as one in vain.
  bool looks(unsigned dice);
  // After a search. A success counts for those that were left out.
  void found(bool any);

 private:
  void count(unsigned success);
};

class Kernel {
 public:
  // The speed of `group` on `cpu` now, as a share of its speed alone, capacity aside. `sibling`: the group
  // that runs on the other thread of the core; -1: none.
  using Speed = std::function<double(int group, int cpu, int sibling)>;
  // A thread has done its work: more work, or nothing, then it sleeps.
  using Done = std::function<std::optional<Time>(int thread)>;
  using Timer = std::function<void(std::int64_t what)>;

  Kernel(std::vector<CpuPlace> places, const Rules& rules, Speed speed, Done done, Timer timer);

  int add_group(const Group& group);
  int add_thread(int group);
  const std::vector<CpuPlace>& places() const { return places_; }
  Time now() const { return now_; }

  // Real-time work takes the vCPU from what runs there, for so long, and calls Timer with `what` at its end.
  // It is the waker of the threads that Timer wakes then. Work that comes meanwhile follows it.
  void take(int cpu, Time length, std::int64_t what);
  // A sleeping thread gets work and wakes up.
  void wake(int thread, Time work);
  bool sleeps(int thread) const { return threads_[thread].state == State::sleeping; }
  int group_of(int thread) const { return threads_[thread].group; }
  // Calls Timer with `what` then.
  void at(Time when, std::int64_t what);
  void set_group(int group, const Group& settings);
  const Group& group(int group) const { return groups_[group].settings; }
  // Speeds have changed for another reason than what runs on a core.
  void change_speeds();
  void run_until(Time end);

  const Used& used(int group) const { return groups_[group].used; }
  // The group that runs there; -1: none.
  int running(int cpu) const { return cpus_[cpu].current < 0 ? -1 : threads_[cpus_[cpu].current].group; }
  std::uint64_t events() const { return sequence_; }

 private:
  enum class State { sleeping, waiting, running };
  // A mean of the last moments, as util_avg and load_avg, after it has followed `toward` for so long.
  static double followed(double mean, double toward, Time passed);
  // The weight of what could run, of the last moments most.
  struct Load {
    double value = 0;
    double weight = 0;  // of what can run now
    Time since = 0;
    void decay(Time now);
  };
  struct Thread {
    int group = 0;
    State state = State::sleeping;
    int cpu = -1;     // the last one
    double left = 0;  // work
    double vruntime = 0;
    double lag = 0;        // EEVDF: kept while it sleeps; CFS: unused
    bool delayed = false;  // EEVDF: it sleeps, and is in its queue all the same (DELAY_DEQUEUE)
    double deadline = 0;
    double protected_until = 0;  // EEVDF: a vruntime (RUN_TO_PARITY)
    Time since = 0;              // waiting or running, as counted so far
    Time began = 0;              // of this stretch on the vCPU
    Time stopped = 0;            // when it last ran
    double use = 0;              // util_avg, as a share of the fastest core; only where capacities differ
    Time use_at = 0;
    Load load{};
  };
  struct Balance {
    Time interval = 0;  // while its vCPU is busy, 16 times that
    int failed = 0;     // so many times since it last took a thread
  };
  struct Cpu {
    int current = -1;
    std::vector<int> waiting;
    double least_vruntime = 0;
    double speed = 0;              // of the current one
    std::uint64_t generation = 0;  // of its next end of work
    bool ticks = false;            // a tick is due
    Time taken_until = 0;          // by real-time work
    bool taken = false;
    int sibling = -1;
    Load load;  // of the threads that last ran there
    Load use;   // util_avg; its weight is 1 while a thread runs
    Balance balance;
    std::array<NewIdle, 2> newly_idle{};  // of its cache, and of the host
  };
  struct GroupState {
    Group settings;
    Used used;
    int runnable = 0;
    bool throttled = false;
    double left = 0;  // of the quota, ns
    int running = 0;
    Time counted = 0;
    std::uint64_t generation = 0;  // of the end of the quota
  };
  enum class Kind { work_ends, tick, timer, quota_ends, period, balance, taken_ends };
  enum class Search { newly_idle, of_idle, fair_for_idle_class };
  struct Event {
    Time time;
    std::uint64_t order;
    Kind kind;
    std::int64_t what;
    std::uint64_t generation;
    bool operator>(const Event& other) const {
      return time != other.time ? time > other.time : order > other.order;
    }
  };

  void push(Time time, Kind kind, std::int64_t what, std::uint64_t generation = 0);
  void handle(const Event& event);
  double weight_of(const Thread& thread) const;
  double speed_now(int cpu) const;  // of what runs there
  void count_use(Thread& thread,
                 double capacity) const;  // of the core that it ran on since the last count; 0: none
  bool fits(const Thread& thread, int cpu) const;
  bool idle_class(int thread) const { return groups_[threads_[thread].group].settings.idle; }
  bool may_run(int thread, int cpu) const;
  bool is_idle(int cpu) const;
  bool is_free(int cpu) const;  // idle, or runs the idle class alone
  double mean_vruntime(const Cpu& cpu) const;
  double lag_of(const Thread& thread, const Cpu& cpu) const;
  void count(int cpu);  // the progress of what runs there, up to now
  bool slice_ends(int cpu);
  void start_clock(int cpu);  // of the next end of its work
  void respeed(int cpu);
  void place(int thread, int cpu);
  int pick(const Cpu& cpu) const;  // an index into waiting; -1: the current one stays
  bool preempts(int thread, const Cpu& cpu) const;
  void reschedule(int cpu);
  void set_current(Cpu& cpu, int thread) const;  // -1: it runs none
  void run(int cpu, int thread);
  void put_back(int cpu);  // the current one waits
  int wake_affine(int thread, int prev);
  int idle_scan(int domain);
  int choose_cpu(int thread);
  int choose_first_cpu(int thread) const;
  int choose_by_capacity(int thread, int target) const;
  void enqueue(int thread, int cpu);
  void leave(int cpu);  // the current one sleeps
  void tick(int cpu);
  bool pull(int cpu, Search search);
  void queue_changed(int cpu);  // its load
  void may_run_now(int thread, bool may);
  void move_to(int thread, int cpu);
  void rebalance(int cpu);
  void spread(int cpu);
  void relieve(int cpu);
  void want_tick(int cpu);
  void finish(int cpu);
  void count_quota(int group);
  void change_running(int group, int by);
  void throttle(int group);
  void give_back(int cpu, std::int64_t what);

  std::vector<CpuPlace> places_;
  Rules rules_;
  double slice_ = 0;
  double latency_ = 0;
  double least_granularity_ = 0;
  double wakeup_granularity_ = 0;
  Speed speed_;
  Done done_;
  Timer timer_;
  Time now_ = 0;
  std::uint64_t sequence_ = 0;
  int waker_ = -1;         // a vCPU
  std::minstd_rand dice_;  // sched_rng
  std::vector<Cpu> cpus_;
  std::vector<std::vector<int>> by_domain_;
  bool hybrid_ = false;  // capacities differ
  std::vector<GroupState> groups_;
  std::vector<Thread> threads_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

}  // namespace berth::judge
