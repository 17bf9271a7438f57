// SPDX-License-Identifier: Apache-2.0
// Groups of one test in this machine's own cgroup v2 tree, and processes in them.
#pragma once

#include "cgroup/hierarchy.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace berth::cgroup::test {

inline void remove_group(const std::filesystem::path& path) {
  std::error_code ignored;
  std::vector<std::filesystem::path> children;
  for (const auto& entry : std::filesystem::directory_iterator(path, ignored)) {
    if (entry.is_directory(ignored)) children.push_back(entry.path());
  }
  for (const auto& child : children) remove_group(child);
  rmdir(path.c_str());
}

// A process that does `work` until it is killed with this object.
class Process {
 public:
  template <typename Work>
  explicit Process(Work work) : pid_(fork()) {
    if (pid_ < 0) throw std::runtime_error(std::string("fork: ") + std::strerror(errno));
    if (pid_ > 0) return;
    // A BPF link that it inherited would stay attached as long as it lives.
    close_range(3, ~0U, 0);
    while (true) work();
  }
  Process() : Process([] { pause(); }) {}
  Process(Process&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  Process& operator=(Process&&) = delete;
  ~Process() { end(); }

  pid_t pid() const { return pid_; }
  void move_to(const std::filesystem::path& group) const {
    std::ofstream procs(group / "cgroup.procs");
    procs << pid_;
    if (!procs.flush()) throw std::runtime_error("cannot move a process to " + group.string());
  }
  void end() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
};

class RealTree {
 public:
  RealTree() {
    const auto found = find_hierarchy({}, "/proc");
    if (!found) throw std::runtime_error(found.error().message());
    hierarchy_ = *found;
    name_ = "berth-host-" + std::to_string(getpid());
    mkdir(base().c_str(), 0755);
  }
  ~RealTree() { remove_group(base()); }
  RealTree(const RealTree&) = delete;
  RealTree& operator=(const RealTree&) = delete;

  const Hierarchy& hierarchy() const { return hierarchy_; }
  std::filesystem::path base() const { return hierarchy_.root / name_; }
  // A group's id for berth: its path below the v2 root.
  std::string id(const std::string& name) const { return name_ + '/' + name; }
  std::filesystem::path path(const std::string& name) const { return base() / name; }
  void make(const std::string& name) const { std::filesystem::create_directories(path(name)); }
  void remove(const std::string& name) const {
    if (rmdir(path(name).c_str()) != 0)
      throw std::runtime_error("rmdir " + name + ": " + std::strerror(errno));
  }

 private:
  Hierarchy hierarchy_;
  std::string name_;
};

}  // namespace berth::cgroup::test
