// SPDX-License-Identifier: Apache-2.0
// A host with many latency-sensitive instances, for benchmarks of searches. By default it has 2 sockets x 64
// cores x 2 threads.
#pragma once

#include "model/snapshot.h"

#include <cstdint>

namespace berth::policies::bench {

enum class Models {
  constant,  // the default model for every service
  measured,  // k1 0.1 to 0.6, k2 0.02 to 0.2: different for each service
  wild,      // both 0 to 1
};

struct Crowd {
  int sockets = 2;
  int cores_per_socket = 64;
  int llcs_per_socket = 8;
  int instances = 200;
  int vcpus = 250;    // of all instances together
  int services = 20;  // with pressures from 0.05 to 0.95
  Models models = Models::measured;
  double best_effort = 0.5;  // utilisation of the vCPUs that no instance owns
  std::uint64_t seed = 1;
};

// Nothing is pinned.
model::Snapshot crowded_host(const Crowd& crowd);

}  // namespace berth::policies::bench
