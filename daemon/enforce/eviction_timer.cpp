// SPDX-License-Identifier: Apache-2.0
#include "daemon/enforce/eviction_timer.h"

#include "os/log.h"

#include <ctime>
#include <system_error>
#include <utility>

namespace berth::daemon {

namespace {

constexpr std::uint64_t kAccuracyUsec = 20'000;

}  // namespace

void EvictionTimer::attach(sd_event* event, std::function<void()> due) {
  detach();
  due_ = std::move(due);
  if (const int r = os::add_source(source_, sd_event_add_time, event, CLOCK_MONOTONIC, std::uint64_t{0},
                                   kAccuracyUsec, on_time, this);
      r < 0) {
    os::log_warning("cannot set a timer, so evictions continue only at ticks: {}",
                    std::generic_category().message(-r));
    return;
  }
  sd_event_source_set_enabled(source_.get(), SD_EVENT_OFF);
}

void EvictionTimer::detach() { source_.reset(); }

void EvictionTimer::arm(std::optional<double> seconds) {
  if (!source_) return;
  if (!seconds) {
    sd_event_source_set_enabled(source_.get(), SD_EVENT_OFF);
    return;
  }
  sd_event_source_set_time_relative(source_.get(), static_cast<std::uint64_t>(*seconds * 1e6));
  sd_event_source_set_enabled(source_.get(), SD_EVENT_ONESHOT);
}

int EvictionTimer::on_time(sd_event_source*, std::uint64_t, void* userdata) {
  static_cast<EvictionTimer*>(userdata)->due_();
  return 0;
}

}  // namespace berth::daemon
