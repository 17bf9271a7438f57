// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include <sys/types.h>

namespace berth::spark {

struct Relative {
  pid_t pid = 0;
  std::uint64_t started = 0;  // with the pid it names one process of this boot
  friend bool operator==(const Relative&, const Relative&) = default;
};

// The process `pid` and its descendants among `others`: itself first, then ascending. A process whose parent
// has ended is left out: its origin is not known any more. Empty where `pid` has ended.
std::vector<Relative> family_of(const std::filesystem::path& proc_root, pid_t pid,
                                const std::vector<pid_t>& others);

}  // namespace berth::spark
