// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "topology/gpu_reading.h"

#include <string>

namespace berth::topology {

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
