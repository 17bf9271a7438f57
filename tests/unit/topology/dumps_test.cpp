// SPDX-License-Identifier: Apache-2.0
// Odd machines, by the dumps of /sys that hwloc's own tests read (tools/fetch-hwloc-dumps). Each is read, and
// its numbers of NUMA nodes and packages are those of the dump's files, which the test reads by itself.
#include "fake_host.h"
#include "topology/discover.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace berth::topology {
namespace {

namespace fs = std::filesystem;
using model::CpuSet;

std::vector<fs::path> archives() {
  std::vector<fs::path> found;
  const char* directory = std::getenv("BERTH_HWLOC_DUMPS");
  std::error_code none;
  for (fs::directory_iterator entry(directory == nullptr ? "" : directory, none), end; !none && entry != end;
       entry.increment(none)) {
    if (entry->path().native().ends_with(".tar.bz2")) found.push_back(entry->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string text_in(const fs::path& file) {
  std::ifstream stream(file);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

std::optional<int> number_in(const fs::path& file) {
  const std::string text = text_in(file);
  if (text.empty()) return std::nullopt;
  return std::atoi(text.c_str());
}

// The numbers of the entries of a directory that are called `prefix` and a number.
std::set<int> numbered(const fs::path& directory, const std::string& prefix) {
  std::set<int> numbers;
  std::error_code none;
  for (fs::directory_iterator entry(directory, none), end; !none && entry != end; entry.increment(none)) {
    const std::string name = entry->path().filename().native();
    if (!name.starts_with(prefix) || name.size() == prefix.size()) continue;
    const std::string number = name.substr(prefix.size());
    if (number.find_first_not_of("0123456789") == std::string::npos) numbers.insert(std::stoi(number));
  }
  return numbers;
}

// "00000000,000000f0" -> 4, 5, 6, 7.
std::set<int> cpus_in_mask(const fs::path& file) {
  std::string digits;
  for (const char c : text_in(file)) {
    if (std::isxdigit(static_cast<unsigned char>(c)) != 0) digits += c;
  }
  std::set<int> cpus;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const int digit = std::stoi(std::string(1, digits[digits.size() - 1 - i]), nullptr, 16);
    for (int bit = 0; bit < 4; ++bit) {
      if ((digit >> bit & 1) != 0) cpus.insert(static_cast<int>(i) * 4 + bit);
    }
  }
  return cpus;
}

// Some firmware names a vCPU in several nodes.
std::map<int, std::set<int>> nodes_of_cpus(const fs::path& nodes) {
  std::map<int, std::set<int>> nodes_of;
  for (const int node : numbered(nodes, "node")) {
    for (const int cpu : cpus_in_mask(nodes / fmt::format("node{}/cpumap", node))) nodes_of[cpu].insert(node);
  }
  return nodes_of;
}

// Kernels before 2.6.26 did not say which vCPUs are online.
void add_online(const fs::path& cpus) {
  if (fs::exists(cpus / "online")) return;
  std::string list;
  for (const int cpu : numbered(cpus, "cpu")) {
    if (number_in(cpus / fmt::format("cpu{}/online", cpu)) == 0) continue;
    list += fmt::format("{}{}", list.empty() ? "" : ",", cpu);
  }
  std::ofstream(cpus / "online") << list << "\n";
}

// They also gave the vCPUs of a node as a mask alone.
void add_cpulists(const fs::path& nodes) {
  for (const int node : numbered(nodes, "node")) {
    const fs::path directory = nodes / fmt::format("node{}", node);
    if (fs::exists(directory / "cpulist")) continue;
    CpuSet cpus;
    for (const int cpu : cpus_in_mask(directory / "cpumap")) cpus.insert(cpu);
    std::ofstream(directory / "cpulist") << cpus.to_string() << "\n";
  }
}

void read_as_in_the_dump(const fs::path& root) {
  const fs::path system = root / "sys/devices/system";
  add_online(system / "cpu");
  add_cpulists(system / "node");
  const auto topology = discover(root / "sys", root / "proc");
  ASSERT_TRUE(topology) << topology.error().message();
  const auto node_of = nodes_of_cpus(system / "node");
  std::map<int, std::set<int>> packages_of;  // by socket, as berth has it
  for (const model::Cpu& cpu : topology->cpus()) {
    if (!cpu.online) continue;
    // All threads of a core take the place of its first one.
    const CpuSet& threads = topology->core_threads(cpu.cpu);
    const auto node = node_of.find(threads.empty() ? cpu.cpu : threads.first());
    if (node != node_of.end()) {
      EXPECT_TRUE(node->second.count(cpu.numa) > 0) << "vCPU " << cpu.cpu << " on node " << cpu.numa;
    }
    const auto package =
        number_in(system / "cpu" / fmt::format("cpu{}/topology/physical_package_id", cpu.cpu));
    if (package) packages_of[cpu.socket].insert(*package);
  }
  // The kernel's number, if it gives each package a possible one of its own; and never two packages as one
  // socket.
  std::set<int> seen;
  bool numbered_well = true;
  for (const auto& [socket, packages] : packages_of) {
    EXPECT_EQ(packages.size(), 1U) << "socket " << socket;
    const int package = *packages.begin();
    numbered_well = numbered_well && package >= 0 && package <= model::kMaxCpu && seen.insert(package).second;
  }
  for (const auto& [socket, packages] : packages_of) {
    if (numbered_well) {
      EXPECT_EQ(socket, *packages.begin());
    }
  }
  // Nodes that have no vCPUs or no memory are known, and never bound to.
  std::set<int> known;
  for (const model::NumaNode& node : topology->numa_nodes()) known.insert(node.number);
  std::set<int> with_cpus;
  for (const auto& [cpu, nodes] : node_of) with_cpus.insert(nodes.begin(), nodes.end());
  for (const int node : numbered(system / "node", "node")) {
    if (node_of.empty() || with_cpus.count(node) > 0) continue;
    // In some dumps a zero byte follows the text of this file.
    const std::string online = text_in(system / "node/online");
    if (!online.empty() && online.find('\0') == std::string::npos) {
      EXPECT_TRUE(known.count(node) > 0) << "node " << node;
    }
    EXPECT_FALSE(topology->nodes_to_bind().contains(node)) << "node " << node;
  }
}

TEST(Dumps, NodesAndPackagesHaveTheNumbersOfTheDump) {
  const auto files = archives();
  if (files.empty()) GTEST_SKIP() << "BERTH_HWLOC_DUMPS names no dumps (tools/fetch-hwloc-dumps)";
  for (const fs::path& file : files) {
    SCOPED_TRACE(file.filename().native());
    const test::FakeHost place;
    const std::string unpack = fmt::format(
        "tar -xjf '{}' -C '{}' --strip-components=1 --exclude='*/sys/devices/pci*' --exclude='*/sys/bus'",
        file.native(), place.root().native());
    ASSERT_EQ(std::system(unpack.c_str()), 0) << unpack;
    read_as_in_the_dump(place.root());
  }
}

}  // namespace
}  // namespace berth::topology
