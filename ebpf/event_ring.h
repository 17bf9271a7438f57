// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ebpf/collector.h"
#include "model/error.h"

#include <filesystem>
#include <memory>

namespace berth::ebpf {

// Reports cgroups of the v2 hierarchy that the kernel makes and removes.
class EventRing {
 public:
  static model::Result<std::unique_ptr<EventRing>> start(const std::filesystem::path& log_directory);
  ~EventRing();

  // Readable when there are events.
  int fd() const;
  // Appends the events since the last call; true where some were lost.
  bool drain(std::vector<CgroupEvent>& to);

 private:
  struct State;
  explicit EventRing(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace berth::ebpf
