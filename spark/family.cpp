// SPDX-License-Identifier: Apache-2.0
#include "spark/family.h"

#include "os/proc_files.h"

#include <map>
#include <set>
#include <string>

namespace berth::spark {

std::vector<Relative> family_of(const std::filesystem::path& proc_root, pid_t pid,
                                const std::vector<pid_t>& others) {
  std::map<pid_t, os::Stat> stats;
  for (const pid_t each : others) {
    if (auto stat = os::read_stat(proc_root / std::to_string(each))) stats.emplace(each, std::move(*stat));
  }
  const auto first = os::read_stat(proc_root / std::to_string(pid));
  if (!first) return {};
  std::set<pid_t> members{pid};
  // A parent can have a higher number than its child: repeat until a pass finds no new one.
  for (bool grown = true; grown;) {
    grown = false;
    for (const auto& [each, stat] : stats) {
      if (members.count(stat.parent) > 0) grown |= members.insert(each).second;
    }
  }
  std::vector<Relative> family{{pid, first->started}};
  for (const pid_t each : members) {
    if (each != pid) family.push_back({each, stats.at(each).started});
  }
  return family;
}

}  // namespace berth::spark
