// SPDX-License-Identifier: Apache-2.0
// The BPF programs on this machine's own kernel. Needs root; makes groups named berth-host-PID and removes
// them.
#pragma once

#include "ebpf/collector.h"
#include "tests/host/real_tree.h"
#include "tests/patience.h"

#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/stat.h>
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

class EbpfHost : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root";
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
  // If the machine cannot load the programs, these tests cannot run; the test says so in words.
  void start(const Options& with) {
    auto started = Collector::start(with);
    if (!started && started.error().kind() == model::ErrorKind::unavailable) {
      GTEST_SKIP() << started.error().message();
    }
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
