// SPDX-License-Identifier: Apache-2.0
#include "daemon/bus_service.h"

#include "bus/compat.h"
#include "bus/names.h"
#include "daemon/bus_service_loop.h"
#include "daemon/bus_service_objects.h"
#include "daemon/bus_service_path.h"
#include "daemon/polkit.h"

#include <chrono>
#include <cstdlib>
#include <exception>
#include <map>
#include <new>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace berth::daemon {

using model::ErrorKind;
using model::fail;
using model::Result;

std::string workload_path(const std::string& id) {
  char* encoded = nullptr;
  if (sd_bus_path_encode(bus::kWorkloadPrefix, id.c_str(), &encoded) < 0) throw std::bad_alloc();
  const std::unique_ptr<char, decltype(&std::free)> owned(encoded, &std::free);
  return owned.get();
}

namespace {

// Longest that taking the name or asking the bus about a caller may hold up the loop.
constexpr std::chrono::seconds kBlockingCallTimeout{5};

struct Unref {
  void operator()(sd_event_source* source) const { sd_event_source_disable_unref(source); }
};

}  // namespace

// Members in the order in which they depend on each other; destroyed the other way round.
struct BusService::State {
  State(Control& owner, std::unique_ptr<sdbus::IConnection> bus_connection)
      : control(owner), connection(std::move(bus_connection)), polkit(*connection) {}

  Control& control;
  std::unique_ptr<sdbus::IConnection> connection;
  Polkit polkit;
  std::unique_ptr<LogControlObject> log_control;
  std::unique_ptr<ManagerObject> manager;
  std::map<std::string, std::unique_ptr<WorkloadObject>> workloads;
  std::set<std::string> changed;  // workloads to look at before the loop next waits
  bool manager_changed = false;
  std::string lost_because;
  std::unique_ptr<BusLoop> loop;
  std::unique_ptr<sd_event_source, Unref> flush;

  bool connected() const { return lost_because.empty(); }

  void lose(const std::string& why) {
    if (!connected()) return;
    lost_because = why.empty() ? "the connection ended" : why;
    spdlog::warn("lost the bus: {}", lost_because);
  }

  // Runs what sends signals; a bus that cannot take them is a lost one, and the daemon goes on without it.
  template <typename Send>
  void send(Send what) {
    if (!connected()) return;
    try {
      what();
    } catch (const std::exception& error) {
      lose(error.what());
    }
  }

  void add(WorkloadView view) {
    std::string id = view.id;
    workloads[std::move(id)] = std::make_unique<WorkloadObject>(*connection, control, std::move(view));
  }

  void flush_soon() { sd_event_source_set_enabled(flush.get(), SD_EVENT_ONESHOT); }

  void flush_now() {
    send([this] {
      for (const std::string& id : std::exchange(changed, {})) {
        if (const auto found = workloads.find(id); found != workloads.end())
          found->second->announce_changes();
      }
      if (std::exchange(manager_changed, false)) manager->announce_changes();
    });
  }
};

BusService::BusService(std::unique_ptr<State> state) : state_(std::move(state)) {}
BusService::~BusService() = default;

Result<std::unique_ptr<BusService>> BusService::start(sd_event* event, Control& control) {
  std::unique_ptr<State> state;
  try {
    state = std::make_unique<State>(control, sdbus::createSystemBusConnection());
  } catch (const std::exception& error) {
    return fail(ErrorKind::unavailable, fmt::format("cannot connect to the system bus: {}", error.what()));
  }
  try {
    State& s = *state;
    s.connection->setMethodCallTimeout(kBlockingCallTimeout);
    s.log_control = std::make_unique<LogControlObject>(*s.connection, control);
    s.manager = std::make_unique<ManagerObject>(*s.connection, control, s.polkit);
    for (WorkloadView& view : control.workloads()) s.add(std::move(view));

    sd_event_source* source = nullptr;
    const auto on_flush = [](sd_event_source*, void* userdata) {
      static_cast<State*>(userdata)->flush_now();
      return 0;
    };
    if (const int r = sd_event_add_defer(event, &source, on_flush, &s); r < 0) {
      return fail(model::Error::from_errno(-r, "cannot add the bus to the event loop"));
    }
    s.flush.reset(source);
    sd_event_source_set_description(source, "bus signals");
    sd_event_source_set_enabled(source, SD_EVENT_OFF);
    s.loop = std::make_unique<BusLoop>(event, *s.connection, [&s](const std::string& why) { s.lose(why); });
  } catch (const std::exception& error) {
    return fail(ErrorKind::unavailable, fmt::format("cannot serve the system bus: {}", error.what()));
  }
  // Last, so that whoever sees the name finds everything behind it.
  try {
    state->connection->requestName(bus::ServiceName{bus::kServiceName});
  } catch (const sdbus::Error& error) {
    const std::string name = error.getName();
    if (name == bus::kAccessDenied) {
      return fail(ErrorKind::permission,
                  fmt::format("the bus does not let this user own {}; is {}.conf installed? {}",
                              bus::kServiceName, bus::kServiceName, error.getMessage()));
    }
    return fail(ErrorKind::unavailable, fmt::format("cannot own {} on the bus, does another berthd run? {}",
                                                    bus::kServiceName, error.getMessage()));
  }
  return std::unique_ptr<BusService>(new BusService(std::move(state)));
}

bool BusService::connected() const { return state_->connected(); }
std::string BusService::lost_because() const { return state_->lost_because; }

void BusService::workload_appeared(const std::string& id) {
  state_->send([&] {
    auto view = state_->control.workload(id);
    if (!view || state_->workloads.contains(id)) return;
    state_->add(std::move(*view));
    state_->workloads.at(id)->announce_added();
    state_->manager_changed = true;
    state_->flush_soon();
  });
}

void BusService::workload_vanished(const std::string& id) {
  state_->send([&] {
    const auto found = state_->workloads.find(id);
    if (found == state_->workloads.end()) return;
    found->second->announce_removed();
    state_->workloads.erase(found);
    state_->changed.erase(id);
    state_->manager_changed = true;
    state_->flush_soon();
  });
}

void BusService::workload_changed(const std::string& id) {
  if (!connected()) return;
  state_->changed.insert(id);
  state_->flush_soon();
}

void BusService::pinned(const std::string& workload, const std::string& cpus, const std::string& decision) {
  state_->send([&] { state_->manager->emitPinned(workload, cpus, decision); });
  workload_changed(workload);
}

void BusService::unpinned(const std::string& workload, const std::string& decision) {
  state_->send([&] { state_->manager->emitUnpinned(workload, decision); });
  workload_changed(workload);
}

void BusService::mode_changed() { node_changed(); }

void BusService::node_changed() {
  if (!connected()) return;
  state_->manager_changed = true;
  state_->flush_soon();
}

}  // namespace berth::daemon
