// SPDX-License-Identifier: Apache-2.0
#include "fake_host.h"

#include "model/cpu_set.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <stdexcept>
#include <system_error>

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

namespace berth::test {
namespace {

namespace fs = std::filesystem;
using model::CpuSet;

// A mask as the kernel prints it: 32-bit words, highest first, joined by commas.
std::string mask(const CpuSet& cpus) {
  const int words = cpus.empty() ? 1 : *std::max_element(cpus.begin(), cpus.end()) / 32 + 1;
  std::string text;
  for (int word = words - 1; word >= 0; --word) {
    unsigned bits = 0;
    for (int bit = 0; bit < 32; ++bit) {
      if (cpus.contains(word * 32 + bit)) bits |= 1U << static_cast<unsigned>(bit);
    }
    text += fmt::format("{:08x}{}", bits, word == 0 ? "\n" : ",");
  }
  return text;
}

CpuSet those(const std::vector<FakeCpu>& cpus, const std::function<bool(const FakeCpu&)>& wanted) {
  CpuSet set;
  for (const auto& cpu : cpus) {
    if (wanted(cpu)) set.insert(cpu.cpu);
  }
  return set;
}

}  // namespace

FakeHost::FakeHost() {
  // Thousands of small files: in memory where that is to be had.
  const bool memory = ::access("/dev/shm", W_OK) == 0;
  std::string name =
      ((memory ? fs::path("/dev/shm") : fs::temp_directory_path()) / "berth-host-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp " + name);
  root_ = name;
  fs::create_directories(proc());
}

FakeHost::~FakeHost() {
  std::error_code ignored;
  fs::remove_all(root_, ignored);
}

void FakeHost::write(const std::string& path, std::string_view content) const {
  const auto file = sys() / path;
  std::ofstream out(file);
  if (!out) {
    fs::create_directories(file.parent_path());
    out.open(file);
  }
  out << content;
}

void FakeHost::remove(const std::string& path) const { fs::remove_all(sys() / path); }

void FakeHost::set_cpus(const std::vector<FakeCpu>& cpus) {
  fs::remove_all(sys());
  std::vector<FakeCpu> online;
  for (const auto& cpu : cpus) {
    if (cpu.online) online.push_back(cpu);
  }
  const auto all = [](const FakeCpu&) { return true; };
  write("devices/system/cpu/possible", those(cpus, all).to_string() + "\n");
  write("devices/system/cpu/present", those(cpus, all).to_string() + "\n");
  write("devices/system/cpu/online", those(online, all).to_string() + "\n");
  for (const auto& cpu : cpus) write_cpu(cpu, online);
  write_nodes(cpus);
}

void FakeHost::write_cpu(const FakeCpu& cpu, const std::vector<FakeCpu>& online) const {
  const auto base = fmt::format("devices/system/cpu/cpu{}/", cpu.cpu);
  write(base + "online", cpu.online ? "1\n" : "0\n");
  fs::create_directories(sys() / "devices/system/node" / fmt::format("node{}", cpu.node));
  fs::create_directory_symlink(fmt::format("../../node/node{}", cpu.node),
                               sys() / base / fmt::format("node{}", cpu.node));
  // The kernel takes the rest away with the processor.
  if (!cpu.online) return;
  const auto same_core = [&](const FakeCpu& other) {
    return other.package == cpu.package && other.core == cpu.core;
  };
  const auto core_cpus = those(online, same_core);
  write(base + "topology/core_id", fmt::format("{}\n", cpu.core));
  write(base + "topology/physical_package_id", fmt::format("{}\n", cpu.package));
  write(base + "topology/core_cpus", mask(core_cpus));
  write(base + "topology/package_cpus",
        mask(those(online, [&](const FakeCpu& other) { return other.package == cpu.package; })));
  const auto cache = [&](int level, const CpuSet& shared) {
    const auto dir = base + fmt::format("cache/index{}/", level);
    write(dir + "level", fmt::format("{}\n", level));
    write(dir + "type", "Unified\n");
    write(dir + "shared_cpu_map", mask(shared));
  };
  cache(2, cpu.l2 ? those(online, [&](const FakeCpu& other) { return other.l2 == cpu.l2; }) : core_cpus);
  if (cpu.l3) cache(3, those(online, [&](const FakeCpu& other) { return other.l3 == cpu.l3; }));
  if (cpu.capacity) write(base + "cpu_capacity", fmt::format("{}\n", *cpu.capacity));
  if (cpu.max_freq_khz) write(base + "cpufreq/cpuinfo_max_freq", fmt::format("{}\n", *cpu.max_freq_khz));
}

void FakeHost::write_nodes(const std::vector<FakeCpu>& cpus) const {
  std::map<int, CpuSet> nodes;
  for (const auto& cpu : cpus) {
    nodes[cpu.node];
    if (cpu.online) nodes[cpu.node].insert(cpu.cpu);
  }
  for (const int node : memory_only_nodes_) nodes[node];
  CpuSet numbers;
  for (const auto& [node, members] : nodes) {
    numbers.insert(node);
    const auto dir = fmt::format("devices/system/node/node{}/", node);
    write(dir + "cpumap", mask(members));
    write(dir + "cpulist", members.to_string() + "\n");
    write(dir + "meminfo", fmt::format("Node {} MemTotal:       1048576 kB\n", node));
    std::string distances;
    for (const auto& [other, unused] : nodes) distances += other == node ? "10 " : "20 ";
    write(dir + "distance", distances + "\n");
  }
  write("devices/system/node/online", numbers.to_string() + "\n");
}

std::vector<FakeCpu> regular_host(int sockets, int cores, int threads) {
  std::vector<FakeCpu> cpus;
  for (int thread = 0; thread < threads; ++thread) {
    for (int core = 0; core < sockets * cores; ++core) {
      const int socket = core / cores;
      cpus.push_back({.cpu = thread * sockets * cores + core,
                      .core = core,
                      .package = socket,
                      .node = socket,
                      .l2 = {},
                      .l3 = socket});
    }
  }
  return cpus;
}

}  // namespace berth::test
