// SPDX-License-Identifier: Apache-2.0
#include "daemon/serve/bus_service.h"

#include "daemon/serve/bus_service_glue.h"
#include "daemon/serve/bus_service_log_control.h"
#include "daemon/serve/bus_service_manager.h"
#include "daemon/serve/bus_service_workloads.h"
#include "daemon/serve/polkit.h"
#include "os/event_source.h"

#include <chrono>
#include <ctime>
#include <exception>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/core.h>

namespace berth::daemon {

using model::ErrorKind;
using model::fail;
using model::Result;

namespace {

// Sends the last signals, if the bus takes them in time. Calls that arrive meanwhile find no object any more.
void send_queued(sd_bus* bus) {
  sd_bus_detach_event(bus);
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::microseconds(BusService::kAnswerTimeoutUsec);
  std::uint64_t queued = 0;
  while (sd_bus_is_ready(bus) > 0 && sd_bus_get_n_queued_write(bus, &queued) >= 0 && queued > 0) {
    const auto left =
        std::chrono::duration_cast<std::chrono::microseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0 || sd_bus_wait(bus, static_cast<std::uint64_t>(left.count())) < 0) return;
    if (sd_bus_process(bus, nullptr) < 0) return;
  }
}

struct CloseBus {
  void operator()(sd_bus* bus) const {
    send_queued(bus);
    sd_bus_close_unref(bus);
  }
};
using Bus = std::unique_ptr<sd_bus, CloseBus>;

// RequestName's replies, of the D-Bus specification.
constexpr std::uint32_t kPrimaryOwner = 1;
constexpr std::uint32_t kAlreadyOwner = 4;

std::string name_refused(const sd_bus_error& error) {
  const std::string_view name = error.name;
  const char* message = error.message == nullptr ? "" : error.message;
  if (name == bus::kAccessDenied) {
    return fmt::format("the bus does not let this user own {}; is {}.conf installed? {}", bus::kServiceName,
                       bus::kServiceName, message);
  }
  return fmt::format("cannot own {} on the bus: {}", bus::kServiceName, message);
}

}  // namespace

// Members in the order of their dependencies; they are destroyed the other way round.
struct BusService::State {
  State(sd_event* event, Control& owner, Bus connection)
      : control(owner),
        bus(std::move(connection)),
        polkit(bus.get()),
        log_control(bus.get(), control),
        manager(bus.get(), control, polkit),
        workloads(bus.get(), control) {
    for (const WorkloadView& view : control.workloads()) workloads.add(view.id);
    // Only the daemon's own end closes the connection. At the loop's end, sd-bus would wait for a bus that
    // may never read.
    check(sd_bus_set_close_on_exit(bus.get(), 0), "cannot set up the bus");
    check(sd_bus_set_method_call_timeout(bus.get(), kAnswerTimeoutUsec), "cannot set up the bus");

    check(os::add_source(flush, sd_event_add_defer, event, on_flush, this),
          "cannot add the bus to the event loop");
    sd_event_source_set_description(flush.get(), "bus signals");
    sd_event_source_set_enabled(flush.get(), SD_EVENT_OFF);
    check(os::add_source(silence, sd_event_add_time_relative, event, CLOCK_MONOTONIC, kAnswerTimeoutUsec,
                         std::uint64_t{0}, on_silence, this),
          "cannot add the bus to the event loop");
    sd_event_source_set_description(silence.get(), "bus does not answer");

    sd_bus_slot* slot = nullptr;
    check(sd_bus_match_signal_async(bus.get(), &slot, "org.freedesktop.DBus.Local", nullptr,
                                    "org.freedesktop.DBus.Local", "Disconnected", on_disconnected, nullptr,
                                    this),
          "cannot watch the bus");
    disconnected.reset(slot);
    // Last, so that a client that sees the name finds every object, and polkit has been looked for.
    check(sd_bus_request_name_async(bus.get(), &slot, bus::kServiceName, 0, on_name, this),
          "cannot ask for the name");
    name.reset(slot);
    check(sd_bus_attach_event(bus.get(), event, SD_EVENT_PRIORITY_NORMAL),
          "cannot add the bus to the event loop");
  }

  Control& control;
  Bus bus;
  Polkit polkit;
  LogControlObject log_control;
  ManagerObject manager;
  WorkloadObjects workloads;
  std::set<std::string> changed;  // workloads to look at before the loop next waits
  bool manager_changed = false;
  Link link = Link::connecting;
  std::string problem;
  os::EventSource flush;
  os::EventSource silence;
  Slot disconnected;
  Slot name;

  void lose(const std::string& why) {
    if (link == Link::lost) return;
    link = Link::lost;
    problem = why;
    silence.reset();
    sd_bus_close(bus.get());
  }

  // Runs a function that sends signals; before clients can know the name, it sends none. A bus that cannot
  // take them is lost, and the daemon goes on without it.
  template <typename Send>
  void send(Send what) {
    if (link != Link::up) return;
    try {
      what();
    } catch (const std::exception& error) {
      lose(error.what());
    }
  }

  void flush_soon() { sd_event_source_set_enabled(flush.get(), SD_EVENT_ONESHOT); }

  void flush_now() {
    send([this] {
      for (const std::string& id : std::exchange(changed, {})) workloads.announce_changes(id);
      if (std::exchange(manager_changed, false)) manager.announce_changes();
    });
  }

  static int on_flush(sd_event_source*, void* userdata) {
    static_cast<State*>(userdata)->flush_now();
    return 0;
  }

  static int on_silence(sd_event_source*, std::uint64_t, void* userdata) {
    static_cast<State*>(userdata)->lose(
        fmt::format("the bus did not answer for {} s", kAnswerTimeoutUsec / 1'000'000));
    return 0;
  }

  static int on_disconnected(sd_bus_message*, void* userdata, sd_bus_error*) {
    static_cast<State*>(userdata)->lose("the connection was lost");
    return 0;
  }

  static int on_name(sd_bus_message* reply, void* userdata, sd_bus_error* error) {
    return answering(error, [&] {
      auto& state = *static_cast<State*>(userdata);
      std::uint32_t given = 0;
      if (const auto* refused = sd_bus_message_get_error(reply)) {
        state.lose(name_refused(*refused));
      } else if (sd_bus_message_read(reply, "u", &given) < 0 ||
                 (given != kPrimaryOwner && given != kAlreadyOwner)) {
        state.lose(fmt::format("cannot own {} on the bus: it has an owner; does another berthd run?",
                               bus::kServiceName));
      } else if (state.link == Link::connecting) {
        state.link = Link::up;
        state.silence.reset();
        state.flush_soon();
      }
      return 0;
    });
  }
};

BusService::BusService(std::unique_ptr<State> state) : state_(std::move(state)) {}
BusService::~BusService() = default;

Result<std::unique_ptr<BusService>> BusService::start(sd_event* event, Control& control) {
  sd_bus* raw = nullptr;
  if (const int r = sd_bus_open_system_with_description(&raw, "berthd"); r < 0) {
    return fail(ErrorKind::unavailable,
                fmt::format("cannot connect to the system bus: {}", std::generic_category().message(-r)));
  }
  Bus bus(raw);
  try {
    return std::unique_ptr<BusService>(
        new BusService(std::make_unique<State>(event, control, std::move(bus))));
  } catch (const std::exception& error) {
    return fail(ErrorKind::unavailable, fmt::format("cannot serve the system bus: {}", error.what()));
  }
}

Link BusService::link() const { return state_->link; }
std::string BusService::problem() const { return state_->problem; }
std::optional<std::string> BusService::polkit_problem() const { return state_->polkit.problem(); }

void BusService::workload_appeared(const std::string& id) {
  if (!state_->workloads.add(id)) return;
  state_->send([&] { state_->workloads.announce_added(id); });
  node_changed();
}

void BusService::workload_vanished(const std::string& id) {
  state_->send([&] {
    if (state_->workloads.contains(id)) state_->workloads.announce_removed(id);
  });
  if (state_->workloads.remove(id)) node_changed();
  state_->changed.erase(id);
}

void BusService::workload_changed(const std::string& id) {
  state_->changed.insert(id);
  state_->flush_soon();
}

void BusService::changed(const LogEntry& entry) {
  state_->send([&] { state_->manager.changed(entry); });
  if (entry.kind != "advertise" && entry.kind != "evict") workload_changed(entry.workload);
}

void BusService::straggler_found(const StragglerNews& news) {
  state_->send([&] { state_->manager.straggler_found(news); });
}

void BusService::relocation_needed(const StragglerNews& news) {
  state_->send([&] { state_->manager.relocation_needed(news); });
}

void BusService::decided(const LogEntry& entry) {
  state_->send([&] { state_->manager.decided(entry); });
}

void BusService::mode_changed() { node_changed(); }

void BusService::node_changed() {
  state_->manager_changed = true;
  state_->flush_soon();
}

}  // namespace berth::daemon
