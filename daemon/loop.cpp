// SPDX-License-Identifier: Apache-2.0
#include "daemon/loop.h"

#include "daemon/bus_service.h"
#include "daemon/log.h"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <memory>
#include <system_error>
#include <utility>

#include <fmt/core.h>
#include <sys/epoll.h>
#include <systemd/sd-event.h>

namespace berth::daemon {

namespace {

// Nobody sees a tick that is so much late, and the kernel may wake us together with others.
constexpr std::uint64_t kAccuracyUsec = 5'000;
// Rates over less than this say little, and pressure that has just been looked at is not looked at again.
constexpr std::uint64_t kShortestGapUsec = 100'000;

struct EventUnref {
  void operator()(sd_event* event) const { sd_event_unref(event); }
};
struct SourceUnref {
  void operator()(sd_event_source* source) const { sd_event_source_disable_unref(source); }
};
using Event = std::unique_ptr<sd_event, EventUnref>;
using Source = std::unique_ptr<sd_event_source, SourceUnref>;

std::uint64_t usec(double seconds) { return static_cast<std::uint64_t>(seconds * 1e6); }

std::uint64_t monotonic_usec() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(now.tv_nsec) / 1000;
}

// What the daemon has on the loop must not outlive it.
struct LeaveLoop {
  Daemon& daemon;
  ~LeaveLoop() { daemon.leave_loop(); }
};

// Ticks in step with the first one, unless they cost too much for that; those that were slept through are not
// made up for, and those that pressure brings come in between.
struct Wheel {
  Daemon& daemon;
  Source timer;
  std::uint64_t first_usec = 0;
  std::uint64_t last_usec = 0;

  std::uint64_t next_usec() const {
    const std::uint64_t interval = usec(daemon.interval_s());
    if (daemon.slowed()) return last_usec + interval;
    const std::uint64_t earliest = last_usec + std::min(kShortestGapUsec, interval);
    return first_usec + ((earliest - first_usec) / interval + 1) * interval;
  }
};

int on_tick(sd_event_source* source, std::uint64_t, void* userdata) {
  auto& wheel = *static_cast<Wheel*>(userdata);
  wheel.daemon.tick();
  wheel.last_usec = monotonic_usec();
  return sd_event_source_set_time(source, wheel.next_usec());
}

void tick_soon(const Wheel& wheel) {
  // Where ticks cost too much, pressure brings fewer of them too.
  const std::uint64_t gap = wheel.daemon.slowed()
                                ? std::max(kShortestGapUsec, usec(wheel.daemon.interval_s()) / 10)
                                : kShortestGapUsec;
  const std::uint64_t soon = std::min(wheel.last_usec + gap, wheel.next_usec());
  sd_event_source_set_time(wheel.timer.get(), soon);
}

int on_changes(sd_event_source*, int, std::uint32_t, void* userdata) {
  static_cast<Daemon*>(userdata)->take_changes();
  return 0;
}

// What is left to do once the bus is settled.
struct Readiness {
  Daemon& daemon;
  Source settled;
  Source kernel_changes;
};

// Loading the programs takes longer than all of the start before it, and the first tick does not need them.
void begin_sampling(Readiness& readiness) {
  auto& daemon = readiness.daemon;
  daemon.begin_sampling();
  if (daemon.kernel_events_fd() < 0) return;
  sd_event_source* source = nullptr;
  const int r = sd_event_add_io(sd_event_source_get_event(readiness.settled.get()), &source,
                                daemon.kernel_events_fd(), EPOLLIN, on_changes, &daemon);
  if (r < 0) {
    // inotify tells of them too, later.
    log_warning("cannot watch what the kernel says of cgroups: {}", std::generic_category().message(-r));
    return;
  }
  readiness.kernel_changes = Source(source);
}

int on_bus_settled(sd_event_source* source, void* userdata) {
  auto& readiness = *static_cast<Readiness*>(userdata);
  if (!readiness.daemon.bus_settled()) return 0;
  readiness.daemon.notify().ready(readiness.daemon.status_line());
  // Whoever asks what is sampled is answered after this.
  begin_sampling(readiness);
  return sd_event_source_set_enabled(source, SD_EVENT_OFF);
}

int on_reload(sd_event_source*, const signalfd_siginfo*, void* userdata) {
  (void)static_cast<Daemon*>(userdata)->reload();  // which has said what is wrong
  return 0;
}

}  // namespace

void block_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  // A bus or a log that went away is an error of a call, not the end of the program.
  std::signal(SIGPIPE, SIG_IGN);
}

model::Result<void> run_loop(Daemon& daemon) {
  const auto failed = [](int result, const char* what) {
    return model::fail(model::Error::from_errno(-result, fmt::format("event loop: {}", what)));
  };
  sd_event* raw = nullptr;
  if (const int r = sd_event_new(&raw); r < 0) return failed(r, "cannot be made");
  const Event event(raw);
  const LeaveLoop leave_loop{daemon};

  const auto source_of = [](sd_event_source* source) { return Source(source); };
  sd_event_source* source = nullptr;
  // Without a handler of its own a signal ends the loop.
  if (const int r = sd_event_add_signal(raw, &source, SIGTERM, nullptr, nullptr); r < 0)
    return failed(r, "SIGTERM");
  const Source on_term = source_of(source);
  if (const int r = sd_event_add_signal(raw, &source, SIGINT, nullptr, nullptr); r < 0)
    return failed(r, "SIGINT");
  const Source on_int = source_of(source);
  if (const int r = sd_event_add_signal(raw, &source, SIGHUP, on_reload, &daemon); r < 0)
    return failed(r, "SIGHUP");
  const Source on_hup = source_of(source);
  if (const int r = sd_event_add_io(raw, &source, daemon.changes_fd(), EPOLLIN, on_changes, &daemon); r < 0) {
    return failed(r, "cannot watch cgroups");
  }
  const Source changes = source_of(source);
  if (const int r = sd_event_set_watchdog(raw, 1); r < 0) return failed(r, "cannot serve the watchdog");

  daemon.serve_bus([raw](Control& control) -> model::Result<std::unique_ptr<Listener>> {
    auto service = BusService::start(raw, control);
    if (!service) return model::fail(service.error());
    return std::unique_ptr<Listener>(std::move(*service));
  });

  daemon.tick();
  Wheel wheel{daemon, nullptr, monotonic_usec(), monotonic_usec()};
  if (const int r =
          sd_event_add_time(raw, &source, CLOCK_MONOTONIC, wheel.next_usec(), kAccuracyUsec, on_tick, &wheel);
      r < 0) {
    return failed(r, "cannot add the timer");
  }
  wheel.timer = source_of(source);
  if (const int r = sd_event_source_set_enabled(wheel.timer.get(), SD_EVENT_ON); r < 0) {
    return failed(r, "timer");
  }
  daemon.serve_metrics(raw);
  daemon.watch_pressure(raw, [&wheel] { tick_soon(wheel); });
  daemon.watch_progress(raw);
  daemon.watch_evictions(raw);

  // Ready is who can be reached, or knows that nobody can reach him: after every other event source.
  Readiness readiness{daemon, nullptr, nullptr};
  if (const int r = sd_event_add_post(raw, &source, on_bus_settled, &readiness); r < 0)
    return failed(r, "ready");
  readiness.settled = source_of(source);
  on_bus_settled(readiness.settled.get(), &readiness);
  const int r = sd_event_loop(raw);
  daemon.stop();
  if (r < 0) return failed(r, "ended");
  return {};
}

}  // namespace berth::daemon
