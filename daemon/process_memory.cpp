// SPDX-License-Identifier: Apache-2.0
#include "daemon/process_memory.h"

#include <fstream>
#include <string>

#include <unistd.h>

namespace berth::daemon {

std::optional<std::uint64_t> private_memory_bytes(const std::filesystem::path& proc_root,
                                                  const std::vector<pid_t>& pids) {
  const auto page_bytes = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  std::optional<std::uint64_t> sum;
  for (const pid_t pid : pids) {
    std::ifstream stream(proc_root / std::to_string(pid) / "statm");
    std::uint64_t total = 0;
    std::uint64_t resident = 0;
    std::uint64_t shared = 0;
    if (!(stream >> total >> resident >> shared)) continue;
    sum = sum.value_or(0) + (resident > shared ? resident - shared : 0) * page_bytes;
  }
  return sum;
}

}  // namespace berth::daemon
