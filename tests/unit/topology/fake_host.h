// SPDX-License-Identifier: Apache-2.0
// Writes the files below /sys that describe a machine's processors, as the kernel would.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace berth::test {

struct FakeCpu {
  int cpu = 0;
  int core = 0;  // any number, the same for siblings
  int package = 0;
  int node = 0;
  std::optional<int> l2;  // which cache; nullopt: one per core
  std::optional<int> l3;  // nullopt: none
  bool online = true;
  std::optional<int> capacity = {};      // cpu_capacity
  std::optional<int> max_freq_khz = {};  // cpufreq/cpuinfo_max_freq
};

class FakeHost {
 public:
  FakeHost();
  FakeHost(const FakeHost&) = delete;
  FakeHost& operator=(const FakeHost&) = delete;
  ~FakeHost();

  // Replaces what was there.
  void set_cpus(const std::vector<FakeCpu>& cpus);
  // NUMA nodes with memory and no processor.
  void set_memory_only_nodes(const std::set<int>& nodes) { memory_only_nodes_ = nodes; }
  // A file below /sys.
  void write(const std::string& path, std::string_view content) const;
  void remove(const std::string& path) const;

  std::filesystem::path sys() const { return root_ / "sys"; }
  std::filesystem::path proc() const { return root_ / "proc"; }
  std::filesystem::path root() const { return root_; }

 private:
  void write_nodes(const std::vector<FakeCpu>& cpus) const;
  void write_cpu(const FakeCpu& cpu, const std::vector<FakeCpu>& online) const;

  std::filesystem::path root_;
  std::set<int> memory_only_nodes_;
};

// sockets x cores x threads with one L3 and one NUMA node a socket. They are numbered as by most firmware:
// first threads of all cores, then second ones.
std::vector<FakeCpu> regular_host(int sockets, int cores, int threads);

}  // namespace berth::test
