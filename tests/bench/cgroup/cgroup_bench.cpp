// SPDX-License-Identifier: Apache-2.0
// Measures the cost of a tick in cgroup/, on a real v2 tree. It needs root, makes groups named
// berth-bench-PID and removes them. For controllers that this machine's v2 tree lacks, it reads a copy of
// their files. Ordinary files are slower to open than cgroupfs's, and quicker to read.
#include "cgroup/discovery.h"
#include "cgroup/hierarchy.h"
#include "cgroup/sampler.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <malloc.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace berth::cgroup {
namespace {

// Resident memory of this process, KiB.
double resident_kib() {
  std::ifstream statm("/proc/self/statm");
  long pages = 0;
  statm >> pages >> pages;
  return static_cast<double>(pages) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1024;
}

// `count` groups below one of their own; removed with this object.
class Groups {
 public:
  explicit Groups(int count) : Groups(find_hierarchy({}, "/proc").value(), count) {}
  Groups(Hierarchy hierarchy, int count) : hierarchy_(std::move(hierarchy)) {
    base_ = "berth-bench-" + std::to_string(getpid());
    std::filesystem::create_directories(path(base_));
    hand_down_controllers();
    for (int i = 0; i < count; ++i) {
      names_.push_back(base_ + "/g" + std::to_string(i));
      std::filesystem::create_directories(path(names_.back()));
    }
  }
  ~Groups() {
    for (const std::string& name : names_) rmdir(path(name).c_str());
    rmdir(path(base_).c_str());
  }
  Groups(const Groups&) = delete;
  Groups& operator=(const Groups&) = delete;

  const Hierarchy& hierarchy() const { return hierarchy_; }
  const std::vector<std::string>& names() const { return names_; }
  std::filesystem::path path(const std::string& name) const { return hierarchy_.root / name; }
  model::WorkloadRule rule() const {
    model::WorkloadRule made;
    made.match = base_ + "/*";
    made.origin = "bench:1";
    made.workload_class = model::WorkloadClass::best_effort;
    return made;
  }
  void add_to(Sampler& sampler, std::optional<std::uint32_t> user = std::nullopt) const {
    for (const std::string& name : names_)
      sampler.add(name, Cgroup::open(hierarchy_.root, name).value(), user);
  }

 private:
  // The groups get the controllers that the root gives its children.
  void hand_down_controllers() const {
    std::ifstream given(hierarchy_.root / "cgroup.subtree_control");
    for (std::string name; given >> name;) {
      std::ofstream(path(base_) / "cgroup.subtree_control") << '+' << name;
    }
  }

  Hierarchy hierarchy_;
  std::string base_;
  std::vector<std::string> names_;
};

void sample_idle(benchmark::State& state) {
  const double before = resident_kib();
  const Groups groups(static_cast<int>(state.range(0)));
  Sampler sampler;
  groups.add_to(sampler);
  sampler.sample(0);
  for (auto _ : state) benchmark::DoNotOptimize(sampler.sample(1));
  state.counters["rss_growth_KiB"] = resident_kib() - before;
}
BENCHMARK(sample_idle)->Arg(100)->Arg(1000)->Unit(benchmark::kMillisecond);

// Every group used CPU since the last sample: a process went through all of them.
void sample_active(benchmark::State& state) {
  const Groups groups(static_cast<int>(state.range(0)));
  Sampler sampler;
  groups.add_to(sampler);
  sampler.sample(0);
  for (auto _ : state) {
    state.PauseTiming();
    const pid_t visitor = fork();
    if (visitor == 0) {
      for (const std::string& name : groups.names()) std::ofstream(groups.path(name) / "cgroup.procs") << 0;
      _exit(0);
    }
    waitpid(visitor, nullptr, 0);
    state.ResumeTiming();
    benchmark::DoNotOptimize(sampler.sample(1));
  }
}
BENCHMARK(sample_active)->Arg(1000)->Unit(benchmark::kMillisecond);

// The second argument: the share of users in microseconds, if the groups are one user's; 0: they are root's.
void sample_all_files(benchmark::State& state) {
  std::string name = (std::filesystem::temp_directory_path() / "berth-bench-XXXXXX").string();
  if (!mkdtemp(name.data())) return state.SkipWithError("mkdtemp");
  {
    Hierarchy hierarchy;
    hierarchy.root = name;
    const Groups groups(hierarchy, static_cast<int>(state.range(0)));
    for (const std::string& group : groups.names()) {
      const auto file = [&](const char* control) { return std::ofstream(groups.path(group) / control); };
      file("cpu.stat") << "usage_usec 1000\nuser_usec 1\nsystem_usec 1\n";
      file("memory.current") << "4096\n";
      file("cpu.pressure") << "some avg10=1.00 avg60=0.00 avg300=0.00 total=0\n";
      file("cpuset.cpus") << "0-3\n";
      file("cpuset.cpus.effective") << "0-3\n";
      file("cpu.max") << "max 100000\n";
      file("memory.high") << "max\n";
    }
    Sampler sampler;
    const std::int64_t share_us = state.range(1);
    groups.add_to(sampler, share_us > 0 ? std::optional(1000U) : std::nullopt);
    sampler.sample(0);
    if (share_us > 0) sampler.set_share(1000 * share_us);
    for (auto _ : state) benchmark::DoNotOptimize(sampler.sample(1));
  }
  std::filesystem::remove_all(name);
}
BENCHMARK(sample_all_files)
    ->Args({1000, 0})
    ->Args({4000, 0})
    ->Args({4000, 2500})
    ->Unit(benchmark::kMillisecond);

void first_walk(benchmark::State& state) {
  const Groups groups(static_cast<int>(state.range(0)));
  double growth = 0;
  for (auto _ : state) {
    const double before = resident_kib();
    auto discovery = Discovery::start(groups.hierarchy(), {groups.rule()}).value();
    benchmark::DoNotOptimize(discovery->process());
    growth = resident_kib() - before;
    state.PauseTiming();
    discovery.reset();
    malloc_trim(0);
    state.ResumeTiming();
  }
  state.counters["rss_growth_KiB"] = growth;
}
BENCHMARK(first_walk)->Arg(1000)->Arg(10000)->Unit(benchmark::kMillisecond)->Iterations(5);

// One group made and removed while many are watched.
void group_comes_and_goes(benchmark::State& state) {
  const Groups groups(static_cast<int>(state.range(0)));
  auto discovery = Discovery::start(groups.hierarchy(), {groups.rule()}).value();
  const std::filesystem::path extra = groups.path(groups.names().front()).parent_path() / "extra";
  for (auto _ : state) {
    mkdir(extra.c_str(), 0755);
    discovery->process();
    rmdir(extra.c_str());
    discovery->process();
  }
}
BENCHMARK(group_comes_and_goes)->Arg(1000)->Arg(10000)->Unit(benchmark::kMicrosecond)->Iterations(200);

void rules_changed(benchmark::State& state) {
  const Groups groups(static_cast<int>(state.range(0)));
  auto discovery = Discovery::start(groups.hierarchy(), {}).value();
  std::vector<model::WorkloadRule> rules;
  for (int i = 0; i < 20; ++i) {
    rules.push_back(groups.rule());
    rules.back().match = "system.slice/**/service-" + std::to_string(i) + "@*.service";
  }
  for (auto _ : state) benchmark::DoNotOptimize(discovery->set_rules(rules));
}
BENCHMARK(rules_changed)->Arg(1000)->Arg(10000)->Unit(benchmark::kMillisecond)->Iterations(10);

}  // namespace
}  // namespace berth::cgroup

BENCHMARK_MAIN();
