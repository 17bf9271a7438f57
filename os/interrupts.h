// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/cpu_set.h"
#include "model/error.h"

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace berth::os {

// The interrupts of a host, in /proc/irq, and the vCPUs to which the kernel may deliver each (Linux,
// core-api/irq/irq-affinity).
class Interrupts {
 public:
  explicit Interrupts(std::filesystem::path directory) : directory_(std::move(directory)) {}

  // All of them, ascending. Error gone where the kernel shows none.
  model::Result<std::vector<int>> numbers() const;
  // How many there are, which costs far less than their numbers. nullopt where the file system does not count
  // directories.
  std::optional<std::size_t> count() const;
  // Error gone where it has gone.
  model::Result<model::CpuSet> cpus(int number) const;
  // Those of a new interrupt. nullopt where that cannot be read.
  std::optional<model::CpuSet> default_cpus() const;
  // Errors of write(2): EIO, or EPERM since Linux 6.10, where the kernel places it by itself (a managed
  // interrupt), or it belongs to one vCPU. EINVAL where none of the vCPUs is online. EROFS in a sandbox.
  model::Result<void> set_cpus(int number, const model::CpuSet& cpus) const;
  // Whether a driver handles it: the others never come.
  bool has_handler(int number) const;

 private:
  std::filesystem::path file_of(int number, const char* name) const;

  std::filesystem::path directory_;
};

// PROC_ROOT/irq, or RUNTIME_DIR/irq, where berthd.service has it to write to: systemd's
// ProtectKernelTunables= makes the first one read-only, and takes no exception.
std::filesystem::path interrupts_directory(const std::filesystem::path& proc_root,
                                           const std::filesystem::path& runtime_dir);

// A list as the kernel writes one ("24-27,30"); `numbers` ascend. After 20 runs it ends with ", ...".
std::string list_text(const std::vector<int>& numbers);

}  // namespace berth::os
