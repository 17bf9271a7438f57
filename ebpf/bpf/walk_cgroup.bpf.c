// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The kernel's own iterator over cgroups (6.1), which holds cgroup_mutex meanwhile. Nothing is printed: what
// is found goes to the array.
#include "ebpf/bpf/walk.h"

char LICENSE[] SEC("license") = "GPL";

extern void cgroup_rstat_flush(struct cgroup* cgroup) __ksym;

SEC("iter.s/cgroup")
int walk(struct bpf_iter__cgroup* ctx) {
  struct cgroup* cgroup = ctx->cgroup;
  if (!cgroup) return 0;
  // The first is the root of the walk, and flushing it flushes all below.
  if (with_usage && walked_count == 0) cgroup_rstat_flush(cgroup);
  note(cgroup);
  return 0;
}
