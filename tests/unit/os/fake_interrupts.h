// SPDX-License-Identifier: Apache-2.0
// A tree of ordinary files in the place of /proc/irq.
#pragma once

#include "model/cpu_set.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace berth::test {

class FakeInterrupts {
 public:
  explicit FakeInterrupts(std::filesystem::path proc_root) : proc_root_(std::move(proc_root)) {
    std::filesystem::create_directories(proc_root_ / "irq");
  }

  const std::filesystem::path& proc_root() const { return proc_root_; }
  std::filesystem::path directory() const { return proc_root_ / "irq"; }
  std::filesystem::path file(int number) const {
    return proc_root_ / "irq" / std::to_string(number) / "smp_affinity_list";
  }

  // Makes it, or sets it as another program would.
  void put(int number, const std::string& cpus, bool handled = true) const {
    std::filesystem::create_directories(file(number).parent_path() / (handled ? "driver" : "."));
    std::ofstream(file(number), std::ios::trunc) << cpus << "\n";
  }
  // One that can be read, and not written. It has vCPU 0.
  void put_fixed(int number, bool handled = true) const {
    put(number, "", handled);
    std::filesystem::remove(file(number));
    std::filesystem::create_symlink("/sys/devices/system/cpu/online", file(number));
  }
  void remove(int number) const { std::filesystem::remove_all(file(number).parent_path()); }

  std::string cpus(int number) const {
    std::ifstream stream(file(number));
    std::string text;
    std::getline(stream, text);
    return text;
  }

 private:
  std::filesystem::path proc_root_;
};

}  // namespace berth::test
