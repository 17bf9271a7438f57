// SPDX-License-Identifier: Apache-2.0
// A day of a simulated host: instances come and go, loads swing, batch work changes. Every way to place
// plays the same day, and the machine tells what its neighbours cost each instance.
#pragma once

#include "model/snapshot.h"
#include "policies/interference/settings.h"
#include "tests/unit/policies/interference/ground_truth/baselines.h"
#include "tests/unit/policies/interference/ground_truth/fleet.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

namespace berth::policies::testing {

struct DaySettings {
  // Share of the host's vCPUs that instances ask for: least at the start, most after twelve hours.
  double least = 0.6;
  double most = 0.6;
  double stay_h = 8;  // of an instance, on average
  std::uint64_t seed = 1;
};

struct Day {
  struct Change {
    double time_s = 0;  // since the first hour
    bool leaves = false;
    Mix::Instance instance;
  };
  struct Hour {
    std::vector<Change> changes;  // by time
    Mix mix;                      // after them
  };
  std::vector<Hour> hours;  // the first one fills the host, and is not judged
};
// No placement has a part in it. At least one vCPU of the host stays without an instance.
Day draw_day(const World& world, const DaySettings& settings);

// One way to place.
class Method {
 public:
  Method() = default;
  Method(const Method&) = delete;
  Method& operator=(const Method&) = delete;
  virtual ~Method() = default;

  // Times are seconds since the first hour.
  virtual void arrive(const Mix::Instance& instance, double time_s) = 0;
  virtual void leave(const std::string& id) = 0;
  // After the changes of an hour.
  virtual void settle(double /*time_s*/) {}
  // As truth_of().
  virtual std::vector<Figures> truth(const Mix& mix, double day) const = 0;
  // Tells how the hour went: the answer of truth().
  virtual void see(const Mix& /*mix*/, const std::vector<Figures>& /*figures*/, double /*time_s*/) {}
  // Instances without vCPUs of their own, for want of room.
  virtual int unplaced() const { return 0; }
  // Pins that changed, of instances that had one.
  virtual int moves() const { return 0; }
};

enum class Baseline {
  random,           // take_random()
  all_on_all,       // no pins: threads are anywhere on the host
  packed,           // take_packed()
  spread,           // take_spread()
  numa_balanced,    // each instance on all vCPUs of the socket with the least requests
  idle_core_first,  // no pins: each instance in the cache with the least requests, on an idle core if there
                    // is one
};
inline constexpr std::array kBaselines{Baseline::random, Baseline::all_on_all,    Baseline::packed,
                                       Baseline::spread, Baseline::numa_balanced, Baseline::idle_core_first};
const char* to_string(Baseline baseline);

// The world must outlive what these return.
std::unique_ptr<Method> make_method(const World& world, Baseline baseline, std::uint64_t seed);
// berth, with these models. It sees the use of each hour in the next one, with noise. A new instance has no
// use yet.
std::unique_ptr<Method> make_method(const World& world, const InterferenceSettings& settings,
                                    const std::map<std::string, model::ServiceProfile>& models,
                                    std::uint64_t seed);

// Means over the hours.
struct Score {
  double extra_cores = 0;  // that the work of all instances takes because of neighbours, per vCPU of the host
  double slowdown = 0;     // cpi / cpi alone - 1, mean over the instances
  double batch = 0;        // batch work done, as a share of what its threads do alone
  double undone = 0;       // share of the instances' work for which there was no CPU
  double unplaced = 0;     // share of the instances that have no vCPUs of their own
  double moves = 0;        // an hour
};

// Knows what an instance is like alone. All methods of a world can share it, which saves time.
class Judge {
 public:
  explicit Judge(const World& world);

  // `method` must be new.
  Score play(const Day& day, Method& method);
  // Of one moment; the members unplaced and moves are 0. `figures` as of truth_of().
  Score at(const Mix& mix, const std::vector<Figures>& figures, double day);

 private:
  const Figures& without_neighbours(const Mix::Instance& instance, double day);

  const World& world_;
  std::map<std::tuple<std::size_t, int, double>, Figures> alone_;  // by service, vCPUs, time of the day
  std::vector<double> batch_alone_;
};

}  // namespace berth::policies::testing
