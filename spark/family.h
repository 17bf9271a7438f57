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

// The process `pid` and, of `others`, those that it has started, and that these have, and so on: itself
// first, then ascending. Who started one that has ended is not known any more, and those are none of it.
// Empty where it has ended.
std::vector<Relative> family_of(const std::filesystem::path& proc_root, pid_t pid,
                                const std::vector<pid_t>& others);

}  // namespace berth::spark
