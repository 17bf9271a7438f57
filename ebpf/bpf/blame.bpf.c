// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Who ran on a vCPU while a thread waited for it. The hook on the context switch writes down who ran until
// when. As soon as a thread of a cgroup that somebody asks about gets the vCPU, its wait is divided over
// them. All times are of the run queue's clock, as the kernel's own run_delay is.
#include "ebpf/blame_abi.h"
#include "ebpf/bpf/kernel.h"

// The kernel offers its tracing helpers to GPL programs only.
char LICENSE[] SEC("license") = "GPL";

// Set by the reader. Levels of the cgroups that are asked about, a bit each; another number with each change.
__u64 asked_levels = 0;
__u64 asked_generation = 0;

__u32 culprit_count = 0;
// A culprit was beyond the limit of a cgroup above. The reader forgets them all, and takes this back.
__u32 crowded = 0;

// Every 256th run is timed.
#define SAMPLED_MASK 255
// include/linux/sched.h: TASK_ON_RQ_MIGRATING
#define MIGRATING 2

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct berth_blame_cpu);
} cpus SEC(".maps");

// Cgroups that are asked about, and the numbers of the questions, from 1.
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, BERTH_MOST_ASKED);
  __type(key, __u64);
  __type(value, __u32);
} asked SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, BERTH_THREADS);
  __type(key, __u32);
  __type(value, struct berth_thread);
} threads SEC(".maps");

// The hashes have all their memory from the start: nothing is allocated under the run queue's lock.
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, BERTH_MOST_BLAMED);
  __type(key, struct berth_blamed_key);
  __type(value, __u64);
} blamed SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, BERTH_MOST_CULPRITS);
  __type(key, __u64);
  __type(value, struct berth_culprit);
} culprits SEC(".maps");

// Where a culprit is made. Its vCPU's alone.
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct berth_culprit);
} scratch SEC(".maps");

// Reads of a cgroup that may be gone: by then they give what is there now, and never a fault.
static __always_inline __u64 read_word(__u64 address) {
  __u64 word = 0;
  bpf_probe_read_kernel(&word, sizeof(word), (const void*)address);
  return word;
}
static __always_inline __u64 node_of(__u64 group) {
  return read_word(group + bpf_core_field_offset(struct cgroup, kn));
}
static __always_inline __u64 id_of(__u64 group) {
  return read_word(node_of(group) + bpf_core_field_offset(struct kernfs_node, id));
}
static __always_inline __u64 above(__u64 group, __u32 level) {
  return read_word(group + bpf_core_field_offset(struct cgroup, ancestors) + 8ULL * level);
}
static __always_inline __u32 level_of(__u64 group) {
  return (__u32)read_word(group + bpf_core_field_offset(struct cgroup, level));
}

// Adds the culprit, whose address is `group`. False where there is no room.
static __noinline bool add_culprit(__u64 id, __u64 group, __u32 level) {
  if (culprit_count >= BERTH_MOST_CULPRITS) return false;
  const __u32 first = 0;
  struct berth_culprit* made = bpf_map_lookup_elem(&scratch, &first);
  if (!made) return false;
  made->level = level;
  made->below = 0;
  __builtin_memset(made->ids, 0, sizeof(made->ids));
  for (__u32 at = 0; at < BERTH_CULPRIT_LEVELS; at++) {
    if (at >= level) break;
    const bool last = at == BERTH_CULPRIT_LEVELS - 1;
    made->ids[at] = last ? id : id_of(above(group, at + 1));
  }
  for (__u32 at = 0; at < BERTH_CULPRIT_NAMES; at++) {
    made->names[at][0] = 0;
    if (at >= level) continue;
    const bool last = at == BERTH_CULPRIT_NAMES - 1;
    const __u64 node = node_of(last ? group : above(group, at + 1));
    const __u64 name = read_word(node + bpf_core_field_offset(struct kernfs_node, name));
    bpf_probe_read_kernel_str(made->names[at], BERTH_CULPRIT_NAME, (const void*)name);
  }
  if (bpf_map_update_elem(&culprits, &id, made, BPF_NOEXIST) == 0) __sync_fetch_and_add(&culprit_count, 1);
  return true;
}

// The culprit of this level above, made where there is none.
static __always_inline struct berth_culprit* account(__u64 group, __u32 level, __u64* id) {
  const __u64 at = above(group, level);
  *id = id_of(at);
  struct berth_culprit* found = bpf_map_lookup_elem(&culprits, id);
  if (found) return found;
  if (!add_culprit(*id, at, level)) return NULL;
  return bpf_map_lookup_elem(&culprits, id);
}

// The id under which the waits for a cgroup that is no culprit yet are counted: its own, or that of one above
// with too many culprits below; 0 where there is no room, or the cgroup is gone.
__noinline __u64 name_culprit(__u64 id, __u64 group) {
  if (!group || id_of(group) != id) return 0;
  const __u32 level = level_of(group);
  if (level > 256) return 0;
  if (level < 2) return add_culprit(id, group, level) ? id : 0;
  __u64 first_id = 0;
  struct berth_culprit* first = account(group, 1, &first_id);
  if (!first) return 0;
  if (first->below >= BERTH_CULPRITS_BELOW_1) {
    crowded = 1;
    return first_id;
  }
  if (level > 2) {
    __u64 second_id = 0;
    struct berth_culprit* second = account(group, 2, &second_id);
    if (!second) return first_id;
    if (second->below >= BERTH_CULPRITS_BELOW_2) {
      crowded = 1;
      return second_id;
    }
    __sync_fetch_and_add(&second->below, 1);
  }
  __sync_fetch_and_add(&first->below, 1);
  return add_culprit(id, group, level) ? id : first_id;
}

static __always_inline bool add_blame(const struct berth_blamed_key* key, __u64 ns) {
  __u64* sum = bpf_map_lookup_elem(&blamed, key);
  if (sum) {
    __sync_fetch_and_add(sum, ns);
    return true;
  }
  if (bpf_map_update_elem(&blamed, key, &ns, BPF_NOEXIST) == 0) return true;
  sum = bpf_map_lookup_elem(&blamed, key);  // another vCPU was faster
  if (sum) __sync_fetch_and_add(sum, ns);
  return sum;
}

// Returns 1 where a name had to be found. Without leave to do so, and without room, the culprit is unknown.
__noinline int blame(__u64 id, __u64 by, __u64 group, __u64 ns, int may_name) {
  struct berth_blamed_key key = {id, by};
  __u64* sum = bpf_map_lookup_elem(&blamed, &key);
  int named = 0;
  if (sum) {
    __sync_fetch_and_add(sum, ns);
    return 0;
  }
  if (by < BERTH_BY_UNKNOWN && !bpf_map_lookup_elem(&culprits, &by)) {
    key.by = may_name ? name_culprit(by, group) : 0;
    named = may_name;
    if (!key.by) key.by = BERTH_BY_UNKNOWN;
  }
  if (!add_blame(&key, ns) && key.by != BERTH_BY_UNKNOWN) {
    key.by = BERTH_BY_UNKNOWN;
    add_blame(&key, ns);
  }
  return named;
}

// Divides a wait on the vCPU of `cpu`, whose run queue is locked.
__noinline int blame_wait(struct berth_blame_cpu* cpu, __u64 id, __u32 question, struct berth_wait* wait) {
  if (!cpu || !wait) return 0;
  __u64 by_interrupts = 0;
  const __u64 unknown = berth_divide(cpu, wait, &by_interrupts);
  const __u64 all = wait->end_ns - wait->begin_ns;
  const __u64 by_quota = berth_overlap(wait->begin_ns, wait->end_ns, wait->hole_ns, wait->hole_end_ns);
  int names_left = BERTH_NEW_IN_WAIT;
  for (__u32 i = 0; i < BERTH_SUMS; i++) {
    const struct berth_sum* sum = &cpu->sum[i];
    if (sum->ns) names_left -= blame(id, sum->by, sum->group, sum->ns, names_left > 0);
  }
  if (by_interrupts) blame(id, BERTH_BY_INTERRUPTS, 0, by_interrupts, 0);
  if (by_quota) blame(id, BERTH_BY_QUOTA, 0, by_quota, 0);
  if (unknown) blame(id, BERTH_BY_UNKNOWN, 0, unknown, 0);
  if (question <= BERTH_MOST_ASKED) cpu->waited_ns[question] += all - by_quota;
  return 0;
}

// The id of the outermost cgroup that is asked about, of this one and those above; 0 where there is none.
static __noinline __u64 look_up(struct cgroup* cgroup) {
  __u64 group = (__u64)cgroup;
  const __u32 level = cgroup->level;
  const __u64 levels = asked_levels;
  for (__u32 at = 1; at < 64; at++) {
    if (at > level || !(levels >> at)) break;
    if (!(levels & (1ULL << at))) continue;
    const __u64 id = id_of(above(group, at));
    if (bpf_map_lookup_elem(&asked, &id)) return id;
  }
  return 0;
}

// The same, as the vCPU remembers it.
static __always_inline __u64 asked_about(struct berth_blame_cpu* own, struct cgroup* cgroup, __u64 id) {
  if (own->generation != asked_generation) {
    own->generation = asked_generation;
    __builtin_memset(own->known, 0, sizeof(own->known));
  }
  struct berth_known* known = &own->known[berth_place(id, 60) & (BERTH_KNOWN - 1)];
  if (known->id != id) {
    known->asked = look_up(cgroup);
    known->id = id;
  }
  return known->asked;
}

static __always_inline struct berth_thread* thread_of(__u32 pid) {
  const __u32 at = berth_place(pid, BERTH_THREADS_SHIFT);
  return bpf_map_lookup_elem(&threads, &at);
}

// How long the task's cgroup was throttled on its vCPU, all in all.
static __always_inline __u64 throttled_of(struct task_struct* task, bool* now) {
  *now = false;
  struct cfs_rq* queue = task->se.cfs_rq;
  if (!bpf_core_field_exists(queue->throttled_clock_pelt_time)) return 0;
  *now = queue->throttle_count > 0;
  if (bpf_core_field_exists(queue->throttled_clock_self_time)) return queue->throttled_clock_self_time;
  return queue->throttled_clock_pelt_time;
}

// A thread that is asked about leaves the vCPU.
static __noinline void leaves(struct berth_blame_cpu* own, struct task_struct* prev, bool runnable,
                              __u64 now) {
  struct berth_thread* thread = thread_of(prev->pid);
  if (!thread || thread->pid != (__u32)prev->pid) return;
  thread->preempted = runnable;
  thread->runs = prev->sched_info.pcount;
  if (!runnable) return;
  bool throttled = false;
  thread->throttled_ns = throttled_of(prev, &throttled);
  if (throttled) berth_begin_throttling(own, prev->cgroups->dfl_cgrp->kn->id, thread->throttled_ns, now);
}

// A thread that is asked about gets the vCPU.
static __noinline void comes(struct berth_blame_cpu* own, struct task_struct* next, __u64 id, __u64 group_id,
                             __u64 now) {
  const __u64 queued = next->sched_info.last_queued;
  const __u64 waited = queued && now > queued ? now - queued : 0;
  struct berth_thread* thread = thread_of(next->pid);
  if (!thread) return;
  const bool followed = thread->pid == (__u32)next->pid;
  const __u64 before = followed && thread->preempted ? thread->throttled_ns : ~0ULL;
  thread->pid = next->pid;
  thread->preempted = 0;
  thread->run_delay_ns = next->sched_info.run_delay + waited;
  if (waited < BERTH_LEAST_WAIT_NS) return;
  const __u32* question = bpf_map_lookup_elem(&asked, &id);
  if (!question) return;
  struct berth_wait wait = {queued, now, 0, 0};
  bool throttled = false;
  berth_find_hole(own, group_id, throttled_of(next, &throttled), before, &wait);
  blame_wait(own, id, *question, &wait);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct* prev, struct task_struct* next,
             unsigned int state) {
  const struct rq* queue = next->se.cfs_rq->rq;
  const __u32 cpu = queue->cpu;
  struct berth_blame_cpu* own = bpf_map_lookup_elem(&cpus, &cpu);
  if (!own) return 0;
  const __u64 now = queue->clock;
  const bool timed = (own->runs++ & SAMPLED_MASK) == 0;
  const __u64 begin = timed ? bpf_ktime_get_ns() : 0;

  own->interrupt_depth = 0;  // no interrupt lasts over a switch, if one was seen to begin and not to end
  berth_end_slice(own, now);
  if (own->asked) leaves(own, prev, preempt || state == 0, now);
  own->asked = 0;
  own->group = 0;
  const unsigned int flags = next->flags;
  if (flags & PF_IDLE) {
    own->by = BERTH_BY_IDLE;
  } else if (flags & PF_KTHREAD) {
    own->by = BERTH_BY_KERNEL;
  } else {
    struct cgroup* cgroup = next->cgroups->dfl_cgrp;
    const __u64 id = cgroup->kn->id;
    own->by = id;
    own->group = (__u64)cgroup;
    const __u64 about = asked_about(own, cgroup, id);
    if (about) {
      own->asked = 1;
      comes(own, next, about, id, now);
    }
  }
  if (timed) {
    own->sampled++;
    own->sampled_ns += bpf_ktime_get_ns() - begin;
  }
  return 0;
}

// A thread that waits is given to another vCPU. The kernel holds the lock of the run queue that it leaves,
// and has just added the wait there to run_delay.
SEC("tp_btf/sched_migrate_task")
int BPF_PROG(on_migrate, struct task_struct* task, int to) {
  if (task->on_rq != MIGRATING) return 0;
  struct cgroup* cgroup = task->cgroups->dfl_cgrp;
  const __u64 group_id = cgroup->kn->id;
  const __u32 here = bpf_get_smp_processor_id();
  struct berth_blame_cpu* own = bpf_map_lookup_elem(&cpus, &here);
  if (!own) return 0;
  const __u64 about = asked_about(own, cgroup, group_id);
  if (!about) return 0;
  struct berth_thread* thread = thread_of(task->pid);
  if (!thread || thread->pid != (__u32)task->pid) return 0;
  // It ran meanwhile without being asked about, so older waits would be taken for this one.
  if (thread->runs != task->sched_info.pcount) return 0;
  const __u64 run_delay = task->sched_info.run_delay;
  const __u64 waited = run_delay - thread->run_delay_ns;
  const __u64 before = thread->preempted ? thread->throttled_ns : ~0ULL;
  thread->run_delay_ns = run_delay;
  thread->preempted = 0;
  if ((__s64)waited < (__s64)BERTH_LEAST_WAIT_NS) return 0;
  const struct rq* queue = task->se.cfs_rq->rq;
  const __u32 from = queue->cpu;
  struct berth_blame_cpu* left = bpf_map_lookup_elem(&cpus, &from);
  const __u32* question = bpf_map_lookup_elem(&asked, &about);
  if (!left || !question) return 0;
  const __u64 now = queue->clock;
  if (waited > now) return 0;
  berth_end_slice(left, now);
  struct berth_wait wait = {now - waited, now, 0, 0};
  bool throttled = false;
  berth_find_hole(left, group_id, throttled_of(task, &throttled), before, &wait);
  blame_wait(left, about, *question, &wait);
  return 0;
}

// Interrupts only add to a sum: the hook on the switch takes what it grew by.
static __always_inline int interrupt(bool begins) {
  const __u32 cpu = bpf_get_smp_processor_id();
  struct berth_blame_cpu* own = bpf_map_lookup_elem(&cpus, &cpu);
  if (!own) return 0;
  const bool timed = (own->interrupt_runs++ & SAMPLED_MASK) == 0;
  const __u64 begin = timed ? bpf_ktime_get_ns() : 0;
  if (begins) {
    if (own->interrupt_depth++ == 0) own->interrupt_begin_ns = bpf_ktime_get_ns();
  } else if (own->interrupt_depth != 0) {  // the first one may have begun before the hooks were there
    if (--own->interrupt_depth == 0) own->interrupt_ns += bpf_ktime_get_ns() - own->interrupt_begin_ns;
  }
  if (timed) {
    own->interrupt_sampled++;
    own->interrupt_sampled_ns += bpf_ktime_get_ns() - begin;
  }
  return 0;
}

// The ends come first, as programs are attached in their order here: a beginning without an end would count
// for ever.
SEC("tp_btf/irq_handler_exit")
int BPF_PROG(on_interrupt_end) { return interrupt(false); }

SEC("tp_btf/softirq_exit")
int BPF_PROG(on_softirq_end) { return interrupt(false); }

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(on_interrupt) { return interrupt(true); }

SEC("tp_btf/softirq_entry")
int BPF_PROG(on_softirq) { return interrupt(true); }
