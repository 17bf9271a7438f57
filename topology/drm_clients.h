// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace berth::topology {

// Processes that use the GPUs of the kernel's DRM drivers; see topology/drm.h.
struct DrmClients {
  std::map<std::string, std::set<pid_t>> by_gpu;  // by PCI address
  bool hidden = false;                            // some processes could not be looked at
};

DrmClients find_drm_clients(const std::filesystem::path& sys_root, const std::filesystem::path& proc_root);

// The PCI address of the GPU that an open file of a process works with, by its text in fdinfo. Empty where
// the file is no GPU's, or was only opened.
std::string gpu_at_work(std::string_view fdinfo);

}  // namespace berth::topology
