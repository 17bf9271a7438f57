// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/learning.h"
#include "model/snapshot.h"
#include "policies/interference/learning/observations.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace berth::replay {

// The observations of recorded ticks (docs/decisions/learning.md), which are those that berthd learned from
// at these ticks. It keeps an account of them, and of what the ticks lack. The memory that this takes is
// bounded, however many workloads come and go.
class Observed {
 public:
  struct Count {
    std::uint64_t observations = 0;
    std::uint64_t with_llc = 0;  // of them
    std::size_t at_once = 0;     // the most instances in one tick
  };
  // More are counted in observations() alone.
  static constexpr std::size_t kMostServices = 1000;

  // Takes the next tick. Returns its observations, ascending by instance, without those that no learning may
  // see.
  std::vector<model::Observation> take(const model::Snapshot& snapshot, model::DomainKind shared_domain);

  const std::string& host() const { return host_; }
  double begun() const { return begun_; }  // time of the first tick, epoch seconds
  double ended() const { return ended_; }  // and of the last
  std::uint64_t ticks() const { return ticks_; }
  // Ticks of berthd that were not taken. Their samples are in later ticks.
  std::uint64_t missing() const { return missing_; }
  std::uint64_t observations() const { return observations_; }
  const std::map<model::ProfileKey, Count>& counts() const { return counts_; }
  // Why there are no more or no better observations: a sentence each, without its full stop. Names of
  // services are as workloads have them.
  std::vector<std::string> lacks() const;

 private:
  // The latency-sensitive instances of a service, as far as ticks showed them.
  struct Service {
    bool asks_for_vcpus = false;
    bool used_cpu = false;
    bool cycles = false;
    bool progress = false;
    bool made = false;      // an observation, perhaps an impossible one
    bool observed = false;  // one that learning may see
  };

  void look_at(const model::Snapshot& snapshot);
  void count(const std::vector<model::Observation>& seen);
  std::vector<std::string> reasons_of_services() const;

  policies::Observations observations_of_;
  std::string host_;
  double begun_ = 0;
  double ended_ = 0;
  std::uint64_t ticks_ = 0;
  std::uint64_t missing_ = 0;
  std::uint64_t observations_ = 0;
  std::uint64_t throttled_ = 0;
  std::uint64_t set_aside_ = 0;
  std::optional<std::string> first_set_aside_;
  std::uint64_t fallen_ = 0;  // times that a progress fell
  std::map<model::ProfileKey, Count> counts_;
  std::map<std::string, Service> services_;
};

}  // namespace berth::replay
