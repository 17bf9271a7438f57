// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/snapshot.h"
#include "policies/interference/node.h"
#include "policies/interference/occupancy.h"
#include "policies/interference/pressure.h"
#include "policies/settings.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace berth::policies {

struct BinGpu {
  std::string id;
  std::string model;
  std::optional<std::uint64_t> free_bytes;  // nullopt: not known
  bool healthy = true;
  std::optional<std::string> holder;  // who has it alone
  int users = 0;                      // workloads that share it, and whoever else is on it as one more
  // It was told to somebody who has not come yet: alone, or to share it, to so many.
  bool promised = false;
  int promised_shares = 0;

  // Nobody uses it, or will.
  bool idle() const { return healthy && !holder && users == 0 && !promised && promised_shares == 0; }
};

// One NUMA node: a request is placed in one whole (docs/algorithms.md, placement).
struct Bin {
  int numa = 0;
  model::CpuSet cpus;        // usable
  model::CpuSet unowned;     // of these, those that no latency-sensitive instance owns
  int ownable = 0;           // of these, how many are not reserved
  double claimed_cores = 0;  // what those who own none and may run there count for
  std::vector<BinGpu> gpus;  // ascending by id
};

// A host as placement sees it: as it will be once its plan's pins hold. A value of its own; the snapshot may
// go. Running work first, so newcomers are added with take().
class Host {
 public:
  // `settings` must outlive it.
  Host(const model::Snapshot& snapshot, const PolicySettings& settings);

  const std::string& name() const { return name_; }
  const PolicySettings& settings() const { return *settings_; }
  const std::vector<Bin>& bins() const { return bins_; }  // ascending by NUMA node

  // Cores that a newcomer of this class can have in a bin, and what that is a part of: of its vCPUs those
  // that nobody owns and that may be given out; or, of what is advertised of those that nobody owns, what the
  // claims leave. May be negative for best-effort work.
  double free_cores(const Bin& bin, model::WorkloadClass workload_class) const;
  double total_cores(const Bin& bin, model::WorkloadClass workload_class) const;
  // The same if nobody owned any: what bins are compared by.
  double size_cores(const Bin& bin, model::WorkloadClass workload_class) const;
  // Of the host: neither claimed nor in use.
  std::uint64_t free_memory_bytes() const;
  std::uint64_t total_memory_bytes() const { return memory_total_; }  // as advertised
  // Why the host takes no work at all; empty where it does.
  std::string closed() const;
  bool open() const { return open_; }
  const model::Advertised& advertised() const { return advertised_; }

  // What choosing vCPUs needs: the node, those who own some, and what best-effort work there is.
  const Node& node() const { return *node_; }
  const Occupancy& occupancy() const { return occupancy_; }
  const BestEffortDemand& best_effort() const { return best_effort_; }
  Pressure pressure_of(const std::string& service) const;
  model::InterferenceModel model_of(const std::string& service) const;

  // Lets a newcomer have `cpus` (best-effort work owns none) and `gpus`, indices into the bin's.
  void take(std::size_t bin, const model::PendingWorkload& newcomer, const model::CpuSet& cpus,
            const std::vector<std::size_t>& gpus);

  // Keeps the GPUs that a newcomer was told for it, whether it has a place now or not.
  void promise(const model::PendingWorkload& newcomer);
  // Keeps what a newcomer was promised and has no place for now: nobody else is to have it meanwhile.
  void claim(const model::PendingWorkload& newcomer);

 private:
  // What somebody counts for who owns no vCPUs, and where he may run; nullopt: anywhere.
  struct Claim {
    double cores = 0;
    std::optional<model::CpuSet> within;
  };

  void add_bins(const model::Snapshot& snapshot);
  void add_tenants(const model::Snapshot& snapshot);
  void add_gpus(const model::Snapshot& snapshot);
  void own(const model::CpuSet& cpus);
  void spread(const Claim& claim);
  void spread_claims();
  Tenant tenant_on(const model::CpuSet& cpus, double pressure, const model::InterferenceModel& model) const;

  std::string name_;
  const PolicySettings* settings_;
  std::shared_ptr<const Node> node_;  // never changes, so that copies share it
  std::vector<Bin> bins_;
  Occupancy occupancy_;  // of who owns vCPUs
  BestEffortDemand best_effort_;
  std::vector<Claim> claims_;
  int unowned_ = 0;  // usable vCPUs that no instance owns
  std::uint64_t memory_total_ = 0;
  std::uint64_t memory_claimed_ = 0;
  std::uint64_t memory_available_ = 0;  // of what may be used
  model::Advertised advertised_;
  bool open_ = true;
  std::map<std::string, model::ServiceProfile> services_;
  std::map<std::string, Pressure> pressures_;
};

}  // namespace berth::policies
