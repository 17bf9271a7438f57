// SPDX-License-Identifier: Apache-2.0
#include "policies/vcpus/node.h"

#include "model/count_text.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include <fmt/core.h>

namespace berth::policies {

Node::Node(const model::Topology& topology, model::DomainKind shared_domain, model::CpuSet reserved)
    : reserved_(std::move(reserved)) {
  reserved_ &= topology.usable();
  lone_sockets_ = topology.lone_sockets();
  const bool by_llc = shared_domain == model::DomainKind::llc && topology.has_llc();
  std::map<int, int> dense_core;
  std::vector<int> llc_id;
  std::vector<int> socket_id;
  for (const model::Cpu& cpu : topology.cpus()) {
    if (!cpu.online) continue;
    const int position = size();
    cpus_.push_back(cpu.cpu);
    position_.resize(static_cast<std::size_t>(cpu.cpu) + 1, -1);
    position_[cpu.cpu] = position;
    const bool usable = cpu.allowed && !reserved_.contains(cpu.cpu);
    usable_.push_back(usable ? 1 : 0);
    usable_count_ += usable ? 1 : 0;
    const auto [core, added] = dense_core.emplace(cpu.core, core_count());
    if (added) core_threads_.emplace_back();
    core_.push_back(core->second);
    core_threads_[core->second].push_back(position);
    llc_id.push_back(cpu.llc.value_or(-1));
    socket_id.push_back(topology.socket_domain(cpu));
  }
  add_kinds(topology);
  if (by_llc) add_regions(topology.domains(model::DomainKind::llc), "LLC", llc_id, domain_);
  socket_first_ = static_cast<int>(regions_.size());
  add_regions(topology.sockets(), topology.lone_sockets() ? "NUMA node" : "socket", socket_id, socket_);
  if (!by_llc) domain_ = socket_;
  domain_count_ = by_llc ? socket_first_ : static_cast<int>(regions_.size());

  Region whole{.name = "node", .id = 0, .cpus = {}, .window = {}};
  for (int position = 0; position < size(); ++position) whole.cpus.push_back(position);
  regions_.push_back(std::move(whole));
  for (const int cpu : topology.window_order()) {
    const int at = position(cpu);
    if (!usable(at)) continue;
    regions_.back().window.push_back(at);
    regions_[domain_[at]].window.push_back(at);
    if (by_llc) regions_[socket_[at]].window.push_back(at);
  }
}

void Node::add_regions(const std::vector<model::Domain>& domains, const std::string& kind,
                       const std::vector<int>& domain_of_position, std::vector<int>& region_of_position) {
  std::map<int, int> by_id;
  for (const model::Domain& domain : domains) {
    by_id.emplace(domain.id, static_cast<int>(regions_.size()));
    regions_.push_back(
        {.name = fmt::format("{} {}", kind, domain.id), .id = domain.id, .cpus = {}, .window = {}});
  }
  for (int position = 0; position < size(); ++position) {
    const auto found = by_id.find(domain_of_position[position]);
    region_of_position.push_back(found == by_id.end() ? -1 : found->second);
    if (found != by_id.end()) regions_[found->second].cpus.push_back(position);
  }
}

void Node::add_kinds(const model::Topology& topology) {
  // A rank is missing where the kernel told none.
  const auto capacity = [](const model::Cpu& cpu) { return cpu.efficiency.value_or(-1); };
  std::map<int, int, std::greater<>> kinds;  // most capacity first
  for (const model::Cpu& cpu : topology.cpus()) {
    if (topology.usable().contains(cpu.cpu) && !reserved_.contains(cpu.cpu)) kinds.emplace(capacity(cpu), 0);
  }
  int next = 0;
  for (auto& [rank, kind] : kinds) kind = next++;
  kinds_.resize(kinds.size());
  for (const model::Cpu& cpu : topology.cpus()) {
    if (!cpu.online) continue;
    const auto found = kinds.find(capacity(cpu));
    // A kind without a usable vCPU is nobody's; any number does.
    kind_.push_back(found == kinds.end() ? 0 : found->second);
    kinds_[kind_.back()].insert(cpu.cpu);
  }
}

int Node::kind_of(const model::CpuSet& cpus) const {
  int found = -1;
  for (int kind = 0; kind < kind_count(); ++kind) {
    if (!kinds_[kind].intersects(cpus)) continue;
    if (found >= 0) return -1;
    found = kind;
  }
  return found;
}

int Node::position(int cpu) const {
  return cpu >= 0 && cpu < static_cast<int>(position_.size()) ? position_[cpu] : -1;
}

int Node::largest(int first, int last) const {
  int most = 0;
  for (int region = first; region < last; ++region) {
    most = std::max(most, static_cast<int>(regions_[region].window.size()));
  }
  return most;
}

model::Result<std::vector<int>> Node::regions_for(int vcpus, bool allow_cross_socket) const {
  const auto indices = [](int first, int last) {
    std::vector<int> list;
    for (int region = first; region < last; ++region) list.push_back(region);
    return list;
  };
  if (vcpus <= largest(0, domain_count_)) return indices(0, domain_count_);
  const int socket = largest(socket_first_, whole());
  if (vcpus <= socket) return indices(socket_first_, whole());
  if (allow_cross_socket && vcpus <= usable_count_) return indices(whole(), whole() + 1);
  const std::string asked = model::count_text(vcpus, "vCPU");
  return model::fail(model::ErrorKind::refused,
                     vcpus > usable_count_
                         ? fmt::format("asks {}, the node has {}", asked, usable_count_)
                         : fmt::format("asks {}, the largest {} has {} (allow_cross_socket = false)", asked,
                                       lone_sockets_ ? "NUMA node" : "socket", socket));
}

std::vector<int> Node::positions(const model::CpuSet& cpus) const {
  std::vector<int> list;
  for (const int cpu : cpus) {
    if (const int at = position(cpu); at >= 0) list.push_back(at);
  }
  return list;
}

model::CpuSet Node::cpu_set(const std::vector<int>& positions) const {
  model::CpuSet set;
  for (const int at : positions) set.insert(cpus_[at]);
  return set;
}

}  // namespace berth::policies
