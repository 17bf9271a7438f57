// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// One hook on the context switch: what a task used and how long it waited is the growth of the kernel's own
// counters since the task was last seen, credited to the cgroup it is in. Each CPU writes rows of its own,
// so that no credit is atomic.
#include "ebpf/abi.h"
#include "ebpf/bpf/kernel.h"

// The kernel offers its tracing helpers to GPL programs only.
char LICENSE[] SEC("license") = "GPL";

const volatile __u32 place_shift = 31;  // 32 less log2 of the number of places
const volatile int with_counters = 0;   /* no bool: the skeleton would not be C++ */

// Every 256th run is timed.
#define SAMPLED_MASK 255

// The figures of a task that were already credited.
struct seen {
  __u64 run_ns;
  __u64 delay_ns;
  __u64 dispatches;
};

// Most tasks have a place here, found by their address without a call; it is the task's from its birth, or
// the start, until the kernel frees it.
struct place {
  __u64 task;  // its address; 0 where vacant
  struct seen seen;
};

// 2^32 divided by the golden ratio.
#define BERTH_HASH_32 0x9e3779b9U

// Mappable only so that it begins with a page: no place is on two cache lines then.
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct place);
} places SEC(".maps");

// The others, whose place another task had.
struct {
  __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, int);
  __type(value, struct seen);
} tasks SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct berth_row);
} rows SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct berth_counts);
} counts SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct berth_cpu);
} cpus SEC(".maps");

// Cgroups in whose rows all groups below them count, too.
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, BERTH_MOST_KEEPERS);
  __type(key, __u64);
  __type(value, __u8);
} keepers SEC(".maps");
__u32 keeper_count = 0;

// A program that runs after this one, on the same switch. A hook of its own would cost the kernel an indirect
// call.
struct {
  __uint(type, BPF_MAP_TYPE_PROG_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, __u32);
} after SEC(".maps");

struct event_set {
  __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, __u32);
} counter0 SEC(".maps"), counter1 SEC(".maps"), counter2 SEC(".maps"), counter3 SEC(".maps");

static __always_inline __u32 row_number(const struct berth_cpu* own, __u64 id, __u32 step) {
  return own->first_row + ((((__u32)((id * BERTH_HASH) >> own->row_shift)) + step) & own->row_mask);
}

// A row that is vacant, and not the one that was looked for.
#define VACANT (1L << 32)

// The number of the row of `id`; where it has none, VACANT and that of a row for it; else a negative one. Not
// static: the verifier then looks at it once, and not again at each call with all that the caller knows.
__noinline long probe_rows(struct berth_cpu* own, __u64 id) {
  long vacant_number = -1;
  if (!own) return -1;
  for (__u32 step = 0; step < BERTH_PROBES; step++) {
    const __u32 at = row_number(own, id, step);
    struct berth_row* row = bpf_map_lookup_elem(&rows, &at);
    if (!row) return -1;
    const __u64 holder = row->id;
    if (holder == id) return at;
    if (holder == BERTH_FREE || holder == BERTH_REMOVED) {
      if (vacant_number < 0) vacant_number = VACANT + at;
      if (holder == BERTH_FREE) break;
    }
  }
  return vacant_number;
}

// The id of the group above in whose row this one counts; 0 where it has a row of its own. Of a group that is
// nested beyond all measure, it is that of the last one looked at.
static __noinline __u64 keeper_of(struct cgroup* cgroup) {
  __u64 id = 0;
  for (__u32 level = 0; level < BERTH_KEEPER_LEVELS; level++) {
    struct cgroup_subsys_state* parent = cgroup->self.parent;
    if (!parent) return 0;
    cgroup = parent->cgroup;
    id = cgroup->kn->id;
    if (bpf_map_lookup_elem(&keepers, &id)) return id;
  }
  return id;
}

// The row of `id` where it is not the first that the hash names, taken where it had none; its number, or a
// negative one where the table is too full. A function of its own, so that most switches do not pay for it.
static __noinline long search_row(struct berth_cpu* own, struct cgroup* cgroup, __u64 id) {
  if (!own) return -1;
  long number = probe_rows(own, id);
  if (number >= 0 && number < VACANT) return number;
  const __u64 keeper = keeper_count ? keeper_of(cgroup) : 0;
  if (keeper) {
    id = keeper;
    number = probe_rows(own, id);
    if (number >= 0 && number < VACANT) return number;
  }
  // A CPU that came later has no table.
  if (number < 0) {
    own->full++;
    return -1;
  }
  const __u32 at = number - VACANT;
  // The reader looks only at rows with an id: all else is zero before it is set.
  if (with_counters) {
    struct berth_counts* count = bpf_map_lookup_elem(&counts, &at);
    if (!count) return -1;
    __builtin_memset(count, 0, sizeof(*count));
  }
  struct berth_row* row = bpf_map_lookup_elem(&rows, &at);
  if (!row) return -1;
  row->touches = 0;
  row->dispatches = 0;
  row->run_ns = 0;
  row->delay_ns = 0;
  __builtin_memset(row->delay, 0, sizeof(row->delay));
  __sync_lock_test_and_set(&row->id, id);
  own->taken++;
  return at;
}

// The row of the cgroup with this id on this CPU, taken where it had none; NULL where the table is too full.
static __always_inline struct berth_row* find_row(struct cgroup* cgroup, __u64 id, struct berth_cpu* own,
                                                  __u32* number) {
  *number = row_number(own, id, 0);
  struct berth_row* row = bpf_map_lookup_elem(&rows, number);
  if (row && row->id == id) return row;
  const long found = search_row(own, cgroup, id);
  if (found < 0) return NULL;
  *number = found;
  return bpf_map_lookup_elem(&rows, number);
}

static __always_inline __u32 bucket_of(__u64 delay_ns) {
  __u64 rest = delay_ns >> 10;
  __u32 bucket = 0;
  if (rest < 2) return rest;
  if (rest >> 32) return BERTH_DELAY_BUCKETS - 1;
  __u32 low = rest;
  if (low >> 16) bucket += 16, low >>= 16;
  if (low >> 8) bucket += 8, low >>= 8;
  if (low >> 4) bucket += 4, low >>= 4;
  if (low >> 2) bucket += 2, low >>= 2;
  if (low >> 1) bucket += 1, low >>= 1;
  bucket += low;
  return bucket < BERTH_DELAY_BUCKETS ? bucket : BERTH_DELAY_BUCKETS - 1;
}

// The verifier forbids calculations with a pointer to a task, but accepts its lower half as a number.
static __always_inline struct place* place_of(struct task_struct* task, __u32 shift) {
  const __u32 address = (__u32)(__u64)task;
  const __u32 at = (address * BERTH_HASH_32) >> shift;
  return bpf_map_lookup_elem(&places, &at);
}

static __always_inline struct seen* find_seen(struct task_struct* task, __u32 shift) {
  struct place* place = place_of(task, shift);
  if (place && place->task == (__u64)task) return &place->seen;
  return bpf_task_storage_get(&tasks, task, 0, 0);
}

// Zero for a task that was not known.
static __always_inline struct seen* make_seen(struct task_struct* task) {
  struct place* place = place_of(task, place_shift);
  if (place) {
    const __u64 holder = __sync_val_compare_and_swap(&place->task, 0, (__u64)task);
    if (holder == 0 || holder == (__u64)task) return &place->seen;
  }
  return bpf_task_storage_get(&tasks, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

static __always_inline void credit_task(struct task_struct* task, struct cgroup* cgroup, __u64 id,
                                        struct berth_cpu* own) {
  struct seen* seen = find_seen(task, own->place_shift);
  if (!seen) {
    own->untracked++;
    return;
  }
  __u32 number = 0;
  struct berth_row* row = find_row(cgroup, id, own, &number);
  if (!row) return;

  const __u64 run_ns = task->se.sum_exec_runtime;
  const __u64 delay_ns = task->sched_info.run_delay;
  const __u64 dispatches = task->sched_info.pcount;
  const __u64 waited_ns = delay_ns - seen->delay_ns;
  row->run_ns += run_ns - seen->run_ns;
  row->delay_ns += waited_ns;
  // A flush may have credited this dispatch already.
  if (dispatches != seen->dispatches) {
    row->dispatches += dispatches - seen->dispatches;
    __u32 bucket = bucket_of(waited_ns);
    barrier_var(bucket);  // else the compiler, which knows the limit, omits the test that the verifier needs
    if (bucket < BERTH_DELAY_BUCKETS) row->delay[bucket]++;
  }
  seen->run_ns = run_ns;
  seen->delay_ns = delay_ns;
  seen->dispatches = dispatches;
  row->touches++;
}

// `count` may be NULL: then nothing is credited, and the next task only with events from here on.
static __always_inline void credit_counter(void* events, __u32 which, struct berth_cpu* own,
                                           struct berth_counts* count) {
  const __u64 now = bpf_perf_event_read(events, BPF_F_CURRENT_CPU);
  // Errors are the last few values, which no counter reaches.
  if ((__s64)now < 0 && (__s64)now > -4096) {
    own->counter_errors++;
    own->has_last &= ~(1U << which);
    return;
  }
  if (count && (own->has_last & (1U << which))) count->count[which] += now - own->last[which];
  own->last[which] = now;
  own->has_last |= 1U << which;
}

static __always_inline void credit_counters(struct cgroup* cgroup, __u64 id, struct berth_cpu* own) {
  __u32 number = 0;
  struct berth_row* row = find_row(cgroup, id, own, &number);
  struct berth_counts* count = row ? bpf_map_lookup_elem(&counts, &number) : NULL;
  credit_counter(&counter0, 0, own, count);
  credit_counter(&counter1, 1, own, count);
  credit_counter(&counter2, 2, own, count);
  credit_counter(&counter3, 3, own, count);
  if (row) row->touches++;
}

// As the kernel's is_idle_task(). The flags lie beside what the scheduler has just looked at; the pid does
// not.
static __always_inline bool is_idle(const struct task_struct* task) { return task->flags & PF_IDLE; }

static __always_inline void switched(struct task_struct* prev, struct task_struct* next, bool counted) {
  const __u32 cpu = bpf_get_smp_processor_id();
  struct berth_cpu* own = bpf_map_lookup_elem(&cpus, &cpu);
  if (!own) return;
  const bool timed = (own->runs++ & SAMPLED_MASK) == 0;
  const __u64 begin = timed ? bpf_ktime_get_ns() : 0;

  own->running = is_idle(next) ? BERTH_RUNNING_IDLE : BERTH_RUNNING_TASK;
  struct cgroup* cgroup = prev->cgroups->dfl_cgrp;
  const __u64 id = cgroup->kn->id;
  if (!is_idle(prev)) credit_task(prev, cgroup, id, own);
  if (counted && next->cgroups->dfl_cgrp->kn->id != id) credit_counters(cgroup, id, own);

  if (timed) {
    own->sampled++;
    own->sampled_ns += bpf_ktime_get_ns() - begin;
  }
}

// One of the two is loaded: a constant is a load on each switch, too.
SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct* prev, struct task_struct* next) {
  switched(prev, next, false);
  bpf_tail_call_static(ctx, &after, 0);
  return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch_counted, bool preempt, struct task_struct* prev, struct task_struct* next) {
  switched(prev, next, true);
  bpf_tail_call_static(ctx, &after, 0);
  return 0;
}

// Never attached: run on a CPU before a reading, it credits what the task running there has used so far.
SEC("raw_tp/berth_flush")
int flush(void* unused) {
  const __u32 cpu = bpf_get_smp_processor_id();
  struct berth_cpu* own = bpf_map_lookup_elem(&cpus, &cpu);
  if (!own) return 0;
  struct task_struct* task = bpf_get_current_task_btf();
  struct cgroup* cgroup = task->cgroups->dfl_cgrp;
  const __u64 id = cgroup->kn->id;
  if (!is_idle(task)) credit_task(task, cgroup, id, own);
  if (with_counters) credit_counters(cgroup, id, own);
  return 0;
}

// Places are taken and storage is made where that is harmless, not on the switch, under the run queue's lock.
// This hook sees every task, the kernel's own workers too, before it first runs.
SEC("tp_btf/task_newtask")
int BPF_PROG(on_new_task, struct task_struct* task) {
  struct seen* seen = make_seen(task);
  if (seen) __builtin_memset(seen, 0, sizeof(*seen));
  return 0;
}

// After the task's last switch, and before its address is another's.
SEC("tp_btf/sched_process_free")
int BPF_PROG(on_free_task, struct task_struct* task) {
  struct place* place = place_of(task, place_shift);
  if (place && place->task == (__u64)task) place->task = 0;
  return 0;
}

// Read once at the start: what the tasks that are already there have used until now is not credited.
SEC("iter/task")
int seed(struct bpf_iter__task* ctx) {
  struct task_struct* task = ctx->task;
  if (!task) return 0;
  struct seen* seen = make_seen(task);
  if (!seen) return 0;
  seen->run_ns = task->se.sum_exec_runtime;
  seen->delay_ns = task->sched_info.run_delay;
  seen->dispatches = task->sched_info.pcount;
  return 0;
}
