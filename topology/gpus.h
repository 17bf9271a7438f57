// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/topology.h"

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

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

}  // namespace berth::topology
