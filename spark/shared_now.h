// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace berth::spark {

// Other things that would end with a workload just now, or depend on it, in words. nullopt where it has no
// Spark process, or an executor or driver that is alone there. Call it right before an eviction: an
// observation can be Collector::kLookAgain_s old. Reads these processes, those of the workload, and their
// ancestors: a whole host could take a minute.
std::optional<std::string> shared_now(const std::filesystem::path& proc_root, const std::string& workload,
                                      const std::vector<pid_t>& pids);

}  // namespace berth::spark
