// SPDX-License-Identifier: Apache-2.0
// Random hosts and loads, shared by the property tests of all modules.
#pragma once

#include "model/snapshot.h"

#include <rapidcheck.h>

namespace berth::model::testing {

// 0..1, with the ends often; any double in between.
rc::Gen<double> fractions();
// 0..highest, whole numbers and any others.
rc::Gen<double> amounts(double highest);
// Any finite double.
rc::Gen<double> finite_doubles();
// Not empty, no control characters: cgroup-like paths, but also quotes, backslashes, letters of three and
// four bytes.
rc::Gen<std::string> names();

struct TopologyShape {
  int max_sockets = 2;
  int max_llcs_per_socket = 2;
  int max_cores_per_llc = 4;
  int max_threads = 2;
  bool all_usable = false;  // else some vCPUs may be offline or forbidden
  bool gpus = true;
};

// Both of Linux's numberings (threads adjacent, threads last), hosts without LLC information, hybrid ranks.
rc::Gen<Topology> topologies(TopologyShape shape = {});

struct SnapshotShape {
  TopologyShape topology;
  int max_workloads = 8;
  int max_samples = 6;
  // Latency-sensitive workloads hold disjoint usable vCPUs, as berth itself pins them; else any vCPUs at all.
  bool exclusive_pins = true;
};

// Valid in the sense of parse_snapshot, workloads ascending by id.
rc::Gen<Snapshot> snapshots(SnapshotShape shape = {});

}  // namespace berth::model::testing
