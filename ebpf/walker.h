// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ebpf/abi.h"
#include "ebpf/collector.h"
#include "model/error.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace berth::ebpf {

// Reads the kernel's own figures of all cgroups at once, in the kernel.
class Walker {
 public:
  // Chooses the best way that this kernel has: "iter-css" (6.16), "iter-css" with the older way to flush
  // (6.7), "iter-cgroup" (6.1). `capacity` is the number of cgroups there is space for at first. The error
  // has the message of each try.
  static model::Result<std::unique_ptr<Walker>> start(const Options& options, std::uint32_t capacity);
  virtual ~Walker() = default;

  // All cgroups, parents before their children. Usage is there only on request: it costs a flush of the
  // kernel's own counters. Valid until the next call.
  virtual model::Result<std::span<const berth_walked>> walk(bool with_usage) = 0;
  // Its name; detail() is the reason why it is not a better one.
  virtual const char* name() const = 0;
  const std::string& detail() const { return detail_; }

 protected:
  std::string detail_;
};

struct ScannedGroup {
  std::uint64_t id = 0;
  std::uint64_t parent = 0;  // 0 for the root
};

// Every cgroup below `root`, parents before their children, by reading directories only. Enters no mount and
// no symbolic link below `root` (os/beneath.h).
model::Result<std::vector<ScannedGroup>> scan_tree(const std::filesystem::path& root);

}  // namespace berth::ebpf
