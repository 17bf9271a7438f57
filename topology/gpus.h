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

// More are not looked at.
inline constexpr std::size_t kMostGpus = 256;

// The GPUs on the bus that work can be given to, ascending by id, by SYS_ROOT/bus/pci/devices (kernel,
// Documentation/ABI/testing/sysfs-bus-pci). Display controllers (PCI class 03) count, and processing
// accelerators (class 12) that amdgpu drives, as AMD's newer ones are; but no console chip of a mainboard or
// virtual machine (ASPEED, Matrox, bochs, virtio): the vendor is NVIDIA; or AMD with driver amdgpu, or Intel
// with i915 or xe, each with a render node. No virtual function: it is part of a GPU that counts itself.
//
// `numa` is that of the vCPUs which the kernel calls local, in the numbering of `cpus`; nullopt where they
// are on several nodes, as when the firmware says nothing.
std::vector<PciGpu> find_gpus(const std::filesystem::path& sys_root, const std::vector<model::Cpu>& cpus);

// What that alone says of it. Unhealthy is one whose driver leaves nothing to compute with.
model::Gpu gpu_of(const PciGpu& found);

}  // namespace berth::topology
