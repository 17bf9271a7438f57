// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/topology.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace berth::topology {

enum class GpuVendor { nvidia, amd, intel };

// A GPU as the PCI bus shows it.
struct PciGpu {
  std::string id;  // "0000:3b:00.0"
  GpuVendor vendor = GpuVendor::nvidia;
  std::string pci_id;  // vendor and device, "10de:2330"
  std::string driver;  // "nvidia"; empty where it has none
  std::optional<int> numa;

  friend bool operator==(const PciGpu&, const PciGpu&) = default;
};

// More GPUs are not looked at.
inline constexpr std::size_t kMostGpus = 256;

// The GPUs on the bus that can do work, ascending by id, by SYS_ROOT/bus/pci/devices (kernel,
// Documentation/ABI/testing/sysfs-bus-pci). Display controllers (PCI class 03) count. So do processing
// accelerators (class 12) of amdgpu, as AMD's newer GPUs are. Console chips of a mainboard or virtual machine
// (ASPEED, Matrox, bochs, virtio) do not. So the vendor must be NVIDIA, or AMD with driver amdgpu, or Intel
// with i915 or xe. The last two also need a render node. A virtual function does not count: its GPU does.
//
// `numa` is that of the vCPUs which the kernel calls local, in the numbering of `cpus`. It is nullopt where
// they are on several nodes, as when the firmware does not say.
std::vector<PciGpu> find_gpus(const std::filesystem::path& sys_root, const std::vector<model::Cpu>& cpus);

// A GPU by its PCI data alone. It is unhealthy where its driver cannot compute with it.
model::Gpu gpu_of(const PciGpu& found);

// A part of a GPU in MIG mode that a program can use; an unknown figure is nullopt.
struct GpuInstance {
  std::string id;  // "MIG-" and a UUID, as CUDA_VISIBLE_DEVICES takes it
  std::optional<std::string> model;
  std::optional<std::uint64_t> memory_bytes;
  std::optional<std::uint64_t> memory_used_bytes;
  std::vector<pid_t> pids;  // as of a GPU
  bool all_pids = false;
};

// A driver's figures of a GPU at one time; an unknown figure is nullopt.
struct GpuReading {
  std::optional<std::string> model;
  std::optional<std::uint64_t> memory_bytes;
  std::optional<std::uint64_t> memory_used_bytes;
  std::optional<double> utilisation;   // 0..1
  std::optional<std::string> problem;  // why no work should be given to it; the same words while it lasts
  std::vector<pid_t> pids;             // processes that use it, ascending
  bool all_pids = false;               // there are no others
  // Whether it is in MIG mode: then its instances alone can be used, and there may be none. nullopt where the
  // driver could not be asked.
  std::optional<bool> mig;
  std::vector<GpuInstance> instances;
  std::vector<model::GpuPeer> links;  // to others that were read with it, ascending by id; both ways alike
};

struct GpuReadings {
  std::map<std::string, GpuReading> gpus;  // by id; none of a GPU that cannot be asked
  std::optional<std::string> missing;      // why some or all figures cannot be had on this host
  std::uint64_t list = 0;                  // number of the list of GPUs that was read (GpuWatcher)
};

// Reads those GPUs; the call may block for any time.
using ReadGpus = std::function<GpuReadings(const std::vector<PciGpu>& gpus)>;

// Reads GPUs of AMD and Intel through files of their kernel drivers.
//
// Of a GPU of amdgpu it reads memory, load, name and uncorrected errors (kernel,
// Documentation/gpu/amdgpu/driver-misc.rst, ras.rst). A GPU that sleeps is not woken for its load. i915 and
// xe have no such files: of their GPUs only the processes are known.
//
// A process uses a GPU if it has a client of the GPU open that has worked or holds memory.
// PROC_ROOT/PID/fdinfo shows that (Documentation/gpu/drm-usage-stats.rst). Processes that hold memory for
// compute, by amdkfd (SYS_ROOT/class/kfd/kfd), count too.
//
// fdinfo shows only processes that the reader might trace, so without CAP_SYS_PTRACE not those of other
// users. Then `all_pids` is false and `missing` says so. Where process 1 is hidden, processes of other users
// are not even tried.
ReadGpus drm_reader(std::filesystem::path sys_root, std::filesystem::path proc_root);

// Processes that use the GPUs of the kernel's DRM drivers; see drm_reader().
struct DrmClients {
  std::map<std::string, std::set<pid_t>> by_gpu;  // by PCI address
  bool hidden = false;                            // some processes could not be looked at
};

DrmClients find_drm_clients(const std::filesystem::path& sys_root, const std::filesystem::path& proc_root);

// The PCI address of the GPU that an open file of a process works with, by its text in fdinfo. Empty where
// the file is no GPU's, or was only opened.
std::string gpu_at_work(std::string_view fdinfo);

// The library's soname, the same in every NVIDIA driver since 2012.
inline constexpr const char* kNvmlLibrary = "libnvidia-ml.so.1";

// Reads NVIDIA's GPUs through NVML (NVIDIA, NVML API Reference Guide). The first call loads it, and it stays
// loaded. Any call of it may block for good where the driver hangs.
//
// A GPU is unhealthy where NVML does not know it any more. So it is where any call says that it is lost or
// needs a reset (NVML_ERROR_GPU_IS_LOST, _RESET_REQUIRED, _IRQ_ISSUE, _TIMEOUT). So it is with memory errors
// that ECC could not correct since the driver was loaded, and with a failed remapping of bad rows.
//
// While any GPU is unhealthy, NVML is released between readings, so that the GPU can be reset. It is kept
// while such memory errors are counted: a driver without a user forgets the count. Processes are those of
// compute, graphics and MPS contexts.
//
// Of a GPU in MIG mode (nvmlDeviceGetMigMode) it reads the health, and the memory and processes of each
// instance. A GPU is unhealthy, too, where NVML cannot say whether it is in that mode.
//
// Links between GPUs are those of nvmlDeviceGetP2PStatus (NVLink) and nvmlDeviceGetTopologyCommonAncestor
// (PCIe). A library without these functions, an error or an unknown level leaves a link unknown. The reader
// asks for links when other GPUs are there or healthy than before, and else at every 60th reading; of the
// first model::kMostLinkedGpus healthy ones alone. `library` is a name for dlopen(3).
ReadGpus nvml_reader(std::string library = kNvmlLibrary);

}  // namespace berth::topology
