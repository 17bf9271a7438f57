/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What every way of walking the hierarchy writes down of one cgroup. */
#pragma once

#include "ebpf/abi.h"
#include "ebpf/bpf/kernel.h"

/* Of the walk under way; beyond the capacity of `walked` it only counts. */
__u32 walked_count = 0;
/* Whether this walk flushes, and so knows the usage. */
__u32 with_usage = 0;

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct berth_walked);
} walked SEC(".maps");

/* include/linux/cgroup-defs.h */
#define CSS_ONLINE (1 << 1)

/* A cgroup whose directory is gone stays in the tree for as long as memory is charged to it: that is nobody's
 * news. The kernel shows neither figure of the root, whose own counters mean something else. */
static __always_inline int note(struct cgroup* cgroup) {
  if (!(cgroup->self.flags & CSS_ONLINE)) return 0;
  const __u32 at = walked_count++;
  struct berth_walked* to = bpf_map_lookup_elem(&walked, &at);
  if (!to) return 0;
  struct cgroup_subsys_state* parent = cgroup->self.parent;
  const __u64 serial = cgroup->self.serial_nr + 1; /* the root's is 0, as is a fresh entry's */
  /* A serial number is given out once, and the cgroup of one keeps its id and parent: no need to look again.
   */
  if (to->serial != serial) {
    to->serial = serial;
    to->id = cgroup->kn->id;
    to->parent = parent ? parent->cgroup->kn->id : 0;
  }
  __u32 has = 0;
  if (!parent) {
    to->has = has;
    return 0;
  }
  if (with_usage) {
    to->usage_ns = cgroup->bstat.cputime.sum_exec_runtime;
    has |= BERTH_HAS_USAGE;
  }

  /* Controllers may be left out of a kernel; the first member of what they keep is the css. */
  if (bpf_core_enum_value_exists(enum cgroup_subsys_id, memory_cgrp_id)) {
    const __u64 which = bpf_core_enum_value(enum cgroup_subsys_id, memory_cgrp_id);
    struct cgroup_subsys_state* css = cgroup->subsys[which];
    if (css) {
      struct mem_cgroup* memory = (struct mem_cgroup*)css;
      bpf_core_read(&to->memory_pages, sizeof(to->memory_pages), &memory->memory.usage.counter);
      has |= BERTH_HAS_MEMORY;
    }
  }
  if (bpf_core_enum_value_exists(enum cgroup_subsys_id, cpu_cgrp_id) &&
      bpf_core_field_exists(struct task_group, cfs_bandwidth)) {
    const __u64 which = bpf_core_enum_value(enum cgroup_subsys_id, cpu_cgrp_id);
    struct cgroup_subsys_state* css = cgroup->subsys[which];
    if (css) {
      struct task_group* group = (struct task_group*)css;
      bpf_core_read(&to->throttled, sizeof(to->throttled), &group->cfs_bandwidth.nr_throttled);
      bpf_core_read(&to->throttled_ns, sizeof(to->throttled_ns), &group->cfs_bandwidth.throttled_time);
      has |= BERTH_HAS_THROTTLING;
    }
  }
  to->has = has;
  return 0;
}
