/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The kernel's structures as far as the programs look into them. libbpf finds the members in the running
 * kernel's BTF when it loads (CO-RE), so neither order nor completeness matters, and a build needs no
 * kernel's BTF. Sources: the kernel's include/linux/sched.h, cgroup-defs.h, kernfs.h, memcontrol.h,
 * page_counter.h, kernel/sched/sched.h. */
#pragma once

// libbpf's headers want the kernel's types before them.
// clang-format off
#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
// clang-format on

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
  long counter;
} atomic_long_t;

struct list_head {
  struct list_head* next;
};

struct kernfs_node {
  __u64 id;
  const char* name;
};

struct cgroup;

struct cgroup_subsys_state {
  struct cgroup* cgroup;
  unsigned int flags;
  __u64 serial_nr;
  struct cgroup_subsys_state* parent;
};

struct task_cputime {
  unsigned long long sum_exec_runtime;
};

struct cgroup_base_stat {
  struct task_cputime cputime;
};

struct cgroup_root {
  int hierarchy_id;
};

struct cgroup {
  struct cgroup_subsys_state self;
  int level;
  struct kernfs_node* kn;
  struct cgroup_subsys_state* subsys[16];
  struct cgroup_root* root;
  struct cgroup_base_stat bstat;
  struct cgroup* ancestors[];
};

struct css_set {
  struct cgroup* dfl_cgrp;
};

struct rq {
  int cpu;
  __u64 clock;
};

struct cfs_rq {
  struct rq* rq;
  __u64 throttled_clock_pelt_time;
  __u64 throttled_clock_self_time; /* Linux 6.6 */
  int throttle_count;
};

struct sched_entity {
  __u64 sum_exec_runtime;
  struct cfs_rq* cfs_rq;
};

struct sched_info {
  unsigned long pcount;
  unsigned long long run_delay;
  unsigned long long last_queued;
};

struct task_struct {
  int pid;
  int on_rq;
  unsigned int flags;
  unsigned int __state;
  struct sched_entity se;
  struct sched_info sched_info;
  struct css_set* cgroups;
};

/* include/linux/sched.h */
#define PF_IDLE 0x2
#define PF_KTHREAD 0x00200000

struct page_counter {
  atomic_long_t usage;
};

struct mem_cgroup {
  struct cgroup_subsys_state css;
  struct page_counter memory;
};

struct cfs_bandwidth {
  int nr_throttled;
  __u64 throttled_time;
};

struct task_group {
  struct cgroup_subsys_state css;
  struct cfs_bandwidth cfs_bandwidth;
};

struct bpf_iter_meta;

struct bpf_iter__task {
  struct bpf_iter_meta* meta;
  struct task_struct* task;
};

struct bpf_iter__cgroup {
  struct bpf_iter_meta* meta;
  struct cgroup* cgroup;
};

#pragma clang attribute pop

enum cgroup_subsys_id {
  cpu_cgrp_id = 1,
  memory_cgrp_id = 4,
};
