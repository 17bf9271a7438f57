// SPDX-License-Identifier: Apache-2.0
#include "topology/gpu_inventory.h"

#include "topology/gpus.h"

#include <algorithm>
#include <thread>
#include <utility>

#include <fmt/core.h>

namespace berth::topology {

namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kNotAsked = "its driver has not answered yet";

// Compares without the NUMA node: its number comes from the vCPUs, and may change.
bool is_same_device(PciGpu one, const PciGpu& other) {
  one.numa = other.numa;
  return one == other;
}

std::string named(const model::Gpu& gpu) { return fmt::format("GPU {} ({})", gpu.id, gpu.model); }

}  // namespace

GpuInventory::GpuInventory(GpuOptions options) : options_(std::move(options)) {}

bool GpuInventory::has_nvml(const PciGpu& gpu) {
  return gpu.vendor == GpuVendor::nvidia && gpu.driver == "nvidia";
}

void GpuInventory::look(const std::vector<model::Cpu>& cpus) {
  const auto now = Clock::now();
  if (!scanned_at_ || now - *scanned_at_ >= std::chrono::duration<double>(options_.scan_s)) {
    scanned_at_ = now;
    scan(cpus);
  }
  take(nvml_);
  take(drm_);
  settled_ = true;
  gpus_.clear();
  for (auto& [id, known] : known_) {
    KnownGpu seen = describe(known);
    if (seen.gpu.problem == kNotAsked) {
      settled_ = false;
    } else {
      note(known, seen.gpu);
    }
    add_usable(known, std::move(seen));
  }
  std::sort(gpus_.begin(), gpus_.end(),
            [](const KnownGpu& a, const KnownGpu& b) { return a.gpu.id < b.gpu.id; });
  // An id comes from the driver where it is an instance's.
  gpus_.erase(std::unique(gpus_.begin(), gpus_.end(),
                          [](const KnownGpu& a, const KnownGpu& b) { return a.gpu.id == b.gpu.id; }),
              gpus_.end());
  if (gpus_.size() > kMostGpus) gpus_.resize(kMostGpus);
}

void GpuInventory::add_usable(const Known& known, KnownGpu seen) {
  if (!known.mig) {
    gpus_.push_back(std::move(seen));
    return;
  }
  for (const GpuInstance& instance : known.instances) {
    KnownGpu part;
    part.gpu.id = instance.id;
    part.gpu.vendor = seen.gpu.vendor;
    part.gpu.model = instance.model.value_or(seen.gpu.model + " MIG");
    part.gpu.numa = seen.gpu.numa;
    part.gpu.memory_bytes = instance.memory_bytes;
    part.gpu.memory_used_bytes = instance.memory_used_bytes;
    part.gpu.healthy = seen.gpu.healthy;
    part.gpu.problem = seen.gpu.problem;
    part.pids = instance.pids;
    part.all_pids = instance.all_pids;
    gpus_.push_back(std::move(part));
  }
}

void GpuInventory::scan(const std::vector<model::Cpu>& cpus) {
  std::vector<PciGpu> by_nvml;
  std::vector<PciGpu> by_drm;
  auto found = find_gpus(options_.sys_root, cpus);
  for (auto& [id, known] : known_) {
    known.came = false;
    known.present = std::any_of(found.begin(), found.end(),
                                [&known = known](const PciGpu& gpu) { return gpu.id == known.pci.id; }) &&
                    known.present;
  }
  for (PciGpu& gpu : found) {
    // Else, cards that are exchanged again and again would be remembered for ever.
    if (known_.count(gpu.id) == 0 && known_.size() >= kMostGpus) continue;
    if (has_nvml(gpu)) by_nvml.push_back(gpu);
    if (gpu.vendor != GpuVendor::nvidia) by_drm.push_back(gpu);
    Known& known = known_[gpu.id];
    if (known.pci.pci_id != gpu.pci_id) {  // another card in the same slot
      known.model.reset();
      known.mig = false;
      known.instances.clear();
    }
    known.came = !known.present || !is_same_device(known.pci, gpu);
    known.present = true;
    known.pci = std::move(gpu);
  }
  keep_reader(nvml_, nvml_reader(options_.nvml_library), std::move(by_nvml), options_.nvml_s);
  keep_reader(drm_, drm_reader(options_.sys_root, options_.proc_root), std::move(by_drm), options_.drm_s);
}

// A reader that has no GPUs any more keeps its thread: its GPUs may come back.
void GpuInventory::keep_reader(Reader& reader, const ReadGpus& read, std::vector<PciGpu> gpus,
                               double interval_s) {
  if (!reader.watcher) {
    reader.failure.reset();
    if (gpus.empty()) return;
    auto watcher = std::make_unique<GpuWatcher>(read, gpus, interval_s);
    reader.failure = watcher->failure();
    if (reader.failure) return;  // the next look at the bus tries again
    reader.watcher = std::move(watcher);
  }
  const std::uint64_t list = reader.watcher->set_gpus(std::move(gpus));
  for (auto& [id, known] : known_) {
    if (known.came && &reader_of(known.pci) == &reader) known.list = list;
  }
}

void GpuInventory::take(Reader& reader) {
  if (!reader.watcher) return;
  auto latest = reader.watcher->latest();
  const bool hangs = reader.watcher->waiting_s() > options_.patience_s;
  if (latest != reader.latest || hangs != reader.hangs) ++reading_;
  reader.latest = std::move(latest);
  reader.hangs = hangs;
}

bool GpuInventory::is_asked(const PciGpu& gpu) { return has_nvml(gpu) || gpu.vendor != GpuVendor::nvidia; }

const GpuReadings* GpuInventory::readings_of(const Known& known) const {
  const Reader& reader = reader_of(known.pci);
  // A reading from before the GPU came is of another device.
  return is_asked(known.pci) && reader.latest && reader.latest->list >= known.list ? reader.latest.get()
                                                                                   : nullptr;
}

// Without those to a GPU that is gone, or that took the place of the one that was read.
std::vector<model::GpuPeer> GpuInventory::links_of(const GpuReading& reading) const {
  std::vector<model::GpuPeer> links;
  for (const model::GpuPeer& peer : reading.links) {
    const auto other = known_.find(peer.id);
    if (other != known_.end() && other->second.present && !other->second.mig &&
        readings_of(other->second) != nullptr)
      links.push_back(peer);
  }
  return links;
}

KnownGpu GpuInventory::describe(Known& known) {
  KnownGpu seen;
  seen.gpu = gpu_of(known.pci);
  const bool asked = is_asked(known.pci);
  const Reader& reader = reader_of(known.pci);
  const GpuReadings* latest = readings_of(known);
  const GpuReading* reading = nullptr;
  if (latest != nullptr) {
    const auto found = latest->gpus.find(known.pci.id);
    if (found != latest->gpus.end()) reading = &found->second;
  }
  if (reading != nullptr && reading->model) known.model = reading->model;
  if (reading != nullptr && reading->mig) {
    known.mig = *reading->mig;
    known.instances = reading->instances;
  }
  if (known.model) seen.gpu.model = *known.model;
  if (!known.present) {
    seen.gpu.problem = "it is no longer on the PCI bus, or has lost its driver";
  } else if (asked && reader.failure) {
    seen.gpu.problem = "its driver cannot be asked: " + *reader.failure;
  } else if (asked && reader.hangs) {
    seen.gpu.problem = fmt::format("its driver has not answered for more than {:.0f} s", options_.patience_s);
  } else if (reading != nullptr) {
    seen.gpu.memory_bytes = reading->memory_bytes;
    seen.gpu.memory_used_bytes = reading->memory_used_bytes;
    seen.gpu.utilisation = reading->utilisation;
    seen.gpu.problem = reading->problem;
    seen.pids = reading->pids;
    seen.all_pids = reading->all_pids;
    seen.gpu.links = links_of(*reading);
  } else if (asked) {
    // Its processes are unknown too, so it is given to no workload.
    seen.gpu.problem = latest != nullptr && latest->missing ? *latest->missing : kNotAsked;
  }
  seen.gpu.healthy = !seen.gpu.problem;
  return seen;
}

void GpuInventory::note(Known& known, const model::Gpu& gpu) {
  if (gpu.problem == known.problem) return;
  known.problem = gpu.problem;
  const std::string text = gpu.problem ? fmt::format("{} is unhealthy: {}", named(gpu), *gpu.problem)
                                       : fmt::format("{} is healthy again", named(gpu));
  news_.push_back({.gpu = gpu.id, .healthy = gpu.healthy, .text = text});
}

void GpuInventory::settle(const std::vector<model::Cpu>& cpus, double most_s) {
  const auto deadline = Clock::now() + std::chrono::duration<double>(most_s);
  look(cpus);
  while (!settled_ && Clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    look(cpus);
  }
}

std::vector<GpuNews> GpuInventory::take_news() { return std::exchange(news_, {}); }

model::Capability GpuInventory::capability() const {
  model::Capability capability{"gpus", !gpus_.empty(), "no usable GPU is on the PCI bus"};
  if (gpus_.empty()) return capability;
  const auto healthy =
      std::count_if(gpus_.begin(), gpus_.end(), [](const KnownGpu& known) { return known.gpu.healthy; });
  capability.detail = fmt::format("{} of {} healthy", healthy, gpus_.size());
  for (const Reader* reader : {&nvml_, &drm_}) {
    if (reader->failure) {
      capability.available = false;
      capability.detail += "; " + *reader->failure;
    }
    if (!reader->latest || !reader->latest->missing) continue;
    capability.available = false;
    capability.detail += "; " + *reader->latest->missing;
    if (reader == &nvml_) capability.detail += "; of NVIDIA's GPUs only the place is known";
  }
  return capability;
}

}  // namespace berth::topology
