// SPDX-License-Identifier: Apache-2.0
// A directory that looks like a cgroup v2 tree, gone with the test.
#pragma once

#include "cgroup/hierarchy.h"

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include <stdlib.h>

namespace berth::cgroup::test {

class FakeTree {
 public:
  FakeTree() {
    std::string name = (std::filesystem::temp_directory_path() / "berth-cgroup-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("mkdtemp: " + name);
    base_ = name;
    std::filesystem::create_directories(root());
    std::filesystem::create_directories(proc());
    write("", "cgroup.controllers", "cpuset cpu io memory pids\n");
  }
  ~FakeTree() {
    std::error_code ignored;
    std::filesystem::remove_all(base_, ignored);
  }
  FakeTree(const FakeTree&) = delete;
  FakeTree& operator=(const FakeTree&) = delete;

  std::filesystem::path root() const { return base_ / "cgroup"; }
  std::filesystem::path proc() const { return base_ / "proc"; }

  // A group with processes, or without.
  void make(const std::string& path, bool populated = true) const {
    std::filesystem::create_directories(root() / path);
    write(path, "cgroup.events", populated ? "populated 1\nfrozen 0\n" : "populated 0\nfrozen 0\n");
  }
  void write(const std::string& path, const std::string& file, const std::string& text) const {
    std::ofstream stream(root() / path / file);
    stream << text;
    if (!stream.flush()) throw std::runtime_error("cannot write " + file + " of " + path);
  }
  void write_proc(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((proc() / file).parent_path());
    std::ofstream(proc() / file) << text;
  }
  std::string read(const std::string& path, const std::string& file) const {
    std::ifstream stream(root() / path / file);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  void remove(const std::string& path) const { std::filesystem::remove_all(root() / path); }

  Hierarchy hierarchy() const {
    Hierarchy hierarchy;
    hierarchy.root = root();
    hierarchy.controllers = {"cpuset", "cpu", "io", "memory", "pids"};
    hierarchy.proc_root = proc();
    hierarchy.pod_logs = base_ / "pods";
    hierarchy.kubelet_cpus = base_ / "cpu_manager_state";
    return hierarchy;
  }

 private:
  std::filesystem::path base_;
};

}  // namespace berth::cgroup::test
