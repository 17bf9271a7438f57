// SPDX-License-Identifier: Apache-2.0
#include "spark/bystanders.h"

#include "model/name.h"
#include "os/proc_files.h"

#include <algorithm>
#include <set>
#include <utility>

namespace berth::spark {

namespace {

constexpr std::size_t kMostAncestors = 1000;  // a table that is read while it changes may have loops

// Whether it is the first process of a PID namespace inside the one that /proc shows.
bool is_init_of_a_container(const std::filesystem::path& process) {
  const auto numbers = os::status_field(process, "NSpid");
  return numbers && numbers->ends_with("\t1");
}

using Stats = std::map<pid_t, os::Stat>;

// The process and its known ancestors.
std::vector<pid_t> line_of(const Stats& stats, pid_t pid) {
  std::vector<pid_t> line;
  for (auto at = stats.find(pid); at != stats.end() && line.size() < kMostAncestors;
       at = stats.find(at->second.parent))
    line.push_back(at->first);
  return line;
}

}  // namespace

std::map<std::string, Bystanders> find_bystanders(const std::filesystem::path& proc_root,
                                                  const std::vector<Process>& spark) {
  Stats stats;
  for (const pid_t pid : os::pids_of(proc_root)) {
    if (auto stat = os::read_stat(proc_root / std::to_string(pid))) stats.emplace(pid, std::move(*stat));
  }
  std::set<pid_t> of_spark;
  std::set<pid_t> around_it;
  for (const Process& process : spark) {
    of_spark.insert(process.pid);
    const auto line = line_of(stats, process.pid);
    for (std::size_t i = 1; i < line.size(); ++i) {
      if (!is_init_of_a_container(proc_root / std::to_string(line[i]))) continue;
      around_it.insert(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      break;
    }
  }
  std::map<std::string, Bystanders> found;
  for (const auto& [pid, stat] : stats) {
    // A process that has ended, and waits for its parent, has nothing to lose.
    if ((stat.state == 'Z' && stat.threads <= 1) || around_it.count(pid) > 0) continue;
    const auto line = line_of(stats, pid);
    if (std::any_of(line.begin(), line.end(), [&](pid_t each) { return of_spark.count(each) > 0; })) continue;
    const auto cgroup = os::cgroup_of(proc_root / std::to_string(pid));
    if (!cgroup || cgroup->empty()) continue;
    Bystanders& here = found[*cgroup];
    if (here.count++ == 0) {
      here.pid = pid;
      here.name = model::to_name(stat.name);
    }
  }
  return found;
}

}  // namespace berth::spark
