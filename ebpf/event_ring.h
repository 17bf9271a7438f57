// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ebpf/collector.h"
#include "model/error.h"

#include <filesystem>
#include <memory>

namespace berth::ebpf {

// cgroups of the v2 hierarchy that come and go, as the kernel makes and removes them.
class EventRing {
 public:
  static model::Result<std::unique_ptr<EventRing>> start(const std::filesystem::path& log_directory);
  ~EventRing();

  // Readable when there are some.
  int fd() const;
  // Appends what happened since the last call; true where some was lost.
  bool drain(std::vector<CgroupEvent>& to);

 private:
  struct State;
  explicit EventRing(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace berth::ebpf
