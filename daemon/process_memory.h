// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include <sys/types.h>

namespace berth::daemon {

// Resident memory of these processes that is backed by no file and by nothing shared (statm of proc(5),
// resident less shared), in bytes: about what is free once they have ended. nullopt where none can be read.
std::optional<std::uint64_t> private_memory_bytes(const std::filesystem::path& proc_root,
                                                  const std::vector<pid_t>& pids);

}  // namespace berth::daemon
