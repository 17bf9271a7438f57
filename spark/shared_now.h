// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace berth::spark {

// Other things that would end with a workload just now, or depend on it, in words. nullopt where it has no
// Spark process, or an executor or driver that is alone there. Call it right before an eviction: an
// observation can be Collector::kLookAgain_s old. Looks through all of `proc_root`.
std::optional<std::string> shared_now(const std::filesystem::path& proc_root, const std::string& workload);

}  // namespace berth::spark
