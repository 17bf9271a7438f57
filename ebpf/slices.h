/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Who ran on a vCPU of late, and how a wait on it is divided over them. Plain C: the BPF program and the
 * tests compile it. Times are ns of that vCPU's run-queue clock. */
#pragma once

#ifdef __bpf__
#include "ebpf/bpf/kernel.h"
#define BERTH_INLINE static __always_inline
#else
#include <asm/types.h>
#define BERTH_INLINE static inline
#endif

/* Slices kept of a vCPU, a power of two, and how many of them a wait is divided over at most: the walk runs
 * under the run queue's lock. */
#define BERTH_SLICES 64
#define BERTH_SLICES_WALKED 48
/* Culprits of one wait that are told apart. */
#define BERTH_SUMS 16
/* Slices of one culprit in a row are one. With interrupts in them, only those that are so short are added. */
#define BERTH_MOMENT_NS 100000ULL
/* A shorter wait is nobody's fault. */
#define BERTH_LEAST_WAIT_NS 10000ULL
/* Cgroups that questions are about at one time, and cgroups whose question a vCPU remembers. */
#define BERTH_MOST_ASKED 128
#define BERTH_KNOWN 16
/* Cgroups whose last throttling a vCPU remembers. */
#define BERTH_QUOTAS 8

/* Culprits that are no cgroup. Real ids start at 1, and none is that large. */
#define BERTH_BY_UNKNOWN 0xfffffffffffffff0ULL
#define BERTH_BY_IDLE 0xfffffffffffffff1ULL
#define BERTH_BY_KERNEL 0xfffffffffffffff2ULL
#define BERTH_BY_INTERRUPTS 0xfffffffffffffff3ULL
#define BERTH_BY_QUOTA 0xfffffffffffffff4ULL

/* It began where the one before it ended. */
struct berth_slice {
  __u64 end_ns;
  __u64 by;           /* id of a cgroup, or BERTH_BY_... */
  __u64 group;        /* the address of the kernel's cgroup, 0 without one */
  __u64 interrupt_ns; /* of it, interrupts took */
};

struct berth_sum {
  __u64 by; /* 0: vacant */
  __u64 group;
  __u64 ns;
};

/* What a vCPU remembers of a cgroup: the one at or above it that is asked about, 0 where none is. */
struct berth_known {
  __u64 id;
  __u64 asked;
};

/* The last time a cgroup was throttled on a vCPU. */
struct berth_quota {
  __u64 id;
  __u64 throttled_ns; /* all in all, as last seen */
  __u64 begin_ns;
  __u64 end_ns; /* 0: not known yet */
};

/* The state of a vCPU, written under its run queue's lock; the part about interrupts by that vCPU only. */
struct berth_blame_cpu {
  __u64 interrupt_ns;       /* all in all */
  __u64 interrupt_begin_ns; /* of the outermost one that runs */
  __u32 interrupt_depth;
  __u32 spare;
  __u64 interrupt_runs; /* of the hooks on interrupts */
  __u64 interrupt_sampled;
  __u64 interrupt_sampled_ns;
  __u64 interrupt_seen_ns;
  __u64 by; /* of who runs now */
  __u64 group;
  __u32 asked;  /* who runs now is asked about */
  __u32 slices; /* so far; wraps */
  __u64 runs;   /* of the hook on the switch */
  __u64 sampled;
  __u64 sampled_ns;
  __u64 generation; /* of the questions that `known` is true for */
  struct berth_slice slice[BERTH_SLICES];
  struct berth_sum sum[BERTH_SUMS];
  struct berth_known known[BERTH_KNOWN];
  struct berth_quota quota[BERTH_QUOTAS];
  __u64 waited_ns[BERTH_MOST_ASKED + 1]; /* by the number of the question; without the quota's part */
};

/* A wait, and the part of it in which the quota held the thread back: [hole_ns, hole_end_ns), empty where
 * none. */
struct berth_wait {
  __u64 begin_ns;
  __u64 end_ns;
  __u64 hole_ns;
  __u64 hole_end_ns;
};

BERTH_INLINE __u64 berth_later(__u64 a, __u64 b) { return a > b ? a : b; }
BERTH_INLINE __u64 berth_earlier(__u64 a, __u64 b) { return a < b ? a : b; }
BERTH_INLINE __u64 berth_overlap(__u64 a, __u64 a_end, __u64 b, __u64 b_end) {
  const __u64 begin = berth_later(a, b);
  const __u64 end = berth_earlier(a_end, b_end);
  return end > begin ? end - begin : 0;
}
BERTH_INLINE __u32 berth_place(__u64 id, __u32 shift) {
  const __u64 place = (id * 0x9e3779b97f4a7c15ULL) >> shift;
  return place & 0xffffffffU;
}

/* Writes down that who runs now ran until `now`. */
BERTH_INLINE void berth_end_slice(struct berth_blame_cpu* cpu, __u64 now) {
  const __u64 all_ns = cpu->interrupt_ns;
  const __u64 interrupt_ns = all_ns - cpu->interrupt_seen_ns;
  cpu->interrupt_seen_ns = all_ns;
  const __u64 by = cpu->by ? cpu->by : BERTH_BY_UNKNOWN;
  struct berth_slice* last = &cpu->slice[(cpu->slices - 1) & (BERTH_SLICES - 1)];
  /* A wait that begins within a slice gets its share of the interrupts in it, as if they were spread evenly.
   */
  if (last->by == by && ((interrupt_ns | last->interrupt_ns) == 0 || now - last->end_ns < BERTH_MOMENT_NS)) {
    last->end_ns = now;
    last->interrupt_ns += interrupt_ns;
    return;
  }
  struct berth_slice* slice = &cpu->slice[cpu->slices & (BERTH_SLICES - 1)];
  slice->end_ns = now;
  slice->by = by;
  slice->group = cpu->group;
  slice->interrupt_ns = interrupt_ns;
  cpu->slices++;
}

/* Adds to what a wait owes `by`; returns what found no place. */
BERTH_INLINE __u64 berth_add_sum(struct berth_blame_cpu* cpu, __u64 by, __u64 group, __u64 ns) {
  const __u32 first = berth_place(by, 60);
  for (__u32 step = 0; step < BERTH_SUMS; step++) {
    struct berth_sum* sum = &cpu->sum[(first + step) & (BERTH_SUMS - 1)];
    if (sum->by != by && sum->by != 0) continue;
    sum->by = by;
    sum->group = group;
    sum->ns += ns;
    return 0;
  }
  return ns;
}

#ifdef __bpf__
/* The verifier looks at a global function once, not at each call. */
__noinline __u64 berth_add(struct berth_blame_cpu* cpu, __u64 by, __u64 group, __u64 ns) {
  return cpu ? berth_add_sum(cpu, by, group, ns) : ns;
}
#else
#define berth_add berth_add_sum
#endif

/* Divides a wait that has just ended: `cpu->sum` says who ran how long of it, and `*interrupts` how long
 * interrupts took. Returns the rest, that is not known. The slice under way must have been ended. */
BERTH_INLINE __u64 berth_divide(struct berth_blame_cpu* cpu, const struct berth_wait* wait,
                                __u64* interrupts) {
  __u64 unknown = wait->end_ns - wait->begin_ns -
                  berth_overlap(wait->begin_ns, wait->end_ns, wait->hole_ns, wait->hole_end_ns);
  const __u32 all = cpu->slices;
  *interrupts = 0;
  for (__u32 i = 0; i < BERTH_SUMS; i++) {
    cpu->sum[i].by = 0;
    cpu->sum[i].ns = 0;
  }
  for (__u32 back = 1; back <= BERTH_SLICES_WALKED; back++) {
    if (all <= back) break; /* nobody knows when the first one began */
    const struct berth_slice* slice = &cpu->slice[(all - back) & (BERTH_SLICES - 1)];
    const __u64 begin = cpu->slice[(all - back - 1) & (BERTH_SLICES - 1)].end_ns;
    const __u64 end = slice->end_ns;
    const __u64 from = berth_later(begin, wait->begin_ns);
    const __u64 to = berth_earlier(end, wait->end_ns);
    if (to > from) {
      __u64 part = to - from - berth_overlap(from, to, wait->hole_ns, wait->hole_end_ns);
      if (part > unknown) part = unknown;
      __u64 by_interrupts = slice->interrupt_ns;
      if (by_interrupts) {
        const __u64 all_ns = end - begin;
        const __u32 shift = all_ns >> 32 ? 16 : 0; /* the product is to fit */
        by_interrupts = berth_earlier(by_interrupts, all_ns);
        if (part < all_ns)
          by_interrupts = (((by_interrupts >> shift) * (part >> shift)) / (all_ns >> shift)) << shift;
        *interrupts += by_interrupts;
        unknown -= by_interrupts;
        part -= by_interrupts;
      }
      if (part) unknown -= part - berth_add(cpu, slice->by, slice->group, part);
    }
    if (begin <= wait->begin_ns) break;
  }
  return unknown;
}

BERTH_INLINE struct berth_quota* berth_quota_of(struct berth_blame_cpu* cpu, __u64 id) {
  return &cpu->quota[berth_place(id, 61) & (BERTH_QUOTAS - 1)];
}

/* A thread of the cgroup must leave the vCPU, as the quota is used up. `throttled_ns`: until now, all in all.
 */
BERTH_INLINE void berth_begin_throttling(struct berth_blame_cpu* cpu, __u64 id, __u64 throttled_ns,
                                         __u64 now) {
  struct berth_quota* quota = berth_quota_of(cpu, id);
  quota->id = id;
  quota->throttled_ns = throttled_ns;
  quota->begin_ns = now;
  quota->end_ns = 0;
}

/* Sets the hole in the wait of a thread of the cgroup. `before_ns` is `throttled_ns` of the wait's begin,
 * where the thread lost the vCPU then; ~0 where it slept. */
BERTH_INLINE void berth_find_hole(struct berth_blame_cpu* cpu, __u64 id, __u64 throttled_ns, __u64 before_ns,
                                  struct berth_wait* wait) {
  if (throttled_ns == 0) return;
  struct berth_quota* quota = berth_quota_of(cpu, id);
  if (quota->id != id) {
    quota->id = id;
    quota->throttled_ns = throttled_ns;
    quota->begin_ns = 0;
    quota->end_ns = 1;
  }
  const __u64 more = throttled_ns - quota->throttled_ns;
  if (throttled_ns > quota->throttled_ns) {
    /* Without a thread that lost the vCPU, the first one that came found no quota. */
    if (quota->end_ns != 0) quota->begin_ns = wait->begin_ns;
    quota->end_ns = berth_earlier(quota->begin_ns + more, wait->end_ns);
    quota->throttled_ns = throttled_ns;
  }
  __u64 known = 0;
  if (quota->end_ns > 1) known = berth_overlap(wait->begin_ns, wait->end_ns, quota->begin_ns, quota->end_ns);
  wait->hole_ns = berth_later(quota->begin_ns, wait->begin_ns);
  wait->hole_end_ns = wait->hole_ns + known;
  if (before_ns == ~0ULL || throttled_ns < before_ns) return;
  /* The thread's own figure is exact; several periods of one wait are taken for one. */
  const __u64 exact = throttled_ns - before_ns;
  if (known > exact) {
    wait->hole_end_ns = wait->hole_ns + exact;
  } else if (known + known / 8 < exact) {
    wait->hole_ns = wait->begin_ns;
    wait->hole_end_ns = berth_earlier(wait->begin_ns + exact, wait->end_ns);
  }
}
