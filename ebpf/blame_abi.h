/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Types common to the BPF program of blame and its reader: plain C, included by both. */
#pragma once

#include "ebpf/slices.h"

/* Most pairs of a questioned cgroup and a culprit, and most culprits, of all. */
#define BERTH_MOST_BLAMED 16384
#define BERTH_MOST_CULPRITS 4096
/* Culprits below a cgroup of the first level, and of the second. Users make cgroups below these only, so none
 * of them takes the place of the others'. Beyond it the cgroup of that level is the culprit. */
#define BERTH_CULPRITS_BELOW_1 1024
#define BERTH_CULPRITS_BELOW_2 256
/* Culprits that are new in one wait; finding their names takes long. */
#define BERTH_NEW_IN_WAIT 8
/* Levels of which a culprit's ids are known, and of which it has names: the last is its own. */
#define BERTH_CULPRIT_LEVELS 8
#define BERTH_CULPRIT_NAMES 4
#define BERTH_CULPRIT_NAME 96
/* Threads whose waits are followed over vCPUs, a power of two. */
#define BERTH_THREADS 4096
#define BERTH_THREADS_SHIFT 52 /* 64 less its log2 */

struct berth_blamed_key {
  __u64 asked; /* id of the cgroup whose threads waited */
  __u64 by;
};

struct berth_culprit {
  __u32 level;                     /* below the root */
  __u32 below;                     /* culprits that were added below it, of the first and second level only */
  __u64 ids[BERTH_CULPRIT_LEVELS]; /* of levels 1, 2, ...; the last one is its own where there are more */
  char names[BERTH_CULPRIT_NAMES][BERTH_CULPRIT_NAME];
};

/* A thread of a cgroup that is asked about. */
struct berth_thread {
  __u32 pid;
  __u32 preempted;    /* it lost the vCPU, and does not sleep */
  __u64 run_delay_ns; /* of its waits so far that were looked at */
  __u64 throttled_ns; /* of its cgroup on that vCPU, when it lost it */
  __u64 runs;         /* how often it had got a vCPU by then */
};
