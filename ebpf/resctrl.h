// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace berth::ebpf {

// Describes in words the figures about the last-level cache that the kernel's resource control offers on this
// host. It is nothing, "not mounted", or the names of its monitoring figures (llc_occupancy, mbm_total_bytes,
// ...). Source: the kernel's Documentation/arch/x86/resctrl.rst.
std::string resctrl_offer(const std::filesystem::path& sys_root);

}  // namespace berth::ebpf
