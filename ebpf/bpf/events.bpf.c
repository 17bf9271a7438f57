// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// cgroups that come and go, as records in a ring buffer.
#include "ebpf/abi.h"
#include "ebpf/bpf/kernel.h"

char LICENSE[] SEC("license") = "GPL";

// Records that found the ring buffer full.
__u64 lost = 0;

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 1 << 18);
} events SEC(".maps");

// One is enough: the kernel makes and removes cgroups one at a time, under cgroup_mutex.
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct berth_event);
} record SEC(".maps");

static __always_inline int emit(struct cgroup* cgroup, const char* path, __u32 kind) {
  if (cgroup->root->hierarchy_id != 0) return 0;  // a version 1 hierarchy
  const __u32 first = 0;
  struct berth_event* event = bpf_map_lookup_elem(&record, &first);
  if (!event) return 0;
  event->kind = kind;
  event->id = cgroup->kn->id;
  struct cgroup_subsys_state* parent = cgroup->self.parent;
  event->parent = parent ? parent->cgroup->kn->id : 0;
  const long copied = bpf_probe_read_kernel_str(event->path, sizeof(event->path), path);
  const __u64 length = copied > 0 ? copied : 1;
  event->path_length = length - 1;
  if (length > sizeof(event->path)) return 0;
  if (bpf_ringbuf_output(&events, event, __builtin_offsetof(struct berth_event, path) + length, 0))
    __sync_fetch_and_add(&lost, 1);
  return 0;
}

SEC("tp_btf/cgroup_mkdir")
int BPF_PROG(on_mkdir, struct cgroup* cgroup, const char* path) { return emit(cgroup, path, BERTH_MKDIR); }

SEC("tp_btf/cgroup_rmdir")
int BPF_PROG(on_rmdir, struct cgroup* cgroup, const char* path) { return emit(cgroup, path, BERTH_RMDIR); }
