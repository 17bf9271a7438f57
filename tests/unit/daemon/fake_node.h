// SPDX-License-Identifier: Apache-2.0
// A whole host for the daemon, of ordinary files, removed after the test. It has two sockets of two cores of
// two threads, a cgroup v2 tree, /proc, and directories of its own.
#pragma once

#include "config/config.h"
#include "daemon/options.h"
#include "os/clock.h"
#include "tests/unit/cgroup/fake_tree.h"
#include "tests/unit/topology/fake_host.h"

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace berth::daemon::test {

class FakeNode {
 public:
  FakeNode();

  std::filesystem::path tree() const { return tree_.root(); }
  std::filesystem::path proc() const { return host_.proc(); }
  std::filesystem::path sys() const { return host_.sys(); }
  std::filesystem::path state_dir() const { return host_.root() / "state"; }
  std::filesystem::path runtime_dir() const { return host_.root() / "run"; }
  std::filesystem::path config_file() const { return host_.root() / "berth.toml"; }

  void configure(const std::string& toml) const;
  // A populated group with every control file, having used no CPU; "" leaves cpuset.cpus unset.
  void add_group(const std::string& path, const std::string& cpus = "") const;
  // Removes and makes it again: another directory, another id.
  void restart_group(const std::string& path, const std::string& cpus = "") const;
  void remove_group(const std::string& path) const { tree_.remove(path); }
  void put(const std::string& path, const std::string& file, const std::string& text) const {
    tree_.write(path, file, text + "\n");
  }
  void use_cpu(const std::string& path, double cpu_seconds) const;
  // A control file without its line break.
  std::string get(const std::string& path, const std::string& file) const;
  std::string cpus(const std::string& path) const { return get(path, "cpuset.cpus"); }
  // vCPUs 0 to count - 1 only.
  void set_online(int count);

  // /sys of the host.
  const berth::test::FakeHost& host() const { return host_; }
  // Makes a process of that number run in the group.
  void add_process(int pid, const std::string& path) const;

  cgroup::Hierarchy hierarchy() const;
  Options options() const;
  config::Settings settings() const;
  // berthd's options for this host.
  std::vector<std::string> arguments() const;

  // Every file of the tree by path, with its bytes.
  std::map<std::string, std::string> tree_bytes() const;

 private:
  cgroup::test::FakeTree tree_;
  berth::test::FakeHost host_;
};

// Two latency-sensitive services with two vCPUs of their own each and everything below batch/ best-effort.
// Its priority stays as it is: the tests of it say otherwise.
inline constexpr const char* kMixedLoad = R"(
[sampling]
interval = "100ms"
max_cpu = 1
[interference]
best_effort_priority = "leave"
isolation = "vcpus"
[[workload]]
match = "web/*"
class = "latency-sensitive"
vcpus = 2
service = "web"
[[workload]]
match = "batch/*"
class = "best-effort"
)";

// A clock whose two sources show the same time.
inline os::Clock fake_clock(std::function<double()> now) {
  return os::Clock({.boot = now, .wall = now, .monotonic = now});
}

std::string read_text(const std::filesystem::path& file);
// Polls until `done`; false after kPatience (tests/patience.h).
bool eventually(const std::function<bool()>& done);

}  // namespace berth::daemon::test
