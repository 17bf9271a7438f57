// SPDX-License-Identifier: Apache-2.0
#include "model/error.h"
#include "model/json.h"
#include "model/name.h"
#include "topology/gpus.h"

#include <algorithm>
#include <array>
#include <climits>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <dlfcn.h>
#include <fmt/core.h>

namespace berth::topology {

namespace {

// The part of NVML's binary interface that is called here. NVIDIA keeps it stable, and gives functions a
// version when their structures change.
struct Device;
using Return = int;
constexpr Return kSuccess = 0;
constexpr Return kUninitialized = 1;
constexpr Return kNotSupported = 3;
constexpr Return kFunctionNotFound = 13;
constexpr Return kDriverNotLoaded = 9;
constexpr Return kTimeout = 10;
constexpr Return kIrqIssue = 11;
constexpr Return kGpuIsLost = 15;
constexpr Return kResetRequired = 16;
constexpr Return kVersionMismatch = 18;
constexpr int kUncorrectedError = 1;  // nvmlMemoryErrorType_t
constexpr int kVolatileCounter = 0;   // nvmlEccCounterType_t: since the driver was loaded
constexpr int kNvLink = 2;            // nvmlGpuP2PCapsIndex_t
constexpr int kP2pOk = 0;             // nvmlGpuP2PStatus_t

struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
struct Utilisation {
  unsigned gpu;  // percent
  unsigned memory;
};
// nvmlProcessInfo_v1_t and _v2_t; only the number is read.
struct ProcessV1 {
  unsigned pid;
  unsigned long long used_memory;
};
struct ProcessV2 {
  unsigned pid;
  unsigned long long used_memory;
  unsigned gpu_instance;
  unsigned compute_instance;
};
static_assert(sizeof(ProcessV1) == 16 && sizeof(ProcessV2) == 24);
// Drivers 535.43 to 535.86 write a longer structure through _v3; there is space for it.
constexpr std::size_t kLongestProcess = 32;
constexpr unsigned kMostProcesses = 1024;
constexpr std::size_t kNameRoom = 128;
constexpr unsigned kMigEnabled = 1;
// No GPU has more than seven.
constexpr unsigned kMostInstances = 64;

// A pair is asked about again after so many readings (5 min, if one is made every 5 s): NVLink through
// switches works only once NVIDIA's fabric manager has started, which may be after berthd.
constexpr int kReadingsPerAsking = 60;

// nvmlGpuTopologyLevel_t.
std::optional<model::GpuLink> link_of_level(int level) {
  switch (level) {
    case 0:  // NVML_TOPOLOGY_INTERNAL: two GPUs of one board, behind its PCIe switch
    case 10:
      return model::GpuLink::pix;
    case 20:
      return model::GpuLink::pxb;
    case 30:
      return model::GpuLink::phb;
    case 40:
      return model::GpuLink::node;
    case 50:
      return model::GpuLink::sys;
    default:
      return std::nullopt;
  }
}

struct Functions {
  Return (*init)() = nullptr;
  Return (*shutdown)() = nullptr;
  const char* (*error_string)(Return) = nullptr;
  Return (*handle_by_pci)(const char*, Device**) = nullptr;
  Return (*name)(Device*, char*, unsigned) = nullptr;
  Return (*memory)(Device*, Memory*) = nullptr;
  Return (*utilisation)(Device*, Utilisation*) = nullptr;
  Return (*ecc_errors)(Device*, int, int, unsigned long long*) = nullptr;
  Return (*remapped_rows)(Device*, unsigned*, unsigned*, unsigned*, unsigned*) = nullptr;
  Return (*p2p_status)(Device*, Device*, int, int*) = nullptr;
  Return (*common_ancestor)(Device*, Device*, int*) = nullptr;
  Return (*mig_mode)(Device*, unsigned*, unsigned*) = nullptr;
  Return (*most_instances)(Device*, unsigned*) = nullptr;
  Return (*instance_by_index)(Device*, unsigned, Device**) = nullptr;
  Return (*uuid)(Device*, char*, unsigned) = nullptr;
};

// One of the three lists of processes.
struct ProcessList {
  Return (*get)(Device*, unsigned*, void*) = nullptr;  // null: this library has no such list
  std::size_t stride = 0;
};

template <typename Function>
bool take(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

// _v2 before _v3: both write the same structure, except for the drivers mentioned above.
ProcessList process_list(void* library, const std::string& name) {
  ProcessList list;
  if (take(library, (name + "_v2").c_str(), list.get) || take(library, (name + "_v3").c_str(), list.get)) {
    list.stride = sizeof(ProcessV2);
  } else if (take(library, name.c_str(), list.get)) {
    list.stride = sizeof(ProcessV1);
  }
  return list;
}

class Nvml {
 public:
  static model::Result<std::unique_ptr<Nvml>> load(const std::string& name);

  // Error where the driver does not answer at all.
  model::Result<void> begin();
  // Releases the driver, so that it can be unloaded and GPUs be reset; begin() opens it again.
  void end();
  // Whether a call found that the driver went away since begin().
  bool driver_gone() const { return driver_gone_; }
  // Whether read() counted memory errors on one of these GPUs and has not found it gone since. The driver
  // forgets their count when its last user closes it.
  bool counted_errors(const std::vector<PciGpu>& gpus) const {
    return std::any_of(gpus.begin(), gpus.end(),
                       [this](const PciGpu& gpu) { return counted_errors_.count(gpu.id) > 0; });
  }
  GpuReading read(const std::string& id);
  // The links between these GPUs, by GPU.
  std::map<std::string, std::vector<model::GpuPeer>> links(const std::vector<std::string>& ids);

 private:
  // Whether the figure is there. Notes the fault of the GPU or the driver that the call's failure shows.
  bool got(Return result, GpuReading& reading);
  std::string text_of(Return result) const;
  std::optional<std::string> name_of(Device* device, GpuReading& reading);
  void read_mig(Device* device, GpuReading& reading);
  void read_instances(const std::string& id, Device* device, GpuReading& reading);
  GpuInstance read_instance(const std::string& id, Device* device, GpuReading& gpu);
  void read_memory(Device* device, GpuReading& reading);
  void read_health(const std::string& id, Device* device, GpuReading& reading);
  void read_processes(Device* device, GpuReading& reading);
  std::optional<model::GpuLink> link(Device* a, Device* b);

  Functions call_;
  std::array<ProcessList, 3> processes_;
  bool begun_ = false;
  bool driver_gone_ = false;
  std::set<std::string> counted_errors_;  // GPUs
  std::vector<std::byte> room_ = std::vector<std::byte>(kMostProcesses * kLongestProcess);
};

model::Result<std::unique_ptr<Nvml>> Nvml::load(const std::string& name) {
  // Never unloaded: a call that hangs may still return.
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    const char* said = dlerror();
    return model::fail(model::ErrorKind::unavailable, said == nullptr ? name + ": cannot be loaded" : said);
  }
  std::unique_ptr<Nvml> nvml(new Nvml());
  Functions& call = nvml->call_;
  const auto needed = [&](const char* symbol, auto& function) { return take(library, symbol, function); };
  if (!needed("nvmlInit_v2", call.init) || !needed("nvmlShutdown", call.shutdown) ||
      !needed("nvmlErrorString", call.error_string) ||
      !needed("nvmlDeviceGetHandleByPciBusId_v2", call.handle_by_pci)) {
    return model::fail(model::ErrorKind::unavailable, name + ": lacks functions that NVML has");
  }
  // A function that the library lacks leaves its figure unknown.
  take(library, "nvmlDeviceGetName", call.name);
  take(library, "nvmlDeviceGetMemoryInfo", call.memory);
  take(library, "nvmlDeviceGetUtilizationRates", call.utilisation);
  take(library, "nvmlDeviceGetTotalEccErrors", call.ecc_errors);
  take(library, "nvmlDeviceGetRemappedRows", call.remapped_rows);
  take(library, "nvmlDeviceGetP2PStatus", call.p2p_status);
  take(library, "nvmlDeviceGetTopologyCommonAncestor", call.common_ancestor);
  take(library, "nvmlDeviceGetMigMode", call.mig_mode);
  take(library, "nvmlDeviceGetMaxMigDeviceCount", call.most_instances);
  take(library, "nvmlDeviceGetMigDeviceHandleByIndex", call.instance_by_index);
  take(library, "nvmlDeviceGetUUID", call.uuid);
  nvml->processes_ = {process_list(library, "nvmlDeviceGetComputeRunningProcesses"),
                      process_list(library, "nvmlDeviceGetGraphicsRunningProcesses"),
                      process_list(library, "nvmlDeviceGetMPSComputeRunningProcesses")};
  return nvml;
}

std::string Nvml::text_of(Return result) const {
  constexpr std::size_t kLongest = 200;
  const char* text = call_.error_string(result);
  if (text == nullptr) return fmt::format("error {}", result);
  return model::to_name(std::string_view(text, strnlen(text, kLongest)));
}

model::Result<void> Nvml::begin() {
  if (begun_) return {};
  if (const Return result = call_.init(); result != kSuccess)
    return model::fail(model::ErrorKind::unavailable, "NVML: " + text_of(result));
  begun_ = true;
  driver_gone_ = false;
  return {};
}

void Nvml::end() {
  if (std::exchange(begun_, false)) call_.shutdown();
}

bool Nvml::got(Return result, GpuReading& reading) {
  switch (result) {
    case kUninitialized:
    case kDriverNotLoaded:
    case kVersionMismatch:
      driver_gone_ = true;
      break;
    case kTimeout:
    case kIrqIssue:
    case kGpuIsLost:
    case kResetRequired:
      if (!reading.problem) reading.problem = "NVML: " + text_of(result);
      break;
    default:
      break;
  }
  return result == kSuccess;
}

void Nvml::read_memory(Device* device, GpuReading& reading) {
  Memory memory{};
  if (call_.memory == nullptr || !got(call_.memory(device, &memory), reading)) return;
  // GPUs that share the host's memory have none of their own.
  if (memory.total == 0 || memory.total > model::kMaxBytes) return;
  reading.memory_bytes = memory.total;
  if (memory.used <= memory.total) reading.memory_used_bytes = memory.used;
}

void Nvml::read_health(const std::string& id, Device* device, GpuReading& reading) {
  unsigned long long errors = 0;
  const bool has_ecc = call_.ecc_errors != nullptr &&
                       got(call_.ecc_errors(device, kUncorrectedError, kVolatileCounter, &errors), reading);
  if (has_ecc && errors == 0) counted_errors_.erase(id);
  if (has_ecc && errors > 0) {
    counted_errors_.insert(id);
    if (!reading.problem) {
      reading.problem =
          "NVML: memory errors that ECC could not correct; stop berthd and reset the GPU to clear them";
    }
  }
  unsigned corrected = 0;
  unsigned uncorrected = 0;
  unsigned pending = 0;
  unsigned failed = 0;
  const bool remaps = call_.remapped_rows != nullptr &&
                      got(call_.remapped_rows(device, &corrected, &uncorrected, &pending, &failed), reading);
  if (remaps && failed != 0 && !reading.problem) {
    reading.problem = "NVML: a bad row of its memory could not be remapped";
  }
}

void Nvml::read_processes(Device* device, GpuReading& reading) {
  reading.all_pids = processes_.front().get != nullptr;
  for (const ProcessList& list : processes_) {
    if (list.get == nullptr) continue;
    unsigned count = kMostProcesses;
    const Return result = list.get(device, &count, room_.data());
    // A GPU without graphics has no graphics processes; one without MPS has no MPS processes.
    if (result == kNotSupported && list.get != processes_.front().get) continue;
    if (!got(result, reading) || count > kMostProcesses) {
      reading.all_pids = false;
      continue;
    }
    for (unsigned i = 0; i < count; ++i) {
      unsigned pid = 0;
      std::memcpy(&pid, room_.data() + i * list.stride, sizeof pid);
      if (pid > 0 && pid <= INT_MAX) reading.pids.push_back(static_cast<pid_t>(pid));
    }
  }
  std::sort(reading.pids.begin(), reading.pids.end());
  reading.pids.erase(std::unique(reading.pids.begin(), reading.pids.end()), reading.pids.end());
}

std::optional<std::string> Nvml::name_of(Device* device, GpuReading& reading) {
  std::array<char, kNameRoom> name{};
  if (call_.name == nullptr || !got(call_.name(device, name.data(), kNameRoom - 1), reading) ||
      name[0] == '\0')
    return std::nullopt;
  return model::to_name(std::string_view(name.data(), strnlen(name.data(), kNameRoom - 1)));
}

// The driver may not say whether a GPU is in MIG mode. Such a GPU must not be given away whole.
void Nvml::read_mig(Device* device, GpuReading& reading) {
  reading.mig = false;
  if (call_.mig_mode == nullptr) return;
  unsigned current = 0;
  unsigned pending = 0;
  const Return result = call_.mig_mode(device, &current, &pending);
  if (result == kNotSupported || result == kFunctionNotFound) return;
  if (got(result, reading)) {
    reading.mig = current == kMigEnabled;
    return;
  }
  reading.mig.reset();
  if (!reading.problem) reading.problem = "NVML does not say whether it is in MIG mode: " + text_of(result);
}

GpuInstance Nvml::read_instance(const std::string& id, Device* device, GpuReading& gpu) {
  GpuReading reading;
  GpuInstance instance;
  instance.id = id;
  std::array<char, kNameRoom> uuid{};
  if (call_.uuid != nullptr && got(call_.uuid(device, uuid.data(), kNameRoom - 1), reading) &&
      uuid[0] != '\0')
    instance.id = model::to_name(std::string_view(uuid.data(), strnlen(uuid.data(), kNameRoom - 1)));
  instance.model = name_of(device, reading);
  read_memory(device, reading);
  read_processes(device, reading);
  instance.memory_bytes = reading.memory_bytes;
  instance.memory_used_bytes = reading.memory_used_bytes;
  instance.pids = std::move(reading.pids);
  instance.all_pids = reading.all_pids;
  if (reading.problem && !gpu.problem) gpu.problem = std::move(reading.problem);
  return instance;
}

// Indices have gaps where an instance was destroyed.
void Nvml::read_instances(const std::string& id, Device* device, GpuReading& reading) {
  unsigned most = 0;
  if (call_.most_instances == nullptr || call_.instance_by_index == nullptr ||
      !got(call_.most_instances(device, &most), reading))
    return;
  for (unsigned index = 0; index < std::min(most, kMostInstances); ++index) {
    Device* instance = nullptr;
    if (!got(call_.instance_by_index(device, index, &instance), reading) || instance == nullptr) continue;
    reading.instances.push_back(read_instance(fmt::format("{}/{}", id, index), instance, reading));
  }
}

GpuReading Nvml::read(const std::string& id) {
  GpuReading reading;
  Device* device = nullptr;
  const Return found = call_.handle_by_pci(id.c_str(), &device);
  if (!got(found, reading) || device == nullptr) {
    if (!reading.problem) reading.problem = "NVML: " + text_of(found);
    return reading;
  }
  reading.model = name_of(device, reading);
  read_mig(device, reading);
  if (reading.mig == true) {
    read_instances(id, device, reading);
    read_health(id, device, reading);
    return reading;
  }
  read_memory(device, reading);
  Utilisation use{};
  if (call_.utilisation != nullptr && got(call_.utilisation(device, &use), reading) && use.gpu <= 100) {
    reading.utilisation = use.gpu / 100.0;
  }
  read_health(id, device, reading);
  read_processes(device, reading);
  return reading;
}

std::optional<model::GpuLink> Nvml::link(Device* a, Device* b) {
  GpuReading ignored;  // what a failure says of a GPU's health, read() has found
  int answer = -1;
  if (call_.p2p_status != nullptr && got(call_.p2p_status(a, b, kNvLink, &answer), ignored) &&
      answer == kP2pOk)
    return model::GpuLink::nv;
  answer = -1;
  if (call_.common_ancestor == nullptr || !got(call_.common_ancestor(a, b, &answer), ignored))
    return std::nullopt;
  return link_of_level(answer);
}

std::map<std::string, std::vector<model::GpuPeer>> Nvml::links(const std::vector<std::string>& ids) {
  std::map<std::string, std::vector<model::GpuPeer>> links;
  if (call_.p2p_status == nullptr && call_.common_ancestor == nullptr) return links;
  std::vector<std::pair<const std::string*, Device*>> devices;
  for (const std::string& id : ids) {
    GpuReading ignored;
    Device* device = nullptr;
    if (got(call_.handle_by_pci(id.c_str(), &device), ignored) && device != nullptr)
      devices.emplace_back(&id, device);
  }
  // The ids ascend, so each GPU's peers do: first those before it, then those after it.
  for (std::size_t b = 0; b < devices.size(); ++b) {
    for (std::size_t a = 0; a < b && !driver_gone_; ++a) {
      const auto found = link(devices[a].second, devices[b].second);
      if (!found) continue;
      links[*devices[a].first].push_back({.id = *devices[b].first, .link = *found});
      links[*devices[b].first].push_back({.id = *devices[a].first, .link = *found});
    }
  }
  return links;
}

class NvmlReader {
 public:
  explicit NvmlReader(std::string library) : library_(std::move(library)) {}

  GpuReadings operator()(const std::vector<PciGpu>& gpus) {
    GpuReadings readings;
    if (!nvml_) {
      auto loaded = Nvml::load(library_);
      if (!loaded) {
        readings.missing = loaded.error().message();
        return readings;
      }
      nvml_ = std::move(*loaded);
    }
    bool any_problem = false;
    if (const auto begun = nvml_->begin(); !begun) {
      forget_links();
      readings.missing = begun.error().message();
      return readings;
    }
    for (const PciGpu& gpu : gpus) {
      GpuReading reading = nvml_->read(gpu.id);
      if (nvml_->driver_gone()) return gone();
      any_problem = any_problem || reading.problem;
      readings.gpus.emplace(gpu.id, std::move(reading));
    }
    add_links(gpus, readings);
    if (nvml_->driver_gone()) return gone();
    // A GPU that is to be reset must not be held open. But without any user the driver forgets the errors
    // that it counted, and the GPU would seem well.
    if ((any_problem && !nvml_->counted_errors(gpus)) || gpus.empty()) nvml_->end();
    return readings;
  }

 private:
  GpuReadings gone() {
    nvml_->end();
    forget_links();
    GpuReadings readings;
    readings.missing = "NVML: the driver went away";
    return readings;
  }

  void forget_links() {
    linked_.clear();
    links_.clear();
  }

  // Pairs are many, and their links hardly ever change. So they are asked about only if other GPUs are there
  // or healthy than at the last time, or after kReadingsPerAsking.
  void add_links(const std::vector<PciGpu>& gpus, GpuReadings& readings) {
    std::vector<PciGpu> healthy;
    for (const PciGpu& gpu : gpus) {
      const GpuReading& reading = readings.gpus.at(gpu.id);
      // Instances of MIG reach no other GPU.
      if (healthy.size() < model::kMostLinkedGpus && !reading.problem && reading.mig != true)
        healthy.push_back(gpu);
    }
    if (healthy != linked_ || ++readings_since_ >= kReadingsPerAsking) {
      std::vector<std::string> ids;
      ids.reserve(healthy.size());
      for (const PciGpu& gpu : healthy) ids.push_back(gpu.id);
      std::sort(ids.begin(), ids.end());
      links_ = nvml_->links(ids);
      linked_ = std::move(healthy);
      readings_since_ = 0;
    }
    for (auto& [id, reading] : readings.gpus) {
      if (const auto links = links_.find(id); links != links_.end()) reading.links = links->second;
    }
  }

  std::string library_;
  std::unique_ptr<Nvml> nvml_;
  std::vector<PciGpu> linked_;  // the GPUs between which links_ are
  std::map<std::string, std::vector<model::GpuPeer>> links_;
  int readings_since_ = 0;  // links_ were asked for
};

}  // namespace

ReadGpus nvml_reader(std::string library) {
  // std::function copies its target.
  auto reader = std::make_shared<NvmlReader>(std::move(library));
  return [reader](const std::vector<PciGpu>& gpus) { return (*reader)(gpus); };
}

}  // namespace berth::topology
