// SPDX-License-Identifier: Apache-2.0
// Services and batch work on hosts of the simulated machine, as berthd would see and place them.
//
// berth learns from some mixes, and is judged by others that it has not seen. It sees what berthd sees: the
// CPU that each workload used, the pins, and the response with the noise of a measurement. The very code of
// the daemon makes observations of that. The true interference comes from the machine alone.
#pragma once

#include "daemon/learn/learner.h"
#include "model/learning.h"
#include "model/snapshot.h"
#include "policies/interference/settings.h"
#include "tests/unit/policies/draws.h"
#include "tests/unit/policies/hosts.h"
#include "tests/unit/policies/interference/ground_truth/machine.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace berth::policies::testing {

struct Service {
  std::string name;
  Software software;
  double load = 0;   // mean instructions a second and vCPU
  double phase = 0;  // of its day, 0..1
};

struct World {
  HostShape shape;
  Hardware hardware;
  model::Topology topology;
  std::vector<Service> services;
  std::vector<Software> batch;
};

struct WorldSettings {
  HostShape shape;
  double llc_mib = 16;
  bool alike = false;  // all services are the same software with the same load
  int services = 8;
  std::uint64_t seed = 1;
};
// Figures are drawn log-uniformly over the ranges of real software. No figure is chosen by hand.
World make_world(const WorldSettings& settings);

// The work of a host for a while: instances of 1 to 4 vCPUs on 40 to 75 % of it, and batch work.
struct Mix {
  struct Instance {
    std::string id;
    std::size_t service = 0;
    int vcpus = 1;
    double measured_cores = 0;  // its use, as it was measured before it is placed
  };
  std::vector<Instance> instances;
  std::vector<double> batch_threads;  // by batch software
};
Mix draw_mix(const World& world, Draws& draws, const std::string& prefix);
// Of an instance.
int draw_vcpus(Draws& draws);
// Threads by batch software: on average one for each of so many vCPUs, together.
std::vector<double> draw_batch(const World& world, int cpus, Draws& draws);

// The id of a batch software's workload.
std::string batch_id(std::size_t kind);
// Two samples, up to `time` (epoch seconds), with this use.
void set_use(model::Workload& workload, double time, double cores);

// A snapshot in which nothing is pinned yet.
model::Snapshot unplaced(const World& world, const Mix& mix);

// The load of a service at a time of the day, 0..1. It swings by a factor of five.
double load_at(const Service& service, double day);

// The vCPUs of each workload by id.
using Places = std::map<std::string, model::CpuSet>;
Places places_of(const model::Snapshot& pinned);

// All figures of a mix in these places, at a time of the day; instances first. Threads float over a place
// with another number of vCPUs than the instance asks for, and over the host if there is no place. `swing`
// are factors of the loads, by instance, then by batch software; empty: none.
std::vector<Figures> truth_of(const World& world, const Mix& mix, const Places& places, double day,
                              const std::vector<double>& swing = {});
// Of an instance with the machine for itself, on cores of its own. `load` is that of each vCPU.
Figures alone(const World& world, const Service& service, int vcpus, double load);
// Instructions a second of a thread that has the machine for itself, by batch software.
std::vector<double> batch_alone(const World& world);

// Means over the day.
struct Interference {
  double extra_cores = 0;  // that all instances use because they have neighbours, per vCPU of the host
  double slowdown = 0;     // cpi / cpi alone - 1, mean over the instances
  double worst = 0;        // of an instance
};
Interference interference_of(const World& world, const Mix& mix, const model::Snapshot& pinned);

struct Lesson {
  model::Response response = model::Response::cpi;
  double noise = 0.03;  // standard deviation of a measurement, as a share
  int mixes = 60;
  int ticks = 20;  // of each mix
  InterferenceSettings settings = {};
};
// Learns as berthd does, on hosts that are placed by the constants.
class Training {
 public:
  Training(const World& world, const Lesson& lesson, std::uint64_t seed);
  const std::map<std::string, model::ServiceProfile>& services() const { return learner_.services(); }
  int accepted() const { return accepted_; }  // services
  int bounded() const { return bounded_; }    // those for which the observations bound the default
  int changes() const { return changes_; }    // times that a service was found changed

 private:
  std::vector<std::string> warnings_;
  daemon::Learner learner_;
  int accepted_ = 0;
  int bounded_ = 0;
  int changes_ = 0;
};

// Places the mix, with these models.
model::Snapshot place(const World& world, const Mix& mix,
                      const std::map<std::string, model::ServiceProfile>& models,
                      const InterferenceSettings& settings);
// Places it anywhere inside domains.
model::Snapshot place_at_random(const World& world, const Mix& mix, Draws& draws);

}  // namespace berth::policies::testing
