// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "topology/gpu_reading.h"

#include <string>

namespace berth::topology {

// The library's soname, as every NVIDIA driver since 2012 brings it.
inline constexpr const char* kNvmlLibrary = "libnvidia-ml.so.1";

// Reads NVIDIA's GPUs through NVML (NVIDIA, NVML API Reference Guide), which is loaded by the first call and
// kept. Any call of it may block for good where the driver hangs.
//
// Unhealthy are GPUs that NVML does not know any more, that are lost or need a reset
// (NVML_ERROR_GPU_IS_LOST, _RESET_REQUIRED, _IRQ_ISSUE, _TIMEOUT of any call), with memory errors that ECC
// could not correct since the driver was loaded, and those whose remapping of bad rows failed. While any is
// unhealthy NVML is let go of between readings, so that the GPU can be reset; but not while such errors are
// counted, as a driver that nobody holds forgets the count. Processes are those of compute, graphics and MPS
// contexts. `library` is what dlopen(3) takes.
ReadGpus nvml_reader(std::string library = kNvmlLibrary);

}  // namespace berth::topology
