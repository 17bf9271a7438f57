// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The rivals of the hook of ebpf/: a program that does nothing, and run-queue latency the usual way, with
// three hooks and a hash of wake-up times by thread.
#include "ebpf/bpf/kernel.h"

char LICENSE[] SEC("license") = "GPL";

SEC("tp_btf/sched_switch")
int BPF_PROG(nothing, bool preempt, struct task_struct* prev, struct task_struct* next) { return 0; }

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 10240);
  __type(key, __u32);
  __type(value, __u64);
} ready_since SEC(".maps");

struct histogram {
  __u32 slots[26];
};

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 10240);
  __type(key, __u64);
  __type(value, struct histogram);
} by_cgroup SEC(".maps");

static __always_inline int ready(struct task_struct* task) {
  const __u32 pid = task->pid;
  if (pid == 0) return 0;
  const __u64 now = bpf_ktime_get_ns();
  bpf_map_update_elem(&ready_since, &pid, &now, BPF_ANY);
  return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct* task) { return ready(task); }

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(on_wakeup_new, struct task_struct* task) { return ready(task); }

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct* prev, struct task_struct* next) {
  // Still runnable: it waits from now on.
  if (prev->__state == 0) ready(prev);
  const __u32 pid = next->pid;
  __u64* since = bpf_map_lookup_elem(&ready_since, &pid);
  if (!since) return 0;
  const __u64 delay_us = (bpf_ktime_get_ns() - *since) / 1000;
  const __u64 id = next->cgroups->dfl_cgrp->kn->id;
  struct histogram* histogram = bpf_map_lookup_elem(&by_cgroup, &id);
  if (!histogram) {
    struct histogram fresh = {};
    bpf_map_update_elem(&by_cgroup, &id, &fresh, BPF_NOEXIST);
    histogram = bpf_map_lookup_elem(&by_cgroup, &id);
  }
  if (histogram) {
    __u32 slot = 0;
    for (__u64 rest = delay_us; rest > 1 && slot < 25; rest >>= 1) slot++;
    __sync_fetch_and_add(&histogram->slots[slot], 1);
  }
  bpf_map_delete_elem(&ready_since, &pid);
  return 0;
}
