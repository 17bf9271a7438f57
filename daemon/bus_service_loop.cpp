// SPDX-License-Identifier: Apache-2.0
#include "daemon/bus_service_loop.h"

#include <cerrno>
#include <ctime>
#include <exception>
#include <utility>

#include <sys/epoll.h>

namespace berth::daemon {

namespace {

// Messages handled before other event sources get their turn.
constexpr int kBatch = 16;
// Timeouts of calls need no precision; wake-ups may be shared.
constexpr std::uint64_t kAccuracyUsec = 50'000;

void check(int result, const char* what) {
  if (result < 0) throw sdbus::createError(-result, what);
}

}  // namespace

BusLoop::BusLoop(sd_event* event, sdbus::IConnection& connection,
                 std::function<void(const std::string&)> lost)
    : connection_(connection), lost_(std::move(lost)) {
  sd_event_source* source = nullptr;
  check(sd_event_add_io(event, &source, bus::poll_data(connection).fd, EPOLLIN, on_io, this),
        "cannot watch the bus");
  io_.reset(source);
  check(sd_event_add_time(event, &source, CLOCK_MONOTONIC, 0, kAccuracyUsec, on_time, this),
        "cannot add a timer");
  timer_.reset(source);
  check(sd_event_source_set_prepare(io_.get(), on_prepare), "cannot watch the bus");
  sd_event_source_set_description(io_.get(), "bus");
  sd_event_source_set_description(timer_.get(), "bus timeouts");
}

int BusLoop::on_prepare(sd_event_source*, void* userdata) {
  static_cast<BusLoop*>(userdata)->prepare();
  return 0;
}

int BusLoop::on_io(sd_event_source*, int, std::uint32_t, void* userdata) {
  static_cast<BusLoop*>(userdata)->process();
  return 0;
}

int BusLoop::on_time(sd_event_source*, std::uint64_t, void* userdata) {
  static_cast<BusLoop*>(userdata)->process();
  return 0;
}

void BusLoop::prepare() {
  if (ended_) return;
  try {
    const bus::PollData data = bus::poll_data(connection_);
    // poll(2) and epoll(7) agree on the bits of IN and OUT.
    check(sd_event_source_set_io_events(io_.get(), static_cast<std::uint32_t>(data.events)),
          "cannot watch the bus");
    const bool never = data.timeout_usec == UINT64_MAX;
    if (!never) check(sd_event_source_set_time(timer_.get(), data.timeout_usec), "cannot set a timer");
    check(sd_event_source_set_enabled(timer_.get(), never ? SD_EVENT_OFF : SD_EVENT_ONESHOT),
          "cannot set a timer");
  } catch (const std::exception& error) {
    lose(error.what());
  }
}

void BusLoop::process() {
  if (ended_) return;
  try {
    for (int handled = 0; handled < kBatch; ++handled) {
      if (!bus::process_one(connection_)) return;
    }
  } catch (const std::exception& error) {
    lose(error.what());
  }
}

void BusLoop::lose(const std::string& why) {
  ended_ = true;
  sd_event_source_set_enabled(io_.get(), SD_EVENT_OFF);
  sd_event_source_set_enabled(timer_.get(), SD_EVENT_OFF);
  lost_(why);
}

}  // namespace berth::daemon
