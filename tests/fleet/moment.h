// SPDX-License-Identifier: Apache-2.0
// Some seconds of a host of the fleet, event by event, on the judge's host (tests/judge): what its services
// and jobs cost each other in waits, cores and caches.
#pragma once

#include "model/cpu_set.h"
#include "tests/unit/policies/interference/ground_truth/fleet.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace berth::fleet {

// The load of a host. Services have requests as those of the judge's table.
struct Moment {
  struct Service {
    std::size_t software = 0;  // index into the services of the world
    int vcpus = 1;             // asked for; the quota
    double cores = 0;          // that it uses alone
    model::CpuSet cpus = {};   // empty: all of the host
  };
  // It has a thread for each core that it asks for. Each pauses at times, so that the job keeps `use_cores`
  // busy if nothing disturbs it.
  struct Job {
    std::size_t software = 0;  // index into the batch software of the world
    int cores = 1;
    double use_cores = 1;
  };
  std::vector<Service> services;
  std::vector<Job> jobs;
  model::CpuSet pool;  // vCPUs of the jobs; empty: all of the host
};

// The jobs' priority. Services have the weight of what they ask for.
enum class Priority {
  request,      // the weight of what they ask for
  best_effort,  // that of pods that ask for no CPU: all together a hundredth of a core's
  idle,         // cpu.idle
};

struct Served {
  double p99_s = 0;         // of the answer times; infinite if there is no answer
  double cpu_for_work = 1;  // CPU time for its work, over that on a core and a cache of its own
};
// Each service on the host without neighbours and pins.
std::vector<Served> served_alone(const policies::testing::World& world, const Moment& moment,
                                 std::uint64_t seed);

struct Shared {
  std::vector<Served> services;
  double job_work = 0;  // a second, in cores that a job has without neighbours
};
// The same requests beside all others.
Shared shared(const policies::testing::World& world, const Moment& moment, Priority priority,
              std::uint64_t seed);

}  // namespace berth::fleet
