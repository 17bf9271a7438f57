// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include <systemd/sd-event.h>

namespace berth::daemon {

// Wakes the loop for the next step of an eviction, which may be due before the next tick.
class EvictionTimer {
 public:
  EvictionTimer() = default;
  ~EvictionTimer();
  EvictionTimer(const EvictionTimer&) = delete;
  EvictionTimer& operator=(const EvictionTimer&) = delete;

  // From here on `due` is called on the loop's thread, once for each time it was armed. Without a loop, or
  // where that takes no timer, ticks alone move evictions on.
  void attach(sd_event* event, std::function<void()> due);
  // Before the loop ends.
  void detach();
  // In so many seconds; nullopt: not at all.
  void arm(std::optional<double> seconds);

 private:
  static int on_time(sd_event_source* source, std::uint64_t usec, void* userdata);

  sd_event_source* source_ = nullptr;
  std::function<void()> due_;
};

}  // namespace berth::daemon
