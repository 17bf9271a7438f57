// SPDX-License-Identifier: Apache-2.0
#include "model/topology.h"

#include "model/name.h"

#include <algorithm>
#include <set>

#include <fmt/core.h>

namespace berth::model {

namespace {

std::string shown(const std::optional<int>& index) { return index ? std::to_string(*index) : "none"; }

tl::unexpected<Error> wrong(const char* list, std::size_t index, std::string_view why) {
  return fail(ErrorKind::invalid_input, fmt::format("{}[{}]: {}", list, index, why));
}

// Indices are positions among at most kMaxCpu + 1 things.
bool index_in_range(int index) { return index >= 0 && index <= kMaxCpu; }

std::optional<std::string> indices_wrong(const Cpu& cpu) {
  const auto check = [](const char* what, int index) -> std::optional<std::string> {
    if (index_in_range(index)) return std::nullopt;
    return fmt::format("{} {} is not between 0 and {}", what, index, kMaxCpu);
  };
  if (auto problem = check("vCPU", cpu.cpu)) return problem;
  if (auto problem = check("core", cpu.core)) return problem;
  if (auto problem = check("LLC", cpu.llc.value_or(0))) return problem;
  if (auto problem = check("NUMA node", cpu.numa)) return problem;
  if (auto problem = check("socket", cpu.socket)) return problem;
  return check("efficiency rank", cpu.efficiency.value_or(0));
}

Result<void> check_cpus(const std::vector<Cpu>& cpus) {
  std::map<int, std::size_t> seen;                   // vCPU -> index
  std::map<int, std::size_t> core_first, llc_first;  // core, LLC -> index of its first vCPU
  bool any_usable = false;
  for (std::size_t index = 0; index < cpus.size(); ++index) {
    const Cpu& cpu = cpus[index];
    if (const auto problem = indices_wrong(cpu)) return wrong("cpus", index, *problem);
    if (const auto [other, fresh] = seen.emplace(cpu.cpu, index); !fresh)
      return wrong("cpus", index, fmt::format("vCPU {} is already at cpus[{}]", cpu.cpu, other->second));
    const auto [core, new_core] = core_first.emplace(cpu.core, index);
    const Cpu& sibling = cpus[core->second];
    if (!new_core && (sibling.llc != cpu.llc || sibling.numa != cpu.numa || sibling.socket != cpu.socket))
      return wrong(
          "cpus", index,
          fmt::format("vCPU {} shares core {} with vCPU {}, but its LLC {}, NUMA node {}, socket {} are "
                      "not that one's {}, {}, {}",
                      cpu.cpu, cpu.core, sibling.cpu, shown(cpu.llc), cpu.numa, cpu.socket,
                      shown(sibling.llc), sibling.numa, sibling.socket));
    if (cpu.llc) {
      const auto [llc, new_llc] = llc_first.emplace(*cpu.llc, index);
      const Cpu& neighbour = cpus[llc->second];
      if (!new_llc && neighbour.socket != cpu.socket)
        return wrong("cpus", index,
                     fmt::format("LLC {} is on socket {} here and on socket {} at cpus[{}]", *cpu.llc,
                                 cpu.socket, neighbour.socket, llc->second));
    }
    any_usable = any_usable || (cpu.online && cpu.allowed);
  }
  if (!any_usable)
    return fail(ErrorKind::invalid_input,
                cpus.empty() ? "cpus: no vCPU at all" : "cpus: no vCPU is both online and allowed");
  return {};
}

const GpuPeer* peer_in(const Gpu& gpu, std::string_view id) {
  const auto found =
      std::lower_bound(gpu.links.begin(), gpu.links.end(), id,
                       [](const GpuPeer& peer, std::string_view name) { return peer.id < name; });
  return found != gpu.links.end() && found->id == id ? &*found : nullptr;
}

// Why a link of a GPU cannot be; `other`: the GPU that it leads to, null where there is none.
std::optional<std::string> link_wrong(const Gpu& gpu, std::size_t link, const Gpu* other) {
  const GpuPeer& peer = gpu.links[link];
  if (link > 0 && peer.id <= gpu.links[link - 1].id)
    return fmt::format("the link to GPU {} is not in ascending order", to_name(peer.id));
  if (other == nullptr)
    return fmt::format("it has a link to GPU {}, which is not in the list", to_name(peer.id));
  if (other == &gpu) return fmt::format("GPU {} has a link to itself", to_name(peer.id));
  const GpuPeer* back = peer_in(*other, gpu.id);
  if (back == nullptr || back->link == peer.link) return std::nullopt;
  return fmt::format("its link to GPU {} is {}, but that one's link back is {}", to_name(peer.id),
                     to_string(peer.link), to_string(back->link));
}

Result<void> check_links(const std::vector<Gpu>& gpus, const std::map<std::string_view, std::size_t>& at) {
  std::vector<bool> linked(gpus.size());
  for (std::size_t index = 0; index < gpus.size(); ++index) {
    for (std::size_t link = 0; link < gpus[index].links.size(); ++link) {
      const auto other = at.find(gpus[index].links[link].id);
      const Gpu* peer = other == at.end() ? nullptr : &gpus[other->second];
      if (const auto problem = link_wrong(gpus[index], link, peer)) return wrong("gpus", index, *problem);
      linked[index] = linked[other->second] = true;
    }
  }
  const auto count = static_cast<std::size_t>(std::count(linked.begin(), linked.end(), true));
  if (count <= kMostLinkedGpus) return {};
  return fail(ErrorKind::invalid_input,
              fmt::format("gpus: {} of them have links; at most {} can have any", count, kMostLinkedGpus));
}

Result<void> check_gpus(const std::vector<Gpu>& gpus) {
  std::map<std::string_view, std::size_t> seen;
  for (std::size_t index = 0; index < gpus.size(); ++index) {
    const Gpu& gpu = gpus[index];
    if (gpu.id.empty()) return wrong("gpus", index, "the id is empty");
    if (const auto [other, fresh] = seen.emplace(gpu.id, index); !fresh)
      return wrong("gpus", index, fmt::format("GPU {} is already at gpus[{}]", gpu.id, other->second));
    if (gpu.numa && !index_in_range(*gpu.numa))
      return wrong("gpus", index, fmt::format("NUMA node {} is not between 0 and {}", *gpu.numa, kMaxCpu));
    if (gpu.memory_bytes && gpu.memory_used_bytes > gpu.memory_bytes)
      return wrong("gpus", index,
                   fmt::format("{} bytes used of {}", *gpu.memory_used_bytes, *gpu.memory_bytes));
    if (gpu.utilisation && !(*gpu.utilisation >= 0 && *gpu.utilisation <= 1))
      return wrong("gpus", index, fmt::format("utilisation {} is not between 0 and 1", *gpu.utilisation));
    if (gpu.other_processes && *gpu.other_processes < 0)
      return wrong("gpus", index, fmt::format("{} other processes", *gpu.other_processes));
  }
  return check_links(gpus, seen);
}

Result<void> check_distances(const NumaDistances& distances) {
  const auto bad = [](std::string_view why) {
    return fail(ErrorKind::invalid_input, fmt::format("numa_distances: {}", why));
  };
  const auto& [nodes, values] = distances;
  if (nodes.size() > kMostDistantNodes)
    return bad(fmt::format("{} NUMA nodes; at most {} can have distances", nodes.size(), kMostDistantNodes));
  for (std::size_t index = 0; index < nodes.size(); ++index) {
    if (!index_in_range(nodes[index]))
      return bad(fmt::format("NUMA node {} is not between 0 and {}", nodes[index], kMaxCpu));
    if (index > 0 && nodes[index] <= nodes[index - 1])
      return bad(fmt::format("NUMA node {} does not come after {}", nodes[index], nodes[index - 1]));
  }
  if (values.size() != nodes.size() * nodes.size())
    return bad(fmt::format("{} values for {} NUMA nodes; {} are needed", values.size(), nodes.size(),
                           nodes.size() * nodes.size()));
  for (const int value : values) {
    if (value < 1 || value > kMaxNumaDistance)
      return bad(fmt::format("distance {} is not between 1 and {}", value, kMaxNumaDistance));
  }
  return {};
}

Result<void> check_nodes(const std::vector<NumaNode>& nodes) {
  const auto bad = [](std::string_view why) {
    return fail(ErrorKind::invalid_input, fmt::format("numa_nodes: {}", why));
  };
  if (nodes.size() > kMostNumaNodes)
    return bad(fmt::format("{} NUMA nodes; at most {} can be listed", nodes.size(), kMostNumaNodes));
  for (std::size_t index = 0; index < nodes.size(); ++index) {
    if (!index_in_range(nodes[index].number))
      return bad(fmt::format("NUMA node {} is not between 0 and {}", nodes[index].number, kMaxCpu));
    if (index > 0 && nodes[index].number <= nodes[index - 1].number)
      return bad(
          fmt::format("NUMA node {} does not come after {}", nodes[index].number, nodes[index - 1].number));
  }
  return {};
}

bool sockets_are_lone(const std::vector<Cpu>& cpus) {
  std::map<int, int> core_of_socket;
  std::map<int, int> socket_of_node;
  bool several = false;  // sockets of one NUMA node
  for (const Cpu& cpu : cpus) {
    if (!cpu.online) continue;
    if (core_of_socket.emplace(cpu.socket, cpu.core).first->second != cpu.core) return false;
    several = several || socket_of_node.emplace(cpu.numa, cpu.socket).first->second != cpu.socket;
  }
  return several;
}

template <typename IdOf>
std::vector<Domain> group(const std::vector<Cpu>& cpus, IdOf id_of) {
  std::map<int, Domain> by_id;
  for (const Cpu& cpu : cpus) {
    const auto id = id_of(cpu);
    if (!cpu.online || !cpu.allowed || !id) continue;
    Domain& domain = by_id[*id];
    domain.id = *id;
    domain.socket = cpu.socket;
    domain.cpus.insert(cpu.cpu);
  }
  std::vector<Domain> domains;
  domains.reserve(by_id.size());
  for (auto& [id, domain] : by_id) domains.push_back(std::move(domain));
  return domains;
}

}  // namespace

const char* to_string(GpuLink link) {
  switch (link) {
    case GpuLink::nv:
      return "NV";
    case GpuLink::pix:
      return "PIX";
    case GpuLink::pxb:
      return "PXB";
    case GpuLink::phb:
      return "PHB";
    case GpuLink::node:
      return "NODE";
    case GpuLink::sys:
      break;
  }
  return "SYS";
}

std::optional<GpuLink> link_between(const Gpu& a, const Gpu& b) {
  const GpuPeer* peer = peer_in(a, b.id);
  if (peer == nullptr) peer = peer_in(b, a.id);
  return peer == nullptr ? std::nullopt : std::optional(peer->link);
}

std::optional<int> NumaDistances::between(int from, int to) const {
  const auto row = std::lower_bound(nodes.begin(), nodes.end(), from);
  const auto column = std::lower_bound(nodes.begin(), nodes.end(), to);
  if (row == nodes.end() || *row != from || column == nodes.end() || *column != to) return std::nullopt;
  const auto at = static_cast<std::size_t>(row - nodes.begin()) * nodes.size() +
                  static_cast<std::size_t>(column - nodes.begin());
  return values[at];
}

Result<Topology> Topology::make(std::vector<Cpu> cpus, std::vector<Gpu> gpus, NumaDistances numa_distances,
                                std::vector<NumaNode> numa_nodes) {
  if (const auto checked = check_cpus(cpus); !checked) return fail(checked.error());
  if (const auto checked = check_gpus(gpus); !checked) return fail(checked.error());
  if (const auto checked = check_distances(numa_distances); !checked) return fail(checked.error());
  if (const auto checked = check_nodes(numa_nodes); !checked) return fail(checked.error());

  Topology topology;
  topology.numa_distances_ = std::move(numa_distances);
  topology.numa_nodes_ = std::move(numa_nodes);
  topology.cpus_ = std::move(cpus);
  topology.gpus_ = std::move(gpus);
  std::sort(topology.cpus_.begin(), topology.cpus_.end(),
            [](const Cpu& a, const Cpu& b) { return a.cpu < b.cpu; });

  topology.has_llc_ = true;
  for (const Cpu& cpu : topology.cpus_) {
    topology.all_.insert(cpu.cpu);
    topology.nodes_to_bind_.insert(cpu.numa);
    if (!cpu.online || !cpu.allowed) continue;
    topology.usable_.insert(cpu.cpu);
    topology.core_threads_[cpu.core].insert(cpu.cpu);
    topology.has_llc_ = topology.has_llc_ && cpu.llc.has_value();
  }
  for (const NumaNode& node : topology.numa_nodes_) {
    if (node.memory_bytes == 0) topology.nodes_to_bind_.erase(node.number);
  }
  topology.lone_sockets_ = sockets_are_lone(topology.cpus_);
  topology.has_llc_ = topology.has_llc_ && !topology.lone_sockets_;
  topology.sockets_ = group(topology.cpus_, [&topology](const Cpu& cpu) {
    return std::optional<int>(topology.socket_domain(cpu));
  });
  topology.llcs_ = group(topology.cpus_, [](const Cpu& cpu) { return cpu.llc; });

  // Cores ascending by their lowest usable vCPU, then rank by rank.
  std::map<int, const CpuSet*> cores;
  for (const auto& [core, threads] : topology.core_threads_) cores.emplace(threads.first(), &threads);
  std::vector<std::vector<int>> threads_of;
  for (const auto& [lowest, threads] : cores) {
    threads_of.push_back(threads->to_vector());
    topology.max_threads_ = std::max(topology.max_threads_, static_cast<int>(threads->size()));
  }
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(topology.max_threads_); ++rank)
    for (const auto& threads : threads_of)
      if (rank < threads.size()) topology.window_order_.push_back(threads[rank]);
  return topology;
}

Result<void> Topology::set_gpus(std::vector<Gpu> gpus) {
  if (auto checked = check_gpus(gpus); !checked) return checked;
  gpus_ = std::move(gpus);
  return {};
}

const Cpu* Topology::find(int cpu) const {
  const auto found = std::lower_bound(cpus_.begin(), cpus_.end(), cpu, [](const Cpu& candidate, int wanted) {
    return candidate.cpu < wanted;
  });
  return found != cpus_.end() && found->cpu == cpu ? &*found : nullptr;
}

const CpuSet& Topology::core_threads(int cpu) const {
  static const CpuSet kNone;
  const Cpu* found = find(cpu);
  if (found == nullptr) return kNone;
  const auto threads = core_threads_.find(found->core);
  return threads == core_threads_.end() ? kNone : threads->second;
}

int Topology::smt_rank(int cpu) const {
  const CpuSet& threads = core_threads(cpu);
  if (!threads.contains(cpu)) return -1;
  int rank = 0;
  for (const int thread : threads) {
    if (thread == cpu) break;
    ++rank;
  }
  return rank;
}

const std::vector<Domain>& Topology::domains(DomainKind kind) const {
  return kind == DomainKind::llc && has_llc_ ? llcs_ : sockets_;
}

}  // namespace berth::model
