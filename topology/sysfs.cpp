// SPDX-License-Identifier: Apache-2.0
#include "topology/sysfs.h"

#include "model/json.h"
#include "model/number.h"
#include "os/file_descriptor.h"
#include "os/read_file.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>

namespace berth::topology {
namespace {

namespace fs = std::filesystem;
using model::CpuSet;
using model::Error;
using model::ErrorKind;
using model::fail;
using model::Result;

// A cpulist of kMaxCpu vCPUs, every other one named, is shorter.
constexpr std::size_t kLargestList = 1U << 16U;

// "node12" -> 12.
std::optional<int> node_number(std::string_view name) {
  constexpr std::string_view kPrefix = "node";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const auto number = model::to_number<int>(name.substr(kPrefix.size()));
  return number && *number >= 0 ? number : std::nullopt;
}

std::vector<int> nodes_in(const fs::path& directory) {
  std::vector<int> nodes;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    if (const auto node = node_number(entry->path().filename().native())) nodes.push_back(*node);
  }
  // Firmware may name a vCPU in several nodes; the lowest counts then, whatever the order of the directory.
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

// Bytes of "Node 1 MemTotal:  1048576 kB" in a node's meminfo; nullopt where it has no such line.
std::optional<std::uint64_t> read_total_memory(const fs::path& node) {
  const auto text = read_file(node / "meminfo", kLargestList);
  if (!text) return std::nullopt;
  constexpr std::string_view kName = "MemTotal:";
  auto at = text->find(kName);
  if (at == std::string::npos) return std::nullopt;
  at = text->find_first_not_of(' ', at + kName.size());
  if (at == std::string::npos) return std::nullopt;
  std::uint64_t kibibytes = 0;
  const auto [end, error] = std::from_chars(text->data() + at, text->data() + text->size(), kibibytes);
  if (error != std::errc() || kibibytes > model::kMaxBytes / 1024) return std::nullopt;
  return kibibytes * 1024;
}

}  // namespace

Result<std::string> read_file(const fs::path& file, std::size_t limit_bytes) {
  const os::FileDescriptor fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  if (!fd || !os::read_up_to(fd.get(), limit_bytes + 1, text))
    return fail(Error::from_errno(errno, file.native()));
  if (text.size() > limit_bytes) {
    return fail(ErrorKind::invalid_input,
                fmt::format("{}: larger than {} bytes", file.native(), limit_bytes));
  }
  return text;
}

Result<std::optional<CpuSet>> read_cpulist(const fs::path& file) {
  auto text = read_file(file, kLargestList);
  if (!text && text.error().kind() == ErrorKind::gone) return std::nullopt;
  if (!text) return fail(text.error());
  auto cpus = CpuSet::parse(*text);
  if (!cpus) return fail(cpus.error().context(file.native()));
  return *cpus;
}

Result<std::optional<CpuSet>> read_root_cpuset(const fs::path& sys_root) {
  for (const char* file : {"cpuset.cpus.effective", "cpuset/cpuset.effective_cpus", "cpuset/cpuset.cpus"}) {
    auto cpus = read_cpulist(sys_root / "fs/cgroup" / file);
    if (!cpus) return cpus;
    // An empty cpuset does not mean that the host has no processor.
    if (*cpus && !(*cpus)->empty()) return cpus;
  }
  return std::nullopt;
}

std::map<int, int> read_numa_nodes(const fs::path& sys_root, const CpuSet& offline) {
  std::map<int, int> node_of;
  const auto nodes = sys_root / "devices/system/node";
  for (const int node : nodes_in(nodes)) {
    const auto cpus = read_cpulist(nodes / fmt::format("node{}", node) / "cpulist");
    if (!cpus || !*cpus) continue;
    for (const int cpu : **cpus) node_of.emplace(cpu, node);
  }
  // A node's list holds online vCPUs only; the link in the vCPU's own directory stays.
  for (const int cpu : offline) {
    for (const int node : nodes_in(sys_root / "devices/system/cpu" / fmt::format("cpu{}", cpu))) {
      node_of.emplace(cpu, node);
    }
  }
  return node_of;
}

std::vector<model::NumaNode> read_memory_of_nodes(const fs::path& sys_root) {
  const auto directory = sys_root / "devices/system/node";
  std::vector<model::NumaNode> nodes;
  const auto online = read_cpulist(directory / "online");
  if (!online || !*online || (*online)->size() > model::kMostNumaNodes) return nodes;
  const auto with_memory = read_cpulist(directory / "has_memory");
  for (const int number : **online) {
    model::NumaNode node{.number = number,
                         .memory_bytes = read_total_memory(directory / fmt::format("node{}", number))};
    if (with_memory && *with_memory) {
      if (!(*with_memory)->contains(number)) node.memory_bytes = 0;
      // The kernel knows better than a size of 0.
      if ((*with_memory)->contains(number) && node.memory_bytes == 0) node.memory_bytes.reset();
    }
    nodes.push_back(node);
  }
  return nodes;
}

std::map<int, int> read_core_kinds(const fs::path& sys_root) {
  std::map<int, int> kind_of;
  int rank = 0;
  for (const char* pmu : {"cpu_lowpower", "cpu_atom", "cpu_core"}) {
    const auto cpus = read_cpulist(sys_root / "devices" / pmu / "cpus");
    if (!cpus || !*cpus || (*cpus)->empty()) continue;
    for (const int cpu : **cpus) kind_of.emplace(cpu, rank);
    ++rank;
  }
  if (rank < 2) kind_of.clear();
  return kind_of;
}

}  // namespace berth::topology
