// SPDX-License-Identifier: Apache-2.0
// The BPF programs on this machine's own kernel. Needs root; makes groups named berth-host-PID and removes
// them.
#pragma once

#include "ebpf/collector.h"
#include "tests/host/real_tree.h"
#include "tests/patience.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include <bpf/bpf.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

namespace berth::ebpf::test {

using cgroup::test::Process;
using cgroup::test::RealTree;
using model::CgroupReading;

inline std::uint64_t inode(const std::filesystem::path& path) {
  struct stat about {};
  if (stat(path.c_str(), &about) != 0) throw std::runtime_error("stat " + path.string());
  return about.st_ino;
}

inline void spin(unsigned times) {
  volatile unsigned sink = 0;
  for (unsigned n = 0; n < times; ++n) sink = sink + n;
}

inline double now_s() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

inline std::uint64_t usage_ns(const std::filesystem::path& group) {
  std::ifstream file(group / "cpu.stat");
  std::string name;
  std::uint64_t value = 0;
  while (file >> name >> value) {
    if (name == "usage_usec") return value * 1000;
  }
  throw std::runtime_error("no usage in " + group.string());
}

inline void pin(pid_t pid, int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  if (sched_setaffinity(pid, sizeof(set), &set) != 0) throw std::runtime_error("sched_setaffinity");
}

// Names the thing that this machine lacks to load any of the programs; nullopt: nothing. All else that keeps
// one from being loaded is a fault of the program.
inline std::optional<std::string> no_bpf() {
  utsname kernel{};
  int version = 0;
  int patch = 0;
  if (uname(&kernel) != 0 || std::sscanf(kernel.release, "%d.%d", &version, &patch) != 2)
    throw std::runtime_error("uname");
  if (version < 6 || (version == 6 && patch < 1))
    return std::string("the programs need Linux 6.1, this is ") + kernel.release;
  if (!std::filesystem::exists("/sys/kernel/btf/vmlinux")) return "the kernel has no BTF";
  const int map = bpf_map_create(BPF_MAP_TYPE_ARRAY, "berth_host", sizeof(__u32), sizeof(__u64), 1, nullptr);
  if (map < 0 && (errno == ENOSYS || errno == EPERM))
    return std::string("this machine lets nobody use BPF: bpf(2): ") + std::strerror(errno);
  if (map >= 0) close(map);
  return std::nullopt;
}

class EbpfHost : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root";
    if (const auto why = no_bpf()) GTEST_SKIP() << *why;
    logs = (std::filesystem::temp_directory_path() / "berth-ebpf-XXXXXX").string();
    ASSERT_TRUE(mkdtemp(logs.data()));
    tree = std::make_unique<RealTree>();
  }
  void TearDown() override {
    if (!logs.empty()) std::filesystem::remove_all(logs);
  }
  Options options() const {
    Options made;
    made.cgroup_root = tree->hierarchy().root;
    made.log_directory = logs;
    return made;
  }
  Options with_software_events() const {
    Options made = options();
    made.events = {{{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
                    {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
                    {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
                    {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS}}};
    return made;
  }
  void start(const Options& with) {
    auto started = Collector::start(with);
    ASSERT_TRUE(started) << started.error().message();
    collector = std::move(*started);
  }
  CgroupReading reading(std::uint64_t id) {
    const auto done = collector->read(Collector::Depth::full);
    if (!done) throw std::runtime_error(done.error().message());
    const CgroupReading* found = collector->find(id);
    return found ? *found : CgroupReading{};
  }

  std::string logs;
  std::unique_ptr<RealTree> tree;
  std::unique_ptr<Collector> collector;
};

}  // namespace berth::ebpf::test
