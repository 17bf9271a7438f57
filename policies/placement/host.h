// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/snapshot.h"
#include "policies/placement/gpu_links.h"
#include "policies/settings.h"
#include "policies/vcpus/node.h"
#include "policies/vcpus/occupancy.h"
#include "policies/vcpus/pressure.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace berth::policies {

struct BinGpu {
  std::string id;
  int numa = 0;  // the node of its bin
  std::string model;
  std::optional<std::uint64_t> free_bytes;  // nullopt: not known
  bool healthy = true;
  std::optional<std::string> holder;  // the workload that has it alone
  int users = 0;                      // workloads that share it; all other processes on it count as one more
  // Promised to a workload that has not started yet: alone, or shared by so many.
  bool promised = false;
  int promised_shares = 0;
  std::optional<std::size_t> links_row = std::nullopt;  // in the bin's `links`

  // Not used, and not promised.
  bool idle() const { return healthy && !holder && users == 0 && !promised && promised_shares == 0; }
};

// One NUMA node, or a set of them as one. A request is placed in one whole (docs/decisions/placement.md).
struct Bin {
  int numa = 0;              // of a set, the lowest
  model::CpuSet nodes;       // all of its NUMA nodes
  model::CpuSet cpus;        // usable
  model::CpuSet unowned;     // of these, those that no latency-sensitive instance owns
  int ownable = 0;           // number of these that are not reserved
  double shared_cores = 0;   // claims of services without vCPUs of their own by their isolation
  double claimed_cores = 0;  // claims of workloads without vCPUs of their own that may run there
  std::vector<BinGpu> gpus;  // ascending by id
  std::shared_ptr<const GpuLinks> links = nullptr;  // of the host; null where none is known
};

// A place for a newcomer on a host.
struct Spot {
  model::CpuSet nodes;            // the NUMA nodes of its bin
  model::CpuSet cpus;             // owned by latency-sensitive work, shared by best-effort work
  std::vector<std::string> gpus;  // ids
};

// Figures of a place in the order of docs/decisions/placement.md: the least is the best.
using PlaceOrder = std::array<double, 10>;

// A host as placement sees it: in its state once its plan's pins hold. It is a value of its own and outlives
// the snapshot. It starts with the running work; take() adds newcomers.
class Host {
 public:
  // `settings` must outlive it.
  Host(const model::Snapshot& snapshot, const PolicySettings& settings)
      : Host(snapshot, settings, snapshot.advertised) {}
  // With another advertisement than the snapshot's.
  Host(const model::Snapshot& snapshot, const PolicySettings& settings, const model::Advertised& advertised);

  const std::string& name() const { return name_; }
  const PolicySettings& settings() const { return *settings_; }
  // No instance may own these.
  const model::CpuSet& withheld() const { return withheld_; }
  const std::vector<Bin>& bins() const { return bins_; }  // ascending by NUMA node
  // Several bins as one; indices, ascending, at least one.
  Bin together(const std::vector<std::size_t>& bins) const;
  // How far two bins are from each other: the mean of both directions, as the firmware tells it. Where it
  // tells nothing, 12 within a socket and 32 across. Indices below kMostDistantNodes.
  double distance(std::size_t a, std::size_t b) const;

  // Cores that a newcomer of this class can have in a bin, and the total that they are a part of.
  // Latency-sensitive: the bin's unowned vCPUs that may be given out, less what shared services claim.
  // Best-effort: the advertised factor times the unowned vCPUs, less the claims; it may be negative.
  double free_cores(const Bin& bin, model::WorkloadClass workload_class) const;
  double total_cores(const Bin& bin, model::WorkloadClass workload_class) const;
  // The total without any owner: the size for comparing bins.
  double size_cores(const Bin& bin, model::WorkloadClass workload_class) const;
  // The host's memory that is neither claimed nor in use.
  std::uint64_t free_memory_bytes() const;
  std::uint64_t total_memory_bytes() const { return memory_total_; }  // as advertised
  // Why the host takes no work at all; empty where it takes work.
  std::string closed() const;
  bool open() const { return open_; }
  const model::Advertised& advertised() const { return advertised_; }

  // Input for choosing vCPUs: the node, the owners, and the best-effort work.
  const Node& node() const { return *node_; }
  const Occupancy& occupancy() const { return occupancy_; }
  const BestEffortDemand& best_effort() const { return best_effort_; }
  Pressure pressure_of(const std::string& service) const;
  model::InterferenceModel model_of(const std::string& service) const;
  // Whether the newcomer is latency-sensitive, and owns no vCPUs by its isolation.
  bool shares(const model::PendingWorkload& newcomer) const;
  // A latency-sensitive newcomer that owns `cpus`.
  Tenant tenant_of(const model::PendingWorkload& newcomer, const model::CpuSet& cpus) const;
  // Whether a latency-sensitive instance of the service runs here, or has a place here.
  bool has_instance_of(const std::string& service) const { return instances_of_.contains(service); }

  // Gives a newcomer its place. Best-effort work owns no vCPUs there.
  void take(const Spot& spot, const model::PendingWorkload& newcomer);

  // Keeps the GPUs that a newcomer's admission named for it, whether it has a place now or not.
  void promise(const model::PendingWorkload& newcomer);
  // Keeps the promised resources of a newcomer that has no place for now: no other workload gets them
  // meanwhile.
  void claim(const model::PendingWorkload& newcomer);

 private:
  // The CPU claim of workloads that own no vCPUs, and where they may run; nullopt: anywhere.
  struct Claim {
    double cores = 0;
    std::optional<model::CpuSet> within;
    bool shared = false;  // of a service
  };

  void add_bins(const model::Snapshot& snapshot);
  void measure(const model::Topology& topology);
  void add_tenants(const model::Snapshot& snapshot);
  void add_gpus(const model::Snapshot& snapshot);
  void own(const model::CpuSet& cpus);
  model::CpuSet unowned_cpus() const;
  // `over`: unowned_cpus().
  void spread(const Claim& claim, model::CpuSet over);
  void spread_claims();
  Tenant tenant_on(const model::CpuSet& cpus, double pressure, const model::InterferenceModel& model) const;

  std::string name_;
  const PolicySettings* settings_;
  std::shared_ptr<const Node> node_;  // never changes, so that copies share it
  std::vector<Bin> bins_;
  // distance(a, b) at a * width + b, where width is bins_.size() or kMostDistantNodes. It never changes.
  std::shared_ptr<const std::vector<double>> distances_;
  Occupancy occupancy_;  // the owners of vCPUs
  BestEffortDemand best_effort_;
  std::vector<Claim> claims_;
  model::CpuSet withheld_;  // reserved, or of other programs
  double shared_ = 0;       // cores that shared services claim
  int unowned_ = 0;         // usable vCPUs that no instance owns
  std::uint64_t memory_total_ = 0;
  std::uint64_t memory_claimed_ = 0;
  std::uint64_t memory_available_ = 0;  // of the memory that may be used
  model::Advertised advertised_;
  bool open_ = true;
  // These never change, so that copies share them.
  std::shared_ptr<const std::map<std::string, model::ServiceProfile>> services_;
  std::shared_ptr<const std::map<std::string, Pressure>> pressures_;
  std::set<std::string> instances_of_;  // services
};

}  // namespace berth::policies
