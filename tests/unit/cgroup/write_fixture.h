// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/direct_owner.h"
#include "cgroup/discovery.h"
#include "tests/patience.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include <stdlib.h>

namespace berth::cgroup {

// A directory that is removed after the test. It is in memory where the host has that, since the undo journal
// syncs every record.
class ScratchDirectory {
 public:
  ScratchDirectory() {
    std::error_code none;
    const bool in_memory =
        std::getenv("TMPDIR") == nullptr && std::filesystem::is_directory("/dev/shm", none);
    const std::filesystem::path base = in_memory ? "/dev/shm" : std::filesystem::temp_directory_path();
    std::string name = (base / "berth-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory");
    path_ = name;
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  ~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline void put_file(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::trunc) << text;
}

inline std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

// Control files of a v2 hierarchy as ordinary files.
class ControlTree {
 public:
  const std::filesystem::path& root() const { return directory_.path(); }

  void make(const std::string& path, const std::string& cpus = "", const std::string& quota = "max 100000",
            const std::string& memory_high = "max") const {
    put_file(root() / path / "cpuset.cpus", cpus + "\n");
    put_file(root() / path / "cpu.max", quota + "\n");
    put_file(root() / path / "memory.high", memory_high + "\n");
    put_file(root() / path / "cpuset.mems", "\n");
    put_file(root() / path / "cpu.max.burst", "0\n");
    put_file(root() / path / "cpu.idle", "0\n");
    put_file(root() / path / "cpu.weight", "100\n");
  }
  void remove(const std::string& path) const { std::filesystem::remove_all(root() / path); }
  std::string get(const std::string& path, const std::string& file) const {
    return text_of(root() / path / file);
  }
  void put(const std::string& path, const std::string& file, const std::string& text) const {
    put_file(root() / path / file, text + "\n");
  }
  FoundWorkload found(const std::string& path, const std::string& unit = "") const {
    FoundWorkload workload;
    auto opened = Cgroup::open(root(), path);
    if (!opened) throw std::runtime_error(opened.error().message());
    workload.cgroup = *opened;
    workload.identity.id = path;
    workload.systemd_unit = unit;
    return workload;
  }

 private:
  ScratchDirectory directory_;
};

// On a busy machine a write may take longer than berthd would wait.
class PatientOwner : public DirectOwner {
 public:
  explicit PatientOwner(const std::filesystem::path& root)
      : DirectOwner(root, "/sys", write_memory_high, test::kPatience) {}
};

}  // namespace berth::cgroup
