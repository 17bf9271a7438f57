// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// One hook on the context switch: what a task used and how long it waited is the growth of the kernel's own
// counters since the task was last seen, credited to the cgroup it is in. Each CPU writes a table of its own,
// so nothing is atomic.
#include "ebpf/abi.h"
#include "ebpf/bpf/kernel.h"

// The kernel offers its tracing helpers to GPL programs only.
char LICENSE[] SEC("license") = "GPL";

const volatile __u32 table_rows = 1;    // of each CPU; a power of two
const volatile __u32 table_shift = 63;  // 64 - log2(table_rows)
const volatile int with_counters = 0; /* no bool: the skeleton would not be C++ */

// Every 256th run is timed.
#define SAMPLED_MASK 255

// What was already credited of a task.
struct seen {
  __u64 run_ns;
  __u64 delay_ns;
  __u64 dispatches;
};

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

struct event_set {
  __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, __u32);
} counter0 SEC(".maps"), counter1 SEC(".maps"), counter2 SEC(".maps"), counter3 SEC(".maps");

// The row of `id` on this CPU, taken where it had none; NULL where the table is too full.
static __always_inline struct berth_row* find_row(__u32 cpu, __u64 id, struct berth_cpu* own, __u32* number) {
  const __u32 base = cpu * table_rows;
  const __u32 home = (id * BERTH_HASH) >> table_shift;
  struct berth_row* vacant = NULL;
  __u32 vacant_number = 0;
  for (__u32 step = 0; step < BERTH_PROBES; step++) {
    const __u32 at = base + ((home + step) & (table_rows - 1));
    struct berth_row* row = bpf_map_lookup_elem(&rows, &at);
    if (!row) return NULL;
    const __u64 holder = row->id;
    if (holder == id) {
      *number = at;
      return row;
    }
    if (holder == BERTH_FREE || holder == BERTH_REMOVED) {
      if (!vacant) {
        vacant = row;
        vacant_number = at;
      }
      if (holder == BERTH_FREE) break;
    }
  }
  if (!vacant) {
    own->full++;
    return NULL;
  }
  // The reader looks only at rows with an id: all else is zero before it is set.
  if (with_counters) {
    struct berth_counts* count = bpf_map_lookup_elem(&counts, &vacant_number);
    if (!count) return NULL;
    __builtin_memset(count, 0, sizeof(*count));
  }
  vacant->touches = 0;
  vacant->dispatches = 0;
  vacant->run_ns = 0;
  vacant->delay_ns = 0;
  __builtin_memset(vacant->delay, 0, sizeof(vacant->delay));
  __sync_lock_test_and_set(&vacant->id, id);
  own->taken++;
  *number = vacant_number;
  return vacant;
}

static __always_inline __u32 bucket_of(__u64 delay_ns) {
  __u64 rest = delay_ns >> 10;
  __u32 bucket = 0;
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

static __always_inline void credit_task(struct task_struct* task, __u64 id, __u32 cpu,
                                        struct berth_cpu* own) {
  struct seen* seen = bpf_task_storage_get(&tasks, task, 0, 0);
  if (!seen) {
    own->untracked++;
    return;
  }
  __u32 number = 0;
  struct berth_row* row = find_row(cpu, id, own, &number);
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
    const __u32 bucket = bucket_of(waited_ns);
    if (bucket < BERTH_DELAY_BUCKETS) row->delay[bucket]++;
  }
  seen->run_ns = run_ns;
  seen->delay_ns = delay_ns;
  seen->dispatches = dispatches;
  row->touches++;
}

// `count` may be NULL: then nobody is credited, and the next one only with what comes from here on.
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

static __always_inline void credit_counters(__u64 id, __u32 cpu, struct berth_cpu* own) {
  __u32 number = 0;
  struct berth_row* row = find_row(cpu, id, own, &number);
  struct berth_counts* count = row ? bpf_map_lookup_elem(&counts, &number) : NULL;
  credit_counter(&counter0, 0, own, count);
  credit_counter(&counter1, 1, own, count);
  credit_counter(&counter2, 2, own, count);
  credit_counter(&counter3, 3, own, count);
  if (row) row->touches++;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct* prev, struct task_struct* next) {
  const __u32 cpu = bpf_get_smp_processor_id();
  struct berth_cpu* own = bpf_map_lookup_elem(&cpus, &cpu);
  if (!own) return 0;
  const bool timed = (own->runs++ & SAMPLED_MASK) == 0;
  const __u64 begin = timed ? bpf_ktime_get_ns() : 0;

  own->running = next->pid ? BERTH_RUNNING_TASK : BERTH_RUNNING_IDLE;
  const __u64 id = prev->cgroups->dfl_cgrp->kn->id;
  if (prev->pid) credit_task(prev, id, cpu, own);
  if (with_counters && next->cgroups->dfl_cgrp->kn->id != id) credit_counters(id, cpu, own);

  if (timed) {
    own->sampled++;
    own->sampled_ns += bpf_ktime_get_ns() - begin;
  }
  return 0;
}

// Never attached: run on a CPU before a reading, it credits what the task running there has used so far.
SEC("raw_tp/berth_flush")
int flush(void* unused) {
  const __u32 cpu = bpf_get_smp_processor_id();
  struct berth_cpu* own = bpf_map_lookup_elem(&cpus, &cpu);
  if (!own) return 0;
  struct task_struct* task = bpf_get_current_task_btf();
  const __u64 id = task->cgroups->dfl_cgrp->kn->id;
  if (task->pid) credit_task(task, id, cpu, own);
  if (with_counters) credit_counters(id, cpu, own);
  return 0;
}

// Storage is made where allocating is harmless, not on the switch, under the run queue's lock. This hook sees
// every task, the kernel's own workers too, before it first runs.
SEC("tp_btf/task_newtask")
int BPF_PROG(on_new_task, struct task_struct* task) {
  bpf_task_storage_get(&tasks, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
  return 0;
}

// Read once at the start: what the tasks that are already there have used until now is not credited.
SEC("iter/task")
int seed(struct bpf_iter__task* ctx) {
  struct task_struct* task = ctx->task;
  if (!task) return 0;
  struct seen* seen = bpf_task_storage_get(&tasks, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
  if (!seen) return 0;
  seen->run_ns = task->se.sum_exec_runtime;
  seen->delay_ns = task->sched_info.run_delay;
  seen->dispatches = task->sched_info.pcount;
  return 0;
}
