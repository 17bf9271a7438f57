// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace berth::spark {

// The TCP addresses of this host that a process listens at: "127.0.0.1:4040", "[::1]:4040". It is the
// loopback address where the process listens at any address. Ascending, each once. Empty for a process in
// another network namespace: its addresses are not this host's. nullopt where they are unknown: to look into
// another user's process takes CAP_SYS_PTRACE (proc(5)).
std::optional<std::vector<std::string>> listening_endpoints(const std::filesystem::path& proc_root,
                                                            pid_t pid);

// For a process whose addresses are unknown: tries the default ports of a driver's web server, 4040 and the
// 16 after it (spark.ui.port, spark.port.maxRetries). A port counts where a socket of the process's own user
// listens at it. The socket must be in this host's network namespace and in the process's. All users may see
// these tables.
std::vector<std::string> usual_endpoints(const std::filesystem::path& proc_root, pid_t pid);

// A user, and the "HOST:PORT" at which a socket of that user listens.
using UserAddress = std::pair<uid_t, std::string>;
// The sockets of this host's network namespace that listen at addresses of `wanted`. HOST must be an address
// of this host, its own name, or a name of such an address in /etc/hosts. berth asks no name server.
std::set<UserAddress> listening_among(const std::filesystem::path& proc_root,
                                      const std::set<std::string>& wanted);

}  // namespace berth::spark
