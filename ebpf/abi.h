/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Types common to the BPF programs and the reader: plain C, included by both. */
#pragma once

#ifdef __bpf__
#include <linux/types.h>
#else
#include <asm/types.h>
#endif

#define BERTH_DELAY_BUCKETS 24
#define BERTH_HARDWARE_COUNTERS 4

/* The table of each CPU is open-addressed by cgroup id, probed at most this far. */
#define BERTH_PROBES 64
/* So many cgroups may have all groups below them counted in their own row, and so many levels are looked up.
 */
#define BERTH_MOST_KEEPERS 1024
#define BERTH_KEEPER_LEVELS 64
/* Fibonacci hashing: 2^64 divided by the golden ratio. */
#define BERTH_HASH 0x9e3779b97f4a7c15ULL

/* Ids of rows without a cgroup. Real ids start at 1 (the root), and the kernel never gives out an inode
 * number of all ones. */
#define BERTH_FREE 0ULL
#define BERTH_REMOVED 0xffffffffffffffffULL

/* One row of a CPU's table: two cache lines; short waits need only the first. Only that CPU sets an id, and
 * only in a free or removed row. Only the reader marks a row removed. The figures are cumulative since the
 * row was taken; the narrow ones wrap. A wait is counted in `delay` only with a dispatch, or several. */
struct berth_row {
  __u64 id;
  __u32 touches; /* moves whenever a figure does, those of berth_counts too */
  __u32 dispatches;
  __u64 run_ns;
  __u64 delay_ns;
  __u32 delay[BERTH_DELAY_BUCKETS];
};

struct berth_counts {
  __u64 count[BERTH_HARDWARE_COUNTERS];
};

enum berth_running {
  BERTH_RUNNING_UNKNOWN = 0,
  BERTH_RUNNING_IDLE = 1,
  BERTH_RUNNING_TASK = 2,
};

/* The state of one CPU, on cache lines of its own. A switch without counters needs only the first line. The
 * place of its table is set before the program is attached; the rest is written on that CPU only. */
struct berth_cpu {
  __u64 runs; /* of the switch program */
  __u32 running;
  __u32 first_row;
  __u32 row_mask;    /* rows of the table less one: a power of two less one */
  __u32 row_shift;   /* 64 less its log2 */
  __u32 taken;       /* rows, so far */
  __u32 place_shift; /* 32 less log2 of the number of tasks' places */
  __u64 sampled;     /* number of timed runs */
  __u64 sampled_ns;  /* and their time */
  __u64 full;        /* a cgroup found no row */
  __u64 untracked;   /* a task without place and storage */
  __u64 counter_errors;
  __u64 has_last; /* a bit a counter */
  __u64 last[BERTH_HARDWARE_COUNTERS];
  __u64 spare[2];
};

enum berth_event_kind {
  BERTH_MKDIR = 1,
  BERTH_RMDIR = 2,
};

#define BERTH_EVENT_PATH 1024

struct berth_event {
  __u64 id;
  __u64 parent;
  __u32 kind;
  __u32 path_length; /* without the final zero; BERTH_EVENT_PATH - 1 where it was cut */
  char path[BERTH_EVENT_PATH];
};

/* One cgroup of a walk. Usage is of the last walk that flushed. */
#define BERTH_HAS_USAGE 1U
#define BERTH_HAS_MEMORY 2U
#define BERTH_HAS_THROTTLING 4U

struct berth_walked {
  __u64 serial; /* one more than its css has */
  __u64 id;
  __u64 parent;
  __u64 usage_ns;
  __u64 memory_pages;
  __u64 throttled_ns;
  __u32 throttled;
  __u32 has;
};
