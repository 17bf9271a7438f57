// SPDX-License-Identifier: Apache-2.0
#include "policies/straggler/domain.h"

#include "policies/level.h"
#include "policies/vcpus/pin_check.h"
#include "policies/vcpus/pool.h"

#include <algorithm>

namespace berth::policies {

namespace {

// The region that a task's pin lies in; -1 where it has no pin, or a faulty one.
int region_of_pin(const Node& node, const InterferenceSettings& settings, const model::Workload& task) {
  if (!task.vcpus || task.cpus.empty() || task.shares) return -1;
  return check_place(node, settings, task, static_cast<int>(task.cpus.size())).region;
}

// Regions that the task may grow in.
std::vector<int> regions_of(const Node& node, const InterferenceSettings& settings,
                            const model::Workload& task) {
  if (!task.vcpus || is_shared(task, settings)) return {node.whole()};
  if (const int region = region_of_pin(node, settings, task); region >= 0) return {region};
  const auto regions = node.regions_for(*task.vcpus, settings.allow_cross_socket);
  return regions ? *regions : std::vector<int>{node.whole()};
}

// Regions are the same, nested, or apart.
bool overlap(const Node& node, int a, int b) {
  const auto inside = [&node](int inner, int outer) {
    const std::vector<int>& cpus = node.region(inner).cpus;
    return !cpus.empty() && node.holds(outer, cpus.front());
  };
  return inside(a, b) || inside(b, a);
}

model::CpuSet owned_by_others(const std::vector<model::Workload>& workloads, const model::Workload& task) {
  model::CpuSet owned;
  for (const model::Workload& other : workloads) {
    const bool owns = other.workload_class == model::WorkloadClass::latency_sensitive;
    if (owns && !other.shares && other.id != task.id) owned |= other.cpus;
  }
  return owned;
}

}  // namespace

Domains::Domains(const model::Snapshot& snapshot, const InterferenceSettings& settings)
    : snapshot_(snapshot), settings_(settings) {}

const Node& Domains::node() const {
  if (!node_) node_ = node_to_plan(snapshot_, settings_);
  return *node_;
}

int Domains::room(const model::Workload& task, int region, int kind, const model::CpuSet& others) const {
  const std::vector<int>& window = node().region(region).window;
  const auto ownable = std::count_if(window.begin(), window.end(), [&](int position) {
    const int cpu = node().cpu(position);
    return node().kind(position) == kind && !settings_.reserved_cpus.contains(cpu) && !others.contains(cpu) &&
           (!task.allowed_cpus || task.allowed_cpus->contains(cpu));
  });
  int left = static_cast<int>(ownable);
  for (const Claim& claim : claims_)
    if (overlap(node(), claim.region, region)) left -= claim.vcpus;
  return left;
}

int Domains::most(const model::Workload& task) const {
  const model::CpuSet others = owned_by_others(snapshot_.workloads, task);
  int most = 0;
  // It has cores of one kind, and keeps to that of its pin.
  const int own_kind = node().kind_of(task.cpus);
  for (const int region : regions_of(node(), settings_, task)) {
    for (int kind = 0; kind < node().kind_count(); ++kind) {
      if (own_kind < 0 || kind == own_kind) most = std::max(most, room(task, region, kind, others));
    }
  }
  const std::vector<int>& usable = node().region(node().whole()).window;
  const auto taken = std::count_if(usable.begin(), usable.end(),
                                   [&](int position) { return others.contains(node().cpu(position)); });
  int ownable = node().usable_count() - std::max(1, settings_.be_min_cpus) - static_cast<int>(taken);
  for (const Claim& claim : claims_) ownable -= claim.vcpus;
  return std::clamp(ownable, 0, most);
}

void Domains::claim(const model::Workload& task, int vcpus) {
  const int region = region_of_pin(node(), settings_, task);
  const int needed = vcpus - static_cast<int>(task.cpus.size());
  if (region >= 0 && needed > 0) claims_.push_back({.region = region, .vcpus = needed});
}

}  // namespace berth::policies
