// SPDX-License-Identifier: Apache-2.0
// GPUs for a host of files: their files on the PCI bus, and the answers of the stand-in for NVML
// (fake_nvml.cpp).
#pragma once

#include "fake_host.h"

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

namespace berth::test {

struct FakePci {
  std::string pci_class = "0x030200";
  std::string vendor = "0x10de";
  std::string device = "0x2330";
  std::string driver = "nvidia";  // "": none
  std::string local_cpulist = "0-3";
  bool render_node = false;
};

inline FakePci amd_gpu() {
  return {.pci_class = "0x038000",
          .vendor = "0x1002",
          .device = "0x740f",
          .driver = "amdgpu",
          .render_node = true};
}

void add_pci(const FakeHost& host, const std::string& id, const FakePci& pci);
// The path of a device's file, for FakeHost::write and remove.
std::string pci_file(const std::string& id, const std::string& file = "");

// The answers of the stand-in; without this object it has none. One at a time.
class FakeNvml {
 public:
  FakeNvml();
  ~FakeNvml();
  FakeNvml(const FakeNvml&) = delete;
  FakeNvml& operator=(const FakeNvml&) = delete;

  // A healthy one: name "NVIDIA H100", 80 of 100 bytes used, 40 % busy, no process.
  void add(const std::string& id) const;
  // A file of the stand-in, as "0000:3b:00.0/compute".
  void write(const std::string& path, const std::string& text) const;
  void remove(const std::string& path) const;
  bool has(const std::string& path) const;
  // "" where there is no such file.
  std::string read(const std::string& path) const;

 private:
  std::filesystem::path root_;
};

// Polls until `done`; false after kPatience.
bool comes_true(const std::function<bool()>& done);

}  // namespace berth::test
