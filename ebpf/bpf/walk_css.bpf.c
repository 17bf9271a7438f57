// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// One read(2) walks the whole hierarchy: an iterator over tasks, which may sleep and so may flush, does it
// all at its first task and ends there. Built once for kernels that flush a css (6.16) and once for those
// that flush a cgroup (6.7); libbpf refuses a program whose weak kernel function is missing unless it may
// read the kernel's symbols.
#include "ebpf/bpf/walk.h"

char LICENSE[] SEC("license") = "GPL";

const volatile __u64 root_id = 1;

// Both of the kernel's include/uapi/linux/bpf.h and its css iterator.
#define DESCENDANTS_PRE 2

struct bpf_iter_css {
  __u64 opaque[3];
} __attribute__((aligned(8)));

extern int bpf_iter_css_new(struct bpf_iter_css* it, struct cgroup_subsys_state* start,
                            unsigned int flags) __ksym;
extern struct cgroup_subsys_state* bpf_iter_css_next(struct bpf_iter_css* it) __ksym;
extern void bpf_iter_css_destroy(struct bpf_iter_css* it) __ksym;
extern struct cgroup* bpf_cgroup_from_id(__u64 id) __ksym;
extern void bpf_cgroup_release(struct cgroup* cgroup) __ksym;
extern void bpf_rcu_read_lock(void) __ksym;
extern void bpf_rcu_read_unlock(void) __ksym;
#ifdef BERTH_FLUSH_CSS
extern void css_rstat_flush(struct cgroup_subsys_state* css) __ksym;
#define FLUSH(cgroup) css_rstat_flush(&(cgroup)->self)
#else
extern void cgroup_rstat_flush(struct cgroup* cgroup) __ksym;
#define FLUSH(cgroup) cgroup_rstat_flush(cgroup)
#endif

SEC("iter.s/task")
int walk(struct bpf_iter__task* ctx) {
  walked_count = 0;
  struct cgroup* root = bpf_cgroup_from_id(root_id);
  if (!root) return 1;
  if (with_usage) FLUSH(root);
  bpf_rcu_read_lock();
  struct bpf_iter_css it;
  bpf_iter_css_new(&it, &root->self, DESCENDANTS_PRE);
  struct cgroup_subsys_state* css;
  while ((css = bpf_iter_css_next(&it))) note(css->cgroup);
  bpf_iter_css_destroy(&it);
  bpf_rcu_read_unlock();
  bpf_cgroup_release(root);
  return 1;  // read(2) ends with EAGAIN; the next one starts anew
}
