// SPDX-License-Identifier: Apache-2.0
#include "cli/host_scan.h"

#include "model/cpu_set.h"
#include "model/number.h"
#include "os/mounts.h"
#include "os/proc_files.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <map>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/core.h>
#include <unistd.h>

namespace berth::cli {

namespace {

namespace fs = std::filesystem;

// Limits of what a process can make this read.
constexpr std::size_t kMostBytes = std::size_t{1} << 16;
constexpr std::size_t kMostTableLines = 100'000;
constexpr std::size_t kMostDescriptors = 10'000;

std::string read_start(const fs::path& path) { return os::read_start(path, kMostBytes); }

// The unit of a process by the path of its cgroup: the path up to its first service or scope; "" for none.
std::string unit_of(const fs::path& process) {
  const std::string path = os::cgroup_of(process).value_or("");
  for (std::size_t end = 0; end < path.size(); ++end) {
    end = std::min(path.find('/', end), path.size());
    const std::string_view start = std::string_view(path).substr(0, end);
    if (start.ends_with(".service") || start.ends_with(".scope")) return std::string(start);
  }
  return "";
}

bool is_left_out(const std::string& id) {
  return id == "init.scope" || id.starts_with("user.slice/") || id.starts_with("berth.slice/");
}

// The sockets of one network namespace.
struct Sockets {
  std::map<std::string, std::uint16_t> listening;    // port by inode
  std::map<std::uint16_t, std::size_t> connections;  // by local port
};

void add_table(const fs::path& table, Sockets& sockets) {
  std::ifstream stream(table);
  std::string line;
  std::getline(stream, line);  // titles
  for (std::size_t lines = 0; lines < kMostTableLines && std::getline(stream, line); ++lines) {
    std::istringstream words(line);
    std::array<std::string, 10> fields;  // slot, local, remote, state, ..., inode
    for (std::string& field : fields) words >> field;
    const std::size_t colon = fields[1].find(':');
    if (!words || colon == std::string::npos) continue;
    const auto port = model::to_number<std::uint16_t>(std::string_view(fields[1]).substr(colon + 1), 16);
    if (!port) continue;
    if (fields[3] == "0A") sockets.listening[fields[9]] = *port;
    if (fields[3] == "01") ++sockets.connections[*port];
  }
}

class Namespaces {
 public:
  const Sockets& of(const fs::path& process) {
    std::error_code error;
    const std::string name = fs::read_symlink(process / "ns" / "net", error).native();
    const auto [found, is_new] = known_.try_emplace(name);
    if (is_new) {
      add_table(process / "net" / "tcp", found->second);
      add_table(process / "net" / "tcp6", found->second);
    }
    return found->second;
  }

 private:
  std::map<std::string, Sockets> known_;
};

// Adds the ports at which the process listens. False where its descriptors may not be seen.
bool add_ports(const fs::path& process, const Sockets& sockets, SeenUnit& unit) {
  std::error_code error;
  fs::directory_iterator descriptors(process / "fd", error);
  if (error) return error != std::errc::permission_denied;
  std::size_t count = 0;
  for (; descriptors != fs::directory_iterator() && count < kMostDescriptors;
       descriptors.increment(error), ++count) {
    if (error) break;
    std::error_code gone;
    const std::string target = fs::read_symlink(descriptors->path(), gone).native();
    if (!target.starts_with("socket:[") || !target.ends_with("]")) continue;
    const auto found = sockets.listening.find(target.substr(8, target.size() - 9));
    if (found == sockets.listening.end() || !unit.ports.insert(found->second).second) continue;
    const auto connected = sockets.connections.find(found->second);
    if (connected != sockets.connections.end()) unit.connections += connected->second;
  }
  return true;
}

// Seconds from the host's start to the process's.
std::optional<double> started_s(const fs::path& process) {
  const auto stat = os::read_stat(process);
  if (!stat) return std::nullopt;
  return static_cast<double>(stat->started) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

std::optional<double> cpu_time_s(const fs::path& cgroup) {
  std::istringstream words(read_start(cgroup / "cpu.stat"));
  for (std::string name, value; words >> name >> value;) {
    if (name != "usage_usec") continue;
    const auto usage = model::to_number<std::uint64_t>(value);
    return usage ? std::optional(static_cast<double>(*usage) * 1e-6) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<double> quota_cores(const fs::path& cgroup) {
  std::istringstream words(read_start(cgroup / "cpu.max"));
  std::string quota;
  std::string period;
  words >> quota >> period;
  const auto quota_us = model::to_number<double>(quota);
  const auto period_us = model::to_number<double>(period);
  if (!quota_us || !period_us || !(*period_us > 0)) return std::nullopt;
  return *quota_us / *period_us;
}

class Scan {
 public:
  Scan(fs::path proc_root, fs::path cgroup_root)
      : proc_root_(std::move(proc_root)), cgroup_root_(std::move(cgroup_root)) {}

  void look_at_processes() {
    for (const pid_t pid : os::pids_of(proc_root_)) look_at(proc_root_ / std::to_string(pid));
  }

  void measure(const std::function<void()>& wait) {
    std::map<std::string, double> before;
    for (const auto& [id, unit] : units_) {
      if (const auto used = cpu_time_s(cgroup_root_ / id)) before[id] = *used;
    }
    const auto began = std::chrono::steady_clock::now();
    wait();
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - began;
    // Read after the look, as is the CPU time that the age divides. A young unit's age grows much in a look.
    const auto uptime_s = model::to_number<double>(first_word(proc_root_ / "uptime"));
    for (auto& [id, unit] : units_) {
      const auto used = cpu_time_s(cgroup_root_ / id);
      const auto first = before.find(id);
      if (used && first != before.end() && passed.count() > 0)
        unit.cores = std::max(0.0, *used - first->second) / passed.count();
      const auto start = oldest_.find(id);
      if (used && uptime_s && start != oldest_.end() && *uptime_s > start->second)
        unit.mean_cores = *used / (*uptime_s - start->second);
      unit.quota_cores = quota_cores(cgroup_root_ / id);
    }
  }

  SeenHost host() {
    for (auto& [id, unit] : units_) seen_.units.push_back(std::move(unit));
    seen_.kubernetes = pods_.size();
    const auto cpus = model::CpuSet::parse(read_start(cgroup_root_ / "cpuset.cpus.effective"));
    if (cpus) seen_.cpus = cpus->size();
    if (seen_.cpus == 0) seen_.cpus = static_cast<std::size_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
    return std::move(seen_);
  }

 private:
  static std::string first_word(const fs::path& path) {
    const std::string text = read_start(path);
    return text.substr(0, text.find_first_of(" \n"));
  }

  void look_at(const fs::path& process) {
    const std::string id = unit_of(process);
    if (id.empty() || is_left_out(id)) return;
    if (id.starts_with("kubepods")) {
      pods_.insert(id);
      return;
    }
    SeenUnit& unit = units_[id];
    unit.id = id;
    ++unit.processes;
    if (!add_ports(process, namespaces_.of(process), unit)) ++seen_.hidden;
    if (read_start(process / "cmdline").find("org.apache.spark.") != std::string::npos) unit.spark = true;
    if (const auto start = started_s(process)) {
      const auto [found, is_new] = oldest_.try_emplace(id, *start);
      if (!is_new) found->second = std::min(found->second, *start);
    }
  }

  fs::path proc_root_;
  fs::path cgroup_root_;
  Namespaces namespaces_;
  std::map<std::string, SeenUnit> units_;
  std::map<std::string, double> oldest_;  // start of the oldest process
  std::set<std::string> pods_;
  SeenHost seen_;
};

}  // namespace

fs::path cgroup_root_of(const fs::path& proc_root) {
  const auto table = os::read_mounts(proc_root);
  if (!table) return "/sys/fs/cgroup";
  for (const os::Mount& mount : table->mounts) {
    if (mount.type == "cgroup2") return mount.point;
  }
  return "/sys/fs/cgroup";
}

Outcome<SeenHost> scan_host(const fs::path& proc_root, const fs::path& cgroup_root,
                            const std::function<void()>& wait) {
  std::error_code error;
  if (!fs::exists(cgroup_root / "cgroup.controllers", error)) {
    return problem(Exit::failed,
                   fmt::format("{} is no cgroup v2 tree, which berth needs; start the host with "
                               "systemd.unified_cgroup_hierarchy=1",
                               cgroup_root.native()));
  }
  Scan scan(proc_root, cgroup_root);
  scan.look_at_processes();
  scan.measure(wait);
  return scan.host();
}

}  // namespace berth::cli
