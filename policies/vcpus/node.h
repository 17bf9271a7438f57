// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"
#include "model/topology.h"

#include <string>
#include <vector>

namespace berth::policies {

// A set of vCPUs that may be one instance's domain: an LLC domain, a socket, or the whole node.
struct Region {
  std::string name;         // "LLC 0", "socket 1", "NUMA node 1" (Topology::lone_sockets()), "node"
  int id = 0;               // the domain's id in the topology
  std::vector<int> cpus;    // positions of the online vCPUs, ascending
  std::vector<int> window;  // positions of the usable ones, in window order
};

// The topology as dense arrays, for code that visits vCPUs millions of times. A *position* numbers the online
// vCPUs 0..size()-1, ascending by vCPU number; cores and regions are numbered densely too. Scores count every
// online vCPU; only usable ones are given out (docs/decisions/pinning.md, domains). Policies make it by
// node_to_plan().
class Node {
 public:
  // `reserved`: vCPUs that are not usable either.
  Node(const model::Topology& topology, model::DomainKind shared_domain, model::CpuSet reserved = {});

  // Online vCPUs.
  int size() const { return static_cast<int>(cpus_.size()); }
  int usable_count() const { return usable_count_; }
  int cpu(int position) const { return cpus_[position]; }
  // -1 for a vCPU that is unknown or offline.
  int position(int cpu) const;
  bool usable(int position) const { return usable_[position] != 0; }
  // vCPUs that are not usable only because they are reserved.
  const model::CpuSet& reserved() const { return reserved_; }

  int core(int position) const { return core_[position]; }
  int core_count() const { return static_cast<int>(core_threads_.size()); }
  // Positions of a core's online threads.
  const std::vector<int>& core_threads(int core) const { return core_threads_[core]; }

  // The kinds of cores of a hybrid processor by capacity: 0 has the most. 1 where all usable cores are alike.
  int kind_count() const { return static_cast<int>(kinds_.size()); }
  int kind(int position) const { return kind_[position]; }
  // The online vCPUs of a kind.
  const model::CpuSet& kind_cpus(int kind) const { return kinds_[kind]; }
  // The kind of all vCPUs of a set that are online; -1 where there are several or none.
  int kind_of(const model::CpuSet& cpus) const;

  // The domains come first (indices 0..domain_count()-1, ascending by id), then the sockets where domains are
  // LLCs, then the node.
  const std::vector<Region>& regions() const { return regions_; }
  const Region& region(int index) const { return regions_[index]; }
  int domain_count() const { return domain_count_; }
  // Region index of the domain or socket that holds the vCPU; -1 for one outside every listed domain.
  int domain(int position) const { return domain_[position]; }
  int socket(int position) const { return socket_[position]; }
  int whole() const { return static_cast<int>(regions_.size()) - 1; }
  bool holds(int region, int position) const {
    return domain_[position] == region || socket_[position] == region || region == whole();
  }

  // Regions a request of this size may be placed in: the domains if one is large enough, else the sockets.
  // Else it is the node, where that is allowed. Error `refused` names the region that is too small.
  model::Result<std::vector<int>> regions_for(int vcpus, bool allow_cross_socket) const;

  std::vector<int> positions(const model::CpuSet& cpus) const;
  model::CpuSet cpu_set(const std::vector<int>& positions) const;

 private:
  void add_regions(const std::vector<model::Domain>& domains, const std::string& kind,
                   const std::vector<int>& domain_of_position, std::vector<int>& region_of_position);
  void add_kinds(const model::Topology& topology);
  int largest(int first, int last) const;

  std::vector<int> cpus_;
  std::vector<int> position_;  // by vCPU number
  std::vector<char> usable_;
  model::CpuSet reserved_;
  std::vector<int> core_;
  std::vector<int> kind_;
  std::vector<model::CpuSet> kinds_;
  std::vector<std::vector<int>> core_threads_;
  std::vector<Region> regions_;
  std::vector<int> domain_;
  std::vector<int> socket_;
  int domain_count_ = 0;
  int socket_first_ = 0;
  int usable_count_ = 0;
  bool lone_sockets_ = false;
};

}  // namespace berth::policies
