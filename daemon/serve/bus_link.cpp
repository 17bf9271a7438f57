// SPDX-License-Identifier: Apache-2.0
#include "daemon/serve/bus_link.h"

#include "os/log.h"

#include <utility>

namespace berth::daemon {

void BusLink::connect(Control& control, const Observer& observer, double now) {
  if (listener_ && listener_->link() == Link::up) {
    if (problem_said_) os::log_info("the bus is back");
    problem_.reset();
    problem_said_ = false;
  }
  if (listener_ && listener_->link() == Link::lost) {
    lose(listener_->problem());
    listener_.reset();
    tried_at_ = now;
  }
  if (listener_ || !starter_ || (now >= tried_at_ && now - tried_at_ < kRetry_s)) return;
  tried_at_ = now;
  auto started = starter_(control);
  if (!started) return lose(started.error().message());
  listener_ = std::move(*started);
  control_ = &control;
  observer_ = &observer;
  news_.start(control, observer);
}

void BusLink::leave() {
  listener_.reset();
  starter_ = nullptr;
  problem_ = "not served any more";
}

std::optional<std::string> BusLink::problem() const {
  if (!listener_ || listener_->link() == Link::connecting) return problem_.value_or("not connected yet");
  if (listener_->link() == Link::lost) return listener_->problem();
  return std::nullopt;
}

std::optional<std::string> BusLink::polkit_problem() const {
  return problem() ? "not asked without a bus" : listener_->polkit_problem();
}

void BusLink::tell(const std::vector<LogEntry>& entries, const StragglersNews& news) {
  if (listener_) news_.tell(*listener_, *control_, *observer_, entries, news);
}

void BusLink::decided(const std::vector<LogEntry>& entries) {
  if (!listener_) return;
  for (const LogEntry& entry : entries) listener_->decided(entry);
}

// Said once until the bus is back: each connection words the same trouble differently.
void BusLink::lose(const std::string& problem) {
  if (!problem_said_) os::log_warning("no bus: {}", problem);
  problem_ = problem;
  problem_said_ = true;
}

}  // namespace berth::daemon
