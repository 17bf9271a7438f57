// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "topology/gpu_reading.h"

#include <filesystem>

namespace berth::topology {

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

}  // namespace berth::topology
