// SPDX-License-Identifier: Apache-2.0
#include "daemon/loop.h"

#include "daemon/notify.h"
#include "daemon/serve/bus_service.h"
#include "os/clock.h"
#include "os/event_source.h"
#include "os/log.h"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <memory>
#include <system_error>
#include <utility>

#include <fmt/core.h>
#include <sys/epoll.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>

namespace berth::daemon {

namespace {

// A tick may be this late: so the kernel can wake this process together with others.
constexpr std::uint64_t kAccuracyUsec = 5'000;
// Rates over a shorter time are noise, and pressure that was just looked at is not looked at again.
constexpr std::uint64_t kShortestGapUsec = 100'000;

struct EventUnref {
  void operator()(sd_event* event) const { sd_event_unref(event); }
};
using Event = std::unique_ptr<sd_event, EventUnref>;

std::uint64_t usec(double seconds) { return static_cast<std::uint64_t>(seconds * 1e6); }

// The daemon's event sources must not outlive the loop.
struct LeaveLoop {
  Daemon& daemon;
  ~LeaveLoop() { daemon.leave_loop(); }
};

// Ticks stay in step with the first one, unless they cost too much for that. Ticks that were missed are not
// made up for. Ticks from pressure come in between.
struct Wheel {
  Daemon& daemon;
  os::EventSource timer;
  std::uint64_t first_usec = 0;
  std::uint64_t last_usec = 0;

  std::uint64_t next_usec() const {
    const std::uint64_t interval = usec(daemon.senses().interval_s());
    if (daemon.senses().is_slowed()) return last_usec + interval;
    const std::uint64_t earliest = last_usec + std::min(kShortestGapUsec, interval);
    return first_usec + ((earliest - first_usec) / interval + 1) * interval;
  }
};

int on_tick(sd_event_source* source, std::uint64_t, void* userdata) {
  auto& wheel = *static_cast<Wheel*>(userdata);
  wheel.daemon.tick();
  wheel.last_usec = os::monotonic_usec();
  return sd_event_source_set_time(source, wheel.next_usec());
}

void tick_soon(const Wheel& wheel) {
  // Where ticks cost too much, pressure also causes fewer of them.
  const std::uint64_t gap = wheel.daemon.senses().is_slowed()
                                ? std::max(kShortestGapUsec, usec(wheel.daemon.senses().interval_s()) / 10)
                                : kShortestGapUsec;
  const std::uint64_t soon = std::min(wheel.last_usec + gap, wheel.next_usec());
  sd_event_source_set_time(wheel.timer.get(), soon);
}

int on_arrivals(sd_event_source*, std::uint64_t, void* userdata) {
  static_cast<Daemon*>(userdata)->place();
  return 0;
}

// Without this timer, workloads that appear wait for the next tick.
int watch_arrivals(os::EventSource& source, sd_event* event, Daemon& daemon) {
  if (const int r = os::add_source(source, sd_event_add_time, event, CLOCK_MONOTONIC, std::uint64_t{0},
                                   kAccuracyUsec, on_arrivals, &daemon);
      r < 0)
    return r;
  daemon.watch_arrivals([timer = source.get()](double in_s) {
    sd_event_source_set_time_relative(timer, usec(in_s));
    sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
  });
  return sd_event_source_set_enabled(source.get(), SD_EVENT_OFF);
}

// Events of cgroups are taken in batches, so many in this time. A user that makes and removes cgroups without
// end then slows no tick.
constexpr std::uint64_t kBatchesUsec = 200'000;
constexpr unsigned kBatches = 4;

int on_changes(sd_event_source*, int, std::uint32_t, void* userdata) {
  static_cast<Daemon*>(userdata)->take_changes();
  return 0;
}

int add_changes(os::EventSource& source, sd_event* event, int fd, Daemon& daemon) {
  const int r = os::add_source(source, sd_event_add_io, event, fd, EPOLLIN, on_changes, &daemon);
  return r < 0 ? r : sd_event_source_set_ratelimit(source.get(), kBatchesUsec, kBatches);
}

// The work that is left once the bus is settled.
struct Readiness {
  Daemon& daemon;
  const Wheel& wheel;
  os::EventSource settled;
  os::EventSource kernel_changes;
};

// Loading the programs takes longer than all of the start before it, and the first tick does not need them.
void begin_sampling(Readiness& readiness) {
  auto& daemon = readiness.daemon;
  daemon.senses().begin_sampling();
  if (daemon.senses().kernel_events_fd() < 0) return;
  const int r = add_changes(readiness.kernel_changes, sd_event_source_get_event(readiness.settled.get()),
                            daemon.senses().kernel_events_fd(), daemon);
  if (r < 0) {
    // inotify tells of them too, later.
    os::log_warning("cannot watch the kernel's cgroup events: {}", std::generic_category().message(-r));
  }
}

int on_bus_settled(sd_event_source* source, void* userdata) {
  auto& readiness = *static_cast<Readiness*>(userdata);
  if (!readiness.daemon.bus_settled()) return 0;
  readiness.daemon.notify().ready(readiness.daemon.status_line());
  // Questions about the figures are answered after this.
  begin_sampling(readiness);
  // For the first trigger of a cgroup, the kernel starts a thread.
  readiness.daemon.senses().watch_pressure(sd_event_source_get_event(source),
                                           [&wheel = readiness.wheel] { tick_soon(wheel); });
  return sd_event_source_set_enabled(source, SD_EVENT_OFF);
}

int on_reload(sd_event_source*, const signalfd_siginfo*, void* userdata) {
  (void)static_cast<Daemon*>(userdata)->reload();  // it has logged the fault
  return 0;
}

// sd_event_set_watchdog() would send on this thread, and a systemd that hangs would keep it waiting.
int on_watchdog(sd_event_source* source, std::uint64_t, void* userdata) {
  Notify::alive();
  const int r =
      sd_event_source_set_time(source, os::monotonic_usec() + *static_cast<std::uint64_t*>(userdata));
  return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

// `period_usec` outlives the source.
int add_watchdog(os::EventSource& source, sd_event* event, std::uint64_t& period_usec) {
  std::uint64_t limit_usec = 0;
  if (const int r = sd_watchdog_enabled(0, &limit_usec); r <= 0) return r;
  period_usec = std::max<std::uint64_t>(limit_usec / 4, 1);
  return os::add_source(source, sd_event_add_time, event, CLOCK_MONOTONIC, os::monotonic_usec(),
                        kAccuracyUsec, on_watchdog, &period_usec);
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
  if (const int r = sd_event_new(&raw); r < 0) return failed(r, "cannot create it");
  const Event event(raw);
  const LeaveLoop leave_loop{daemon};

  os::EventSource on_term;
  os::EventSource on_int;
  os::EventSource on_hup;
  os::EventSource changes;
  // Without a handler of its own a signal ends the loop.
  if (const int r = os::add_source(on_term, sd_event_add_signal, raw, SIGTERM,
                                   sd_event_signal_handler_t{nullptr}, nullptr);
      r < 0)
    return failed(r, "SIGTERM");
  if (const int r = os::add_source(on_int, sd_event_add_signal, raw, SIGINT,
                                   sd_event_signal_handler_t{nullptr}, nullptr);
      r < 0)
    return failed(r, "SIGINT");
  if (const int r = os::add_source(on_hup, sd_event_add_signal, raw, SIGHUP, on_reload, &daemon); r < 0)
    return failed(r, "SIGHUP");
  if (const int r = add_changes(changes, raw, daemon.senses().changes_fd(), daemon); r < 0)
    return failed(r, "cannot watch cgroups");
  std::uint64_t watchdog_usec = 0;
  os::EventSource watchdog;
  if (const int r = add_watchdog(watchdog, raw, watchdog_usec); r < 0)
    return failed(r, "cannot serve the watchdog");

  daemon.serve_bus([raw](Control& control) -> model::Result<std::unique_ptr<Listener>> {
    auto service = BusService::start(raw, control);
    if (!service) return model::fail(service.error());
    return std::unique_ptr<Listener>(std::move(*service));
  });

  daemon.tick();
  Wheel wheel{daemon, nullptr, os::monotonic_usec(), os::monotonic_usec()};
  if (const int r = os::add_source(wheel.timer, sd_event_add_time, raw, CLOCK_MONOTONIC, wheel.next_usec(),
                                   kAccuracyUsec, on_tick, &wheel);
      r < 0) {
    return failed(r, "cannot add the timer");
  }
  if (const int r = sd_event_source_set_enabled(wheel.timer.get(), SD_EVENT_ON); r < 0) {
    return failed(r, "timer");
  }
  os::EventSource arrivals;
  if (const int r = watch_arrivals(arrivals, raw, daemon); r < 0)
    return failed(r, "cannot wait for workloads");
  daemon.serve_metrics(raw);
  daemon.senses().watch_progress(raw, [&daemon] { daemon.take_changes(); });
  daemon.watch_evictions(raw);

  // Readiness comes after every other event source: by then clients can reach the bus service, or it is known
  // to fail.
  Readiness readiness{daemon, wheel, nullptr, nullptr};
  if (const int r = os::add_source(readiness.settled, sd_event_add_post, raw, on_bus_settled, &readiness);
      r < 0)
    return failed(r, "ready");
  on_bus_settled(readiness.settled.get(), &readiness);
  const int r = sd_event_loop(raw);
  daemon.stop();
  if (r < 0) return failed(r, "ended");
  return {};
}

}  // namespace berth::daemon
