// SPDX-License-Identifier: Apache-2.0
#include "spark/bystanders.h"

#include "model/name.h"
#include "os/proc_files.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace berth::spark {

namespace {

// Whether it is the first process of a PID namespace inside the one that /proc shows.
bool is_init_of_a_container(const std::filesystem::path& process) {
  const auto numbers = os::status_field(process, "NSpid");
  return numbers && numbers->ends_with("\t1");
}

// Each process is read once.
class Stats {
 public:
  explicit Stats(const std::filesystem::path& proc_root) : proc_root_(proc_root) {}

  // nullptr where it has ended.
  const os::Stat* of(pid_t pid) {
    const auto [at, fresh] = known_.try_emplace(pid);
    if (fresh) at->second = os::read_stat(proc_root_ / std::to_string(pid));
    return at->second ? &*at->second : nullptr;
  }
  // The process and its ancestors.
  std::vector<pid_t> line_of(pid_t pid) {
    std::vector<pid_t> line;
    for (const os::Stat* stat = of(pid); stat != nullptr && line.size() < kMostAncestors; stat = of(pid)) {
      line.push_back(pid);
      pid = stat->parent;
    }
    return line;
  }

 private:
  const std::filesystem::path& proc_root_;
  std::map<pid_t, std::optional<os::Stat>> known_;
};

}  // namespace

std::map<std::string, Bystanders> find_bystanders(const std::filesystem::path& proc_root,
                                                  const std::vector<Process>& spark) {
  return find_bystanders(proc_root, spark, os::pids_of(proc_root));
}

std::map<std::string, Bystanders> find_bystanders(const std::filesystem::path& proc_root,
                                                  const std::vector<Process>& spark,
                                                  const std::vector<pid_t>& pids) {
  Stats stats(proc_root);
  std::set<pid_t> of_spark;
  std::set<pid_t> around_it;
  for (const Process& process : spark) {
    of_spark.insert(process.pid);
    const auto line = stats.line_of(process.pid);
    for (std::size_t i = 1; i < line.size(); ++i) {
      if (!is_init_of_a_container(proc_root / std::to_string(line[i]))) continue;
      around_it.insert(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      break;
    }
  }
  std::map<std::string, Bystanders> found;
  for (const pid_t pid : pids) {
    const os::Stat* stat = stats.of(pid);
    if (stat == nullptr || around_it.count(pid) > 0) continue;
    // A process that has ended, and waits for its parent, has nothing to lose.
    if (stat->state == 'Z' && stat->threads <= 1) continue;
    const auto line = stats.line_of(pid);
    if (std::any_of(line.begin(), line.end(), [&](pid_t each) { return of_spark.count(each) > 0; })) continue;
    const auto cgroup = os::cgroup_of(proc_root / std::to_string(pid));
    if (!cgroup || cgroup->empty()) continue;
    Bystanders& here = found[*cgroup];
    if (here.count++ == 0) {
      here.pid = pid;
      here.name = model::to_name(stat->name);
    }
  }
  return found;
}

}  // namespace berth::spark
