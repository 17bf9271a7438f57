// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string>

namespace berth::model {

// How two GPUs of a host reach each other, the nearest first. The names are those of `nvidia-smi topo -m`
// (NVIDIA System Management Interface, topo).
enum class GpuLink {
  nv,    // NVLink
  pix,   // at most one PCIe switch
  pxb,   // several PCIe switches, no host bridge
  phb,   // one PCIe host bridge
  node,  // several host bridges of one NUMA node
  sys    // the interconnect of NUMA nodes
};

inline constexpr std::array kGpuLinks{GpuLink::nv,  GpuLink::pix,  GpuLink::pxb,
                                      GpuLink::phb, GpuLink::node, GpuLink::sys};

// "NV", "PIX", "PXB", "PHB", "NODE", "SYS".
const char* to_string(GpuLink link);

// No more GPUs of a host have links.
inline constexpr std::size_t kMostLinkedGpus = 64;

// The link of a GPU to another one.
struct GpuPeer {
  std::string id;  // of the other one
  GpuLink link = GpuLink::sys;

  friend bool operator==(const GpuPeer&, const GpuPeer&) = default;
};

}  // namespace berth::model
