// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace berth::spark {

// Where a process of this host listens for TCP connections: "127.0.0.1:4040", "[::1]:4040", the loopback
// where it listens at any address. Ascending, each once. Whatever address that is, it is this host's. Empty
// for a process in another network namespace, whose addresses are not this host's. nullopt where it cannot be
// told: to look into another user's process takes CAP_SYS_PTRACE (proc(5)).
std::optional<std::vector<std::string>> listening_endpoints(const std::filesystem::path& proc_root,
                                                            pid_t pid);

// For a process of which that cannot be told: where somebody listens at the ports that drivers put their web
// server at unless told otherwise, 4040 or one of the 16 after it (spark.ui.port, spark.port.maxRetries), in
// this host's network namespace and the process's both, by a socket that belongs to the process's own user.
// All of that anybody may see.
std::vector<std::string> usual_endpoints(const std::filesystem::path& proc_root, pid_t pid);

}  // namespace berth::spark
