// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "topology/gpu_reading.h"

#include <filesystem>

namespace berth::topology {

// Reads GPUs of AMD and Intel through files of their kernel drivers:
//
// - of amdgpu memory, load, name and uncorrected errors (kernel, Documentation/gpu/amdgpu/driver-misc.rst,
//   ras.rst); i915 and xe have no such files, so that of theirs nothing is known but who uses them. A GPU
//   that sleeps is not woken for its load.
// - processes that have a client of the GPU open with which they have worked or hold memory, by
//   PROC_ROOT/PID/fdinfo (Documentation/gpu/drm-usage-stats.rst), and those that amdkfd says hold memory for
//   compute (SYS_ROOT/class/kfd/kfd). The former shows only processes that the reader might trace: without
//   CAP_SYS_PTRACE not those of others, and then `all_pids` is false and `missing` says so. Where process 1
//   is hidden, those of other users are not even tried.
ReadGpus drm_reader(std::filesystem::path sys_root, std::filesystem::path proc_root);

}  // namespace berth::topology
