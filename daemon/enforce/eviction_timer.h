// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "os/event_source.h"

#include <cstdint>
#include <functional>
#include <optional>

#include <systemd/sd-event.h>

namespace berth::daemon {

// Wakes the loop for the next step of an eviction, which may be due before the next tick.
class EvictionTimer {
 public:
  EvictionTimer() = default;
  EvictionTimer(const EvictionTimer&) = delete;
  EvictionTimer& operator=(const EvictionTimer&) = delete;

  // From now on `due` is called on the loop's thread, once for each time it was armed. Without a loop, or
  // where that takes no timer, only ticks continue evictions.
  void attach(sd_event* event, std::function<void()> due);
  // Call it before the loop ends.
  void detach();
  // Arms it for so many seconds from now; nullopt disarms it.
  void arm(std::optional<double> seconds);

 private:
  static int on_time(sd_event_source* source, std::uint64_t usec, void* userdata);

  os::EventSource source_;
  std::function<void()> due_;
};

}  // namespace berth::daemon
