// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/daemon/fake_node.h"

#include "tests/patience.h"

#include <fstream>
#include <iterator>
#include <stdexcept>

#include <fmt/format.h>
#include <poll.h>

namespace berth::daemon::test {

namespace fs = std::filesystem;

namespace {

constexpr const char* kAllCpus = "0-7";

void write_text(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream stream(file, std::ios::trunc);
  stream << text;
  if (!stream.flush()) throw std::runtime_error("cannot write " + file.string());
}

}  // namespace

FakeNode::FakeNode() {
  host_.set_cpus(berth::test::regular_host(2, 2, 2));
  fs::create_directories(state_dir());
  fs::create_directories(runtime_dir());
  write_text(proc() / "meminfo", "MemTotal:       16384 kB\nMemFree: 1 kB\nMemAvailable:    8192 kB\n");
  write_text(proc() / "pressure/memory",
             "some avg10=9.00 avg60=0 avg300=0 total=0\nfull avg10=1.25 avg60=0 avg300=0 total=0\n");
  write_text(proc() / "loadavg", "3.20 2.00 1.00 1/100 4711\n");
  write_text(proc() / "sys/kernel/random/boot_id", "6f1b2c4e-0000-4000-8000-1234567890ab\n");
  write_text(proc() / "self/statm", "1000 500 100 1 0 1 0\n");
  put("", "cpuset.cpus.effective", kAllCpus);
  put("", "cpu.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0");
  put("", "cgroup.subtree_control", "cpuset cpu io memory pids");
  configure(kMixedLoad);
}

void FakeNode::configure(const std::string& toml) const { write_text(config_file(), toml); }

void FakeNode::add_group(const std::string& path, const std::string& cpus) const {
  // Ancestors first, and the files before the one that makes it a running workload.
  for (auto slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    const auto above = path.substr(0, slash);
    if (fs::exists(tree() / above / "cgroup.events")) continue;
    fs::create_directories(tree() / above);
    put(above, "cpuset.cpus", "");
    put(above, "cpuset.cpus.effective", kAllCpus);
    put(above, "cgroup.subtree_control", "cpuset cpu io memory pids");
    put(above, "cgroup.events", "populated 1\nfrozen 0");
  }
  const fs::path staged = tree() / path;
  fs::create_directories(staged);
  put(path, "cpuset.cpus", cpus);
  put(path, "cpuset.cpus.effective", cpus.empty() ? kAllCpus : cpus);
  put(path, "cpu.max", "max 100000");
  put(path, "memory.high", "max");
  put(path, "memory.current", "1048576");
  put(path, "cpu.pressure",
      "some avg10=2.50 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0");
  put(path, "cgroup.procs", "");
  use_cpu(path, 0);
  put(path, "cgroup.events", "populated 1\nfrozen 0");
}

void FakeNode::restart_group(const std::string& path, const std::string& cpus) const {
  // The old directory stays until the new one is there, so that their inode numbers differ.
  const auto aside = tree().parent_path() / "aside";
  fs::remove_all(aside);
  fs::rename(tree() / path, aside);
  add_group(path, cpus);
}

void FakeNode::use_cpu(const std::string& path, double cpu_seconds) const {
  put(path, "cpu.stat", fmt::format("usage_usec {:.0f}\nuser_usec 0\nsystem_usec 0", cpu_seconds * 1e6));
}

std::string FakeNode::get(const std::string& path, const std::string& file) const {
  auto text = tree_.read(path, file);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

void FakeNode::set_online(int count) {
  auto cpus = berth::test::regular_host(2, 2, 2);
  for (auto& cpu : cpus) cpu.online = cpu.cpu < count;
  host_.set_cpus(cpus);
}

void FakeNode::add_process(int pid, const std::string& path) const {
  write_text(proc() / std::to_string(pid) / "cgroup", "0::/" + path + "\n");
}

cgroup::Hierarchy FakeNode::hierarchy() const {
  auto hierarchy = tree_.hierarchy();
  hierarchy.proc_root = proc();
  return hierarchy;
}

Options FakeNode::options() const {
  Options options;
  options.config_file = config_file();
  options.cgroup_root = tree();
  options.proc_root = proc();
  options.sys_root = sys();
  options.state_dir = state_dir();
  options.runtime_dir = runtime_dir();
  return options;
}

config::Settings FakeNode::settings() const {
  auto settings = config::load(config_file());
  if (!settings) throw std::runtime_error(settings.error().message());
  return *settings;
}

std::vector<std::string> FakeNode::arguments() const {
  return {"--config",    config_file().string(), "--cgroup-root", tree().string(),
          "--proc-root", proc().string(),        "--sys-root",    sys().string(),
          "--state-dir", state_dir().string(),   "--runtime-dir", runtime_dir().string()};
}

std::map<std::string, std::string> FakeNode::tree_bytes() const {
  std::map<std::string, std::string> bytes;
  for (const auto& entry : fs::recursive_directory_iterator(tree())) {
    bytes[entry.path().string()] = entry.is_regular_file() ? read_text(entry.path()) : "";
  }
  return bytes;
}

std::string read_text(const fs::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

bool eventually(const std::function<bool()>& done) { return berth::test::eventually(done); }

}  // namespace berth::daemon::test
