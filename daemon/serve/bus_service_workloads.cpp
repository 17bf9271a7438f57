// SPDX-License-Identifier: Apache-2.0
#include "daemon/serve/bus_service_workloads.h"

#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <utility>
#include <vector>

namespace berth::daemon {

namespace {

constexpr const char* kInterface = "org.berth.Node1.Workload";

struct Free {
  void operator()(char* text) const { std::free(text); }
};
using Text = std::unique_ptr<char, Free>;

Text encoded_path(const std::string& id) {
  char* encoded = nullptr;
  if (sd_bus_path_encode(bus::kWorkloadPrefix, id.c_str(), &encoded) < 0) throw std::bad_alloc();
  return Text(encoded);
}

// nullopt where no workload can have that path.
std::optional<std::string> workload_id(const std::string& path) {
  char* decoded = nullptr;
  const int found = sd_bus_path_decode(path.c_str(), bus::kWorkloadPrefix, &decoded);
  if (found < 0) throw std::bad_alloc();
  const Text owned(decoded);
  // Decoding accepts more paths than encoding makes. "/" in an id is escaped, and only the escaped path is
  // valid.
  if (found == 0 || path != encoded_path(decoded).get()) return std::nullopt;
  return std::string(decoded);
}

template <auto Member>
int show(sd_bus*, const char*, const char*, const char*, sd_bus_message* reply, void* userdata,
         sd_bus_error*) {
  return append(reply, static_cast<const WorkloadView*>(userdata)->*Member);
}

constexpr auto kNever = SD_BUS_VTABLE_PROPERTY_CONST;
constexpr auto kAnnounced = SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE;
constexpr auto kMeasured = 0;  // changes all the time, and is not announced

// As in bus/org.berth.Node1.Workload.xml; a test compares the two.
const sd_bus_vtable kProperties[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_PROPERTY("Id", "s", show<&WorkloadView::id>, 0, kNever),
    SD_BUS_PROPERTY("Service", "s", show<&WorkloadView::service>, 0, kAnnounced),
    SD_BUS_PROPERTY("Class", "s", show<&WorkloadView::workload_class>, 0, kAnnounced),
    SD_BUS_PROPERTY("Kind", "s", show<&WorkloadView::kind>, 0, kNever),
    SD_BUS_PROPERTY("MatchedBy", "s", show<&WorkloadView::matched_by>, 0, kAnnounced),
    SD_BUS_PROPERTY("VCPUs", "u", show<&WorkloadView::vcpus>, 0, kAnnounced),
    SD_BUS_PROPERTY("PinnedCPUs", "s", show<&WorkloadView::pinned_cpus>, 0, kAnnounced),
    SD_BUS_PROPERTY("Managed", "b", show<&WorkloadView::managed>, 0, kAnnounced),
    SD_BUS_PROPERTY("LeftAloneReason", "s", show<&WorkloadView::left_alone_reason>, 0, kAnnounced),
    SD_BUS_PROPERTY("CPUCores", "d", show<&WorkloadView::cpu_cores>, 0, kMeasured),
    SD_BUS_PROPERTY("MemoryBytes", "t", show<&WorkloadView::memory_bytes>, 0, kMeasured),
    SD_BUS_PROPERTY("Progress", "d", show<&WorkloadView::progress>, 0, kAnnounced),
    SD_BUS_PROPERTY("Score", "d", show<&WorkloadView::score>, 0, kMeasured),
    SD_BUS_PROPERTY("CPUQuota", "d", show<&WorkloadView::cpu_quota>, 0, kAnnounced),
    SD_BUS_PROPERTY("OriginalCPUQuota", "d", show<&WorkloadView::original_cpu_quota>, 0, kAnnounced),
    SD_BUS_PROPERTY("CPUHeld", "s", show<&WorkloadView::cpu_held>, 0, kAnnounced),
    SD_BUS_PROPERTY("MemoryHigh", "t", show<&WorkloadView::memory_high>, 0, kAnnounced),
    SD_BUS_PROPERTY("OriginalMemoryHigh", "t", show<&WorkloadView::original_memory_high>, 0, kAnnounced),
    SD_BUS_PROPERTY("MemoryHeld", "s", show<&WorkloadView::memory_held>, 0, kAnnounced),
    SD_BUS_VTABLE_END,
};

// In the order of WorkloadObjects::announced().
constexpr std::array<const char*, 14> kNames{
    "Service", "Class",           "MatchedBy",          "VCPUs",     "PinnedCPUs",
    "Managed", "LeftAloneReason", "Progress",           "CPUQuota",  "OriginalCPUQuota",
    "CPUHeld", "MemoryHigh",      "OriginalMemoryHigh", "MemoryHeld"};

}  // namespace

std::string workload_path(const std::string& id) { return encoded_path(id).get(); }

WorkloadObjects::WorkloadObjects(sd_bus* bus, Control& control) : bus_(bus), control_(control) {
  sd_bus_slot* slot = nullptr;
  check(sd_bus_add_fallback_vtable(bus, &slot, bus::kWorkloadPrefix, kInterface, kProperties, find, this),
        "cannot serve the workloads");
  objects_.reset(slot);
  check(sd_bus_add_node_enumerator(bus, &slot, bus::kWorkloadPrefix, enumerate, this),
        "cannot list the workloads");
  nodes_.reset(slot);
}

WorkloadObjects::Announced WorkloadObjects::announced(const WorkloadView& view) {
  const std::hash<std::string> hash;
  const std::hash<std::optional<double>> cores;
  const std::hash<std::optional<std::uint64_t>> bytes;
  return {hash(view.service),
          hash(view.workload_class),
          hash(view.matched_by),
          view.vcpus,
          hash(view.pinned_cpus),
          static_cast<std::size_t>(view.managed),
          hash(view.left_alone_reason),
          cores(view.progress),
          cores(view.cpu_quota),
          cores(view.original_cpu_quota),
          hash(view.cpu_held),
          bytes(view.memory_high),
          bytes(view.original_memory_high),
          hash(view.memory_held)};
}

bool WorkloadObjects::add(const std::string& id) {
  const auto view = control_.workload(id);
  return view && known_.try_emplace(id, announced(*view)).second;
}

bool WorkloadObjects::remove(const std::string& id) { return known_.erase(id) > 0; }

void WorkloadObjects::announce_added(const std::string& id) {
  check(sd_bus_emit_interfaces_added(bus_, workload_path(id).c_str(), kInterface, nullptr),
        "InterfacesAdded");
}

void WorkloadObjects::announce_removed(const std::string& id) {
  check(sd_bus_emit_interfaces_removed(bus_, workload_path(id).c_str(), kInterface, nullptr),
        "InterfacesRemoved");
}

void WorkloadObjects::announce_changes(const std::string& id) {
  const auto known = known_.find(id);
  const auto view = control_.workload(id);
  if (known == known_.end() || !view) return;
  const Announced now = announced(*view);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (now[i] != known->second[i]) names.emplace_back(kNames[i]);
  }
  known->second = now;
  emit_changes(bus_, workload_path(id), kInterface, std::move(names));
}

int WorkloadObjects::find(sd_bus*, const char* path, const char*, void* userdata, void** found,
                          sd_bus_error* error) {
  return answering(error, [&] {
    auto& self = *static_cast<WorkloadObjects*>(userdata);
    const auto id = workload_id(path);
    if (!id || !self.known_.contains(*id)) return 0;
    auto view = self.control_.workload(*id);
    if (!view) return 0;
    self.found_ = std::move(*view);
    *found = &self.found_;
    return 1;
  });
}

int WorkloadObjects::enumerate(sd_bus*, const char*, void* userdata, char*** paths, sd_bus_error* error) {
  return answering(error, [&] {
    const auto& known = static_cast<const WorkloadObjects*>(userdata)->known_;
    std::vector<Text> encoded;
    encoded.reserve(known.size());
    for (const auto& [id, announced] : known) encoded.push_back(encoded_path(id));
    // sd-bus frees the list and its strings.
    auto** list = static_cast<char**>(std::calloc(encoded.size() + 1, sizeof(char*)));
    if (list == nullptr) throw std::bad_alloc();
    for (std::size_t i = 0; i < encoded.size(); ++i) list[i] = encoded[i].release();
    *paths = list;
    return 0;
  });
}

}  // namespace berth::daemon
