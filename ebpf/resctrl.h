// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace berth::ebpf {

// What the kernel's resource control could tell of the last-level cache on this host, in words: nothing, not
// mounted, or the names of its monitoring figures (llc_occupancy, mbm_total_bytes, ...). Source: the kernel's
// Documentation/arch/x86/resctrl.rst.
std::string resctrl_offer(const std::filesystem::path& sys_root);

}  // namespace berth::ebpf
