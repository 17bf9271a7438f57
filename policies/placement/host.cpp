// SPDX-License-Identifier: Apache-2.0
#include "policies/placement/host.h"

#include "model/json.h"
#include "policies/level.h"
#include "policies/memory_capacity.h"
#include "policies/pins.h"
#include "policies/share.h"
#include "policies/usage.h"
#include "policies/vcpus/pool.h"
#include "policies/workload_index.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <fmt/core.h>

namespace berth::policies {

namespace {

bool latency_sensitive(model::WorkloadClass workload_class) {
  return workload_class == model::WorkloadClass::latency_sensitive;
}

// Of two NUMA nodes whose distance the firmware does not tell: as on hosts of AMD with several nodes a
// socket.
constexpr double kSameSocket = 12;
constexpr double kOtherSocket = 32;

double factor_of(const std::optional<model::AdvertisedResource>& advertised) {
  return advertised ? advertised->factor : 1;
}

std::uint64_t less(std::uint64_t from, std::uint64_t amount) { return from - std::min(from, amount); }

std::optional<std::uint64_t> free_memory(const model::Gpu& gpu) {
  if (!gpu.memory_bytes || !gpu.memory_used_bytes) return std::nullopt;
  return less(*gpu.memory_bytes, *gpu.memory_used_bytes);
}

// Each part is at most kMaxBytes, but the sum of many may be more.
std::uint64_t sum(std::uint64_t a, std::uint64_t b) { return std::min(model::kMaxBytes, a + b); }

// Its request or its use, whichever is more.
std::uint64_t claimed_memory(const model::Workload& workload) {
  return std::max(workload.memory_request_bytes, latest_memory(workload).value_or(0));
}

std::uint64_t advertised_memory(const model::MemoryState& memory, double factor,
                                const OversellSettings& settings) {
  const auto capacity = static_cast<double>(memory_capacity(memory, settings));
  return static_cast<std::uint64_t>(std::min(factor * capacity, static_cast<double>(model::kMaxBytes)));
}

// Available memory without the part that may not be used.
std::uint64_t available_memory(const model::MemoryState& memory, const OversellSettings& settings) {
  return less(memory.available_bytes, memory.total_bytes - memory_capacity(memory, settings));
}

}  // namespace

Host::Host(const model::Snapshot& snapshot, const PolicySettings& settings,
           const model::Advertised& advertised)
    : name_(snapshot.host),
      settings_(&settings),
      node_(std::make_shared<const Node>(node_to_plan(snapshot, settings.interference))),
      occupancy_(*node_, {}),
      withheld_(settings.interference.reserved_cpus | of_any_owner(snapshot.owned_cpus)),
      unowned_(node_->usable_count()),
      memory_total_(advertised_memory(snapshot.memory, factor_of(advertised.memory), settings.oversell)),
      memory_available_(available_memory(snapshot.memory, settings.oversell)),
      advertised_(advertised),
      services_(std::make_shared<const std::map<std::string, model::ServiceProfile>>(snapshot.services)),
      pressures_(std::make_shared<const std::map<std::string, Pressure>>(
          service_pressures(snapshot, workloads_by_id(snapshot)))) {
  best_effort_.min_cpus = std::max(1, settings.interference.be_min_cpus);
  best_effort_.avoid_siblings = settings.interference.be_avoid_siblings;
  add_bins(snapshot);
  add_gpus(snapshot);
  add_tenants(snapshot);
  open_ = closed().empty();
}

void Host::add_bins(const model::Snapshot& snapshot) {
  std::map<int, Bin> bins;
  for (const model::Cpu& cpu : snapshot.topology.cpus()) {
    if (!cpu.online || !cpu.allowed) continue;
    Bin& bin = bins[cpu.numa];
    if (!node_->reserved().contains(cpu.cpu)) bin.cpus.insert(cpu.cpu);
  }
  for (const model::Gpu& gpu : snapshot.topology.gpus()) {
    if (gpu.numa) bins[*gpu.numa];
  }
  for (auto& [numa, bin] : bins) {
    bin.numa = numa;
    bin.nodes.insert(numa);
    bin.unowned = bin.cpus;
    bin.ownable = static_cast<int>((bin.cpus - withheld_).size());
    bins_.push_back(std::move(bin));
  }
  measure(snapshot.topology);
}

void Host::measure(const model::Topology& topology) {
  const std::size_t width = std::min(bins_.size(), model::kMostDistantNodes);
  std::vector<int> sockets;
  for (std::size_t i = 0; i < width; ++i) {
    const model::Cpu* first = topology.find(bins_[i].cpus.first());
    sockets.push_back(first == nullptr ? -1 : first->socket);
  }
  std::vector<double> distances(width * width);
  for (std::size_t i = 0; i < width; ++i) {
    for (std::size_t j = 0; j < width; ++j) {
      const auto there = topology.numa_distances().between(bins_[i].numa, bins_[j].numa);
      const auto back = topology.numa_distances().between(bins_[j].numa, bins_[i].numa);
      const double unknown = sockets[i] == sockets[j] && sockets[i] >= 0 ? kSameSocket : kOtherSocket;
      distances[i * width + j] = there && back ? (*there + *back) / 2.0 : unknown;
    }
  }
  distances_ = std::make_shared<const std::vector<double>>(std::move(distances));
}

double Host::distance(std::size_t a, std::size_t b) const {
  const std::size_t width = std::min(bins_.size(), model::kMostDistantNodes);
  return (*distances_)[a * width + b];
}

Bin Host::together(const std::vector<std::size_t>& bins) const {
  Bin sum = bins_[bins.front()];
  for (std::size_t i = 1; i < bins.size(); ++i) {
    const Bin& bin = bins_[bins[i]];
    sum.nodes |= bin.nodes;
    sum.cpus |= bin.cpus;
    sum.unowned |= bin.unowned;
    sum.ownable += bin.ownable;
    sum.shared_cores += bin.shared_cores;
    sum.claimed_cores += bin.claimed_cores;
    sum.gpus.insert(sum.gpus.end(), bin.gpus.begin(), bin.gpus.end());
  }
  std::sort(sum.gpus.begin(), sum.gpus.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  return sum;
}

// A GPU whose place the kernel does not know, as on hosts with one NUMA node, is in the first bin.
void Host::add_gpus(const model::Snapshot& snapshot) {
  std::unordered_map<std::string, int> users;
  for (const model::Workload& workload : snapshot.workloads) {
    for (const std::string& gpu : workload.gpus) ++users[gpu];
  }
  auto links = std::make_shared<const GpuLinks>(snapshot.topology.gpus());
  for (const model::Gpu& gpu : snapshot.topology.gpus()) {
    const auto home = std::find_if(bins_.begin(), bins_.end(),
                                   [&](const Bin& bin) { return !gpu.numa || bin.numa == *gpu.numa; });
    home->gpus.push_back({.id = gpu.id,
                          .numa = home->numa,
                          .model = gpu.model,
                          .free_bytes = free_memory(gpu),
                          .healthy = gpu.healthy,
                          .holder = gpu.holder,
                          .users = users[gpu.id] + (gpu.other_processes.value_or(0) > 0 ? 1 : 0),
                          .links_row = links->row_of(gpu.id)});
  }
  for (Bin& bin : bins_) {
    if (links->any()) bin.links = links;
    std::sort(bin.gpus.begin(), bin.gpus.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  }
}

void Host::add_tenants(const model::Snapshot& snapshot) {
  const auto pins = planned_pins(snapshot, *settings_);
  Claim anywhere;
  for (const model::Workload* workload : workloads_by_id(snapshot)) {
    memory_claimed_ = sum(memory_claimed_, claimed_memory(*workload));
    const bool sensitive = latency_sensitive(workload->workload_class);
    if (!sensitive) best_effort_.use_cores += mean_cores(*workload);
    if (sensitive) instances_of_.insert(workload->service);
    const auto placed = pins.find(workload->id);
    if (placed != pins.end()) {
      occupancy_.add(tenant_on(placed->second.cpus, placed->second.pressure, model_of(workload->service)));
      own(placed->second.cpus);
      continue;
    }
    if (workload->left_alone) continue;  // it has vCPUs of its own that no bin has
    // A negative claim must not add to what others get.
    const double cores =
        std::max(0.0, share_of(*workload, model::Resource::cpu, node_->usable_count()).claimed());
    if (is_shared(*workload, settings_->interference)) {
      shared_ += cores;
      claims_.push_back({.cores = cores, .within = workload->allowed_cpus, .shared = true});
      continue;
    }
    if (workload->allowed_cpus) {
      claims_.push_back({.cores = cores, .within = workload->allowed_cpus});
    } else {
      anywhere.cores += cores;
    }
  }
  claims_.push_back(std::move(anywhere));
  spread_claims();
}

Tenant Host::tenant_on(const model::CpuSet& cpus, double pressure,
                       const model::InterferenceModel& model) const {
  Tenant tenant{.vcpus = static_cast<int>(cpus.size()),
                .pressure = pressure,
                .model = model,
                .region = node_->whole(),
                .cpus = node_->positions(cpus)};
  const auto regions = node_->regions_for(tenant.vcpus, settings_->interference.allow_cross_socket);
  for (const int region : regions.value_or(std::vector<int>())) {
    const auto inside = [&](int position) { return node_->holds(region, position); };
    if (!std::all_of(tenant.cpus.begin(), tenant.cpus.end(), inside)) continue;
    tenant.region = region;
    break;
  }
  return tenant;
}

void Host::own(const model::CpuSet& cpus) {
  unowned_ -= static_cast<int>(cpus.size());
  for (Bin& bin : bins_) {
    bin.unowned -= cpus;
    bin.ownable = static_cast<int>((bin.unowned - withheld_).size());
  }
}

model::CpuSet Host::unowned_cpus() const {
  model::CpuSet unowned;
  for (const Bin& bin : bins_) unowned |= bin.unowned;
  return unowned;
}

// Spreads the claim evenly over the unowned vCPUs, as the kernel does.
void Host::spread(const Claim& claim, model::CpuSet over) {
  if (claim.within) over &= *claim.within;
  if (over.empty()) {
    for (const Bin& bin : bins_) over |= bin.cpus;
  }
  if (over.empty()) return;
  for (Bin& bin : bins_) {
    if (!bin.cpus.intersects(over)) continue;
    const auto here = static_cast<double>((bin.cpus & over).size());
    const double cores = claim.cores * here / static_cast<double>(over.size());
    bin.claimed_cores += cores;
    if (claim.shared) bin.shared_cores += cores;
  }
}

// Called again whenever there are fewer unowned vCPUs.
void Host::spread_claims() {
  for (Bin& bin : bins_) bin.claimed_cores = bin.shared_cores = 0;
  const model::CpuSet over = unowned_cpus();
  for (const Claim& claim : claims_) spread(claim, over);
}

double Host::free_cores(const Bin& bin, model::WorkloadClass workload_class) const {
  if (!latency_sensitive(workload_class)) return total_cores(bin, workload_class) - bin.claimed_cores;
  const double free = std::min(unowned_ - best_effort_.min_cpus - shared_, bin.ownable - bin.shared_cores);
  return std::max(0.0, free);
}

// An owner shares its vCPUs with no other workload, so that only best-effort work is oversold.
double Host::total_cores(const Bin& bin, model::WorkloadClass workload_class) const {
  if (latency_sensitive(workload_class)) return static_cast<double>(bin.cpus.size());
  return static_cast<double>(bin.unowned.size()) * factor_of(advertised_.cpu);
}

double Host::size_cores(const Bin& bin, model::WorkloadClass workload_class) const {
  const auto cores = static_cast<double>(bin.cpus.size());
  return latency_sensitive(workload_class) ? cores : cores * factor_of(advertised_.cpu);
}

std::string Host::closed() const {
  const auto is_closed = [](const std::optional<model::AdvertisedResource>& it) {
    return it && it->state != model::SchedulingState::schedule;
  };
  if (is_closed(advertised_.memory))
    return fmt::format("the host's memory is in state {}", model::to_string(advertised_.memory->state));
  if (is_closed(advertised_.cpu))
    return fmt::format("the host's CPU is in state {}", model::to_string(advertised_.cpu->state));
  return {};
}

std::uint64_t Host::free_memory_bytes() const {
  return std::min(less(memory_total_, memory_claimed_), memory_available_);
}

Pressure Host::pressure_of(const std::string& service) const {
  const auto known = pressures_->find(service);
  if (known != pressures_->end()) return known->second;
  const auto profile = services_->find(service);
  if (profile == services_->end() || !profile->second.pressure) return {.source = "no samples yet"};
  return {.value = std::clamp(*profile->second.pressure, 0.0, 1.0), .source = "given"};
}

model::InterferenceModel Host::model_of(const std::string& service) const {
  const auto profile = services_->find(service);
  const bool given = profile != services_->end() && profile->second.model;
  return given ? *profile->second.model : settings_->interference.default_model;
}

Tenant Host::tenant_of(const model::PendingWorkload& newcomer, const model::CpuSet& cpus) const {
  return tenant_on(cpus, pressure_of(newcomer.service).value, model_of(newcomer.service));
}

bool Host::shares(const model::PendingWorkload& newcomer) const {
  return is_shared(newcomer, settings_->interference);
}

void Host::take(const Spot& spot, const model::PendingWorkload& newcomer) {
  const bool sharing = shares(newcomer);
  if (sharing) instances_of_.insert(newcomer.service);
  if (latency_sensitive(newcomer.workload_class) && !sharing) {
    occupancy_.add(tenant_of(newcomer, spot.cpus));
    instances_of_.insert(newcomer.service);
    own(spot.cpus);
    spread_claims();
  } else {
    const int cores = std::min(newcomer.vcpus.value_or(0), node_->usable_count());
    model::CpuSet within;
    for (const Bin& bin : bins_) {
      if (spot.nodes.contains(bin.numa)) within |= bin.cpus;
    }
    claims_.push_back({.cores = static_cast<double>(cores), .within = std::move(within), .shared = sharing});
    if (sharing) shared_ += cores;
    spread(claims_.back(), unowned_cpus());
  }
  memory_claimed_ = sum(memory_claimed_, newcomer.memory_request_bytes);
  memory_available_ = less(memory_available_, newcomer.memory_request_bytes);
  for (Bin& bin : bins_) {
    for (BinGpu& gpu : bin.gpus) {
      if (std::find(spot.gpus.begin(), spot.gpus.end(), gpu.id) == spot.gpus.end()) continue;
      if (newcomer.gpu_exclusive) {
        gpu.holder = newcomer.id;
      } else {
        ++gpu.users;
      }
      if (gpu.free_bytes) gpu.free_bytes = less(*gpu.free_bytes, newcomer.gpu_memory_bytes);
    }
  }
}

void Host::promise(const model::PendingWorkload& newcomer) {
  for (Bin& bin : bins_) {
    for (BinGpu& gpu : bin.gpus) {
      const auto& told = newcomer.told_gpus;
      if (std::find(told.begin(), told.end(), gpu.id) == told.end()) continue;
      gpu.promised |= newcomer.gpu_exclusive;
      gpu.promised_shares += newcomer.gpu_exclusive ? 0 : 1;
    }
  }
}

void Host::claim(const model::PendingWorkload& newcomer) {
  const int cores = std::min(newcomer.vcpus.value_or(0), node_->usable_count());
  const bool sharing = shares(newcomer);
  if (sharing) shared_ += cores;
  if (latency_sensitive(newcomer.workload_class) && !sharing) unowned_ -= std::min(cores, unowned_);
  claims_.push_back({.cores = static_cast<double>(cores), .within = {}, .shared = sharing});
  spread(claims_.back(), unowned_cpus());
  memory_claimed_ = sum(memory_claimed_, newcomer.memory_request_bytes);
  memory_available_ = less(memory_available_, newcomer.memory_request_bytes);
  const auto& told = newcomer.told_gpus;
  for (Bin& bin : bins_) {
    for (BinGpu& gpu : bin.gpus) {
      if (gpu.free_bytes && std::find(told.begin(), told.end(), gpu.id) != told.end())
        gpu.free_bytes = less(*gpu.free_bytes, newcomer.gpu_memory_bytes);
    }
  }
}

}  // namespace berth::policies
