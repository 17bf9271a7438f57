// SPDX-License-Identifier: Apache-2.0
#include "daemon/bus_service_objects.h"

#include "bus/names.h"
#include "daemon/bus_service_path.h"
#include "daemon/log_setup.h"

#include <array>
#include <cmath>
#include <exception>
#include <limits>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

namespace berth::daemon {

namespace {

sdbus::Error to_bus_error(const model::Error& error) {
  switch (error.kind()) {
    case model::ErrorKind::invalid_input:
      return bus::make_error(bus::kInvalidInput, error.message());
    case model::ErrorKind::gone:
      return bus::make_error(bus::kNotFound, error.message());
    case model::ErrorKind::refused:
      return bus::make_error(bus::kAccessDenied, error.message());
    case model::ErrorKind::io:
    case model::ErrorKind::transient:
    case model::ErrorKind::permission:
    case model::ErrorKind::unavailable:
      break;
  }
  return bus::make_error(bus::kFailed, error.message());
}

// sdbus-c++ turns its own errors into replies; any other exception would unwind through C.
template <typename Read>
auto guarded(Read read) -> decltype(read()) {
  try {
    return read();
  } catch (const sdbus::Error&) {
    throw;
  } catch (const std::exception& error) {
    throw bus::make_error(bus::kFailed, error.what());
  }
}

// The syslog names of org.freedesktop.LogControl1 against the daemon's own; several fold into one, the first
// of a pair is what is read back.
constexpr std::array<std::pair<const char*, const char*>, 9> kLevels{{{"debug", "debug"},
                                                                      {"debug", "trace"},
                                                                      {"info", "info"},
                                                                      {"notice", "info"},
                                                                      {"warning", "warning"},
                                                                      {"err", "error"},
                                                                      {"crit", "critical"},
                                                                      {"alert", "critical"},
                                                                      {"emerg", "critical"}}};

}  // namespace

// --- Manager ---

ManagerObject::ManagerObject(sdbus::IConnection& connection, Control& control, Polkit& polkit)
    : AdaptorInterfaces(connection, sdbus::ObjectPath{bus::kManagerPath}),
      control_(control),
      polkit_(polkit) {
  announced_ = current();
  registerAdaptor();
}

ManagerObject::~ManagerObject() { unregisterAdaptor(); }

ManagerObject::Announced ManagerObject::current() const {
  return {control_.mode(), control_.counts(), control_.best_effort_cpus()};
}

void ManagerObject::announce_changes() {
  Announced now = current();
  std::vector<std::string> changed;
  if (now.mode != announced_.mode) changed.emplace_back("Mode");
  if (now.counts.latency_sensitive != announced_.counts.latency_sensitive) {
    changed.emplace_back("LatencySensitiveWorkloads");
  }
  if (now.counts.best_effort != announced_.counts.best_effort) changed.emplace_back("BestEffortWorkloads");
  if (now.best_effort_cpus != announced_.best_effort_cpus) changed.emplace_back("BestEffortCPUs");
  announced_ = std::move(now);
  if (changed.empty()) return;
  getObject().emitPropertiesChangedSignal(Manager_adaptor::INTERFACE_NAME, bus::property_names(changed));
}

template <typename Reply, typename Act>
void ManagerObject::authorised(Reply&& reply, Act act) {
  // std::function wants copies, and a reply exists once.
  auto shared = std::make_shared<std::decay_t<Reply>>(std::forward<Reply>(reply));
  polkit_.check(bus::current_caller(getObject()), bus::kManageAction,
                [shared, act = std::move(act)](const Verdict& verdict) {
                  if (!verdict.allowed) {
                    shared->returnError(bus::make_error(verdict.error_name, verdict.message));
                    return;
                  }
                  try {
                    auto result = act();
                    if (!result) {
                      shared->returnError(to_bus_error(result.error()));
                    } else if constexpr (std::is_void_v<typename decltype(result)::value_type>) {
                      shared->returnResults();
                    } else {
                      shared->returnResults(*result);
                    }
                  } catch (const sdbus::Error&) {
                    throw;  // the reply could not be sent
                  } catch (const std::exception& error) {
                    shared->returnError(bus::make_error(bus::kFailed, error.what()));
                  }
                });
}

std::string ManagerObject::GetStatus() {
  return guarded([this] { return control_.status_json(); });
}
std::string ManagerObject::GetWorkloads() {
  return guarded([this] { return control_.workloads_json(); });
}
std::string ManagerObject::GetTopology() {
  return guarded([this] { return control_.topology_json(); });
}
std::string ManagerObject::GetSnapshot() {
  return guarded([this] { return control_.snapshot_json(); });
}
std::string ManagerObject::GetPlan() {
  return guarded([this] { return control_.plan_json(); });
}
std::string ManagerObject::GetLog(const std::uint32_t& limit) {
  return guarded([this, limit] { return control_.log_json(limit); });
}

void ManagerObject::SetMode(sdbus::Result<>&& reply, std::string mode) {
  authorised(std::move(reply), [this, mode = std::move(mode)] { return control_.set_mode(mode); });
}
void ManagerObject::SetWorkload(sdbus::Result<>&& reply, std::string workload,
                                std::map<std::string, std::string> settings) {
  authorised(std::move(reply), [this, workload = std::move(workload), settings = std::move(settings)] {
    return control_.set_workload(workload, settings);
  });
}
void ManagerObject::Restore(sdbus::Result<std::string>&& reply) {
  authorised(std::move(reply), [this] { return control_.restore(); });
}
void ManagerObject::Reload(sdbus::Result<>&& reply) {
  authorised(std::move(reply), [this] { return control_.reload(); });
}

std::string ManagerObject::Version() { return control_.version(); }
std::string ManagerObject::Mode() { return control_.mode(); }
double ManagerObject::ScoreNode() {
  return control_.score_node().value_or(std::numeric_limits<double>::quiet_NaN());
}
std::uint32_t ManagerObject::LatencySensitiveWorkloads() { return control_.counts().latency_sensitive; }
std::uint32_t ManagerObject::BestEffortWorkloads() { return control_.counts().best_effort; }
std::string ManagerObject::BestEffortCPUs() { return control_.best_effort_cpus(); }

// --- Workload ---

WorkloadObject::WorkloadObject(sdbus::IConnection& connection, Control& control, WorkloadView view)
    : AdaptorInterfaces(connection, sdbus::ObjectPath{workload_path(view.id)}),
      control_(control),
      announced_(std::move(view)) {
  registerAdaptor();
}

WorkloadObject::~WorkloadObject() { unregisterAdaptor(); }

void WorkloadObject::announce_added() {
  getObject().emitInterfacesAddedSignal({bus::InterfaceName{Workload_adaptor::INTERFACE_NAME}});
}

void WorkloadObject::announce_removed() {
  getObject().emitInterfacesRemovedSignal({bus::InterfaceName{Workload_adaptor::INTERFACE_NAME}});
}

void WorkloadObject::announce_changes() {
  WorkloadView now = view();
  std::vector<std::string> changed;
  if (now.service != announced_.service) changed.emplace_back("Service");
  if (now.workload_class != announced_.workload_class) changed.emplace_back("Class");
  if (now.matched_by != announced_.matched_by) changed.emplace_back("MatchedBy");
  if (now.vcpus != announced_.vcpus) changed.emplace_back("VCPUs");
  if (now.pinned_cpus != announced_.pinned_cpus) changed.emplace_back("PinnedCPUs");
  if (now.managed != announced_.managed) changed.emplace_back("Managed");
  if (now.unmanaged_reason != announced_.unmanaged_reason) changed.emplace_back("UnmanagedReason");
  announced_ = std::move(now);
  if (changed.empty()) return;
  getObject().emitPropertiesChangedSignal(Workload_adaptor::INTERFACE_NAME, bus::property_names(changed));
}

WorkloadView WorkloadObject::view() const { return control_.workload(announced_.id).value_or(announced_); }

std::string WorkloadObject::Id() { return announced_.id; }
std::string WorkloadObject::Service() { return view().service; }
std::string WorkloadObject::Class() { return view().workload_class; }
std::string WorkloadObject::Kind() { return view().kind; }
std::string WorkloadObject::MatchedBy() { return view().matched_by; }
std::uint32_t WorkloadObject::VCPUs() { return view().vcpus; }
std::string WorkloadObject::PinnedCPUs() { return view().pinned_cpus; }
bool WorkloadObject::Managed() { return view().managed; }
std::string WorkloadObject::UnmanagedReason() { return view().unmanaged_reason; }
double WorkloadObject::CPUCores() {
  return view().cpu_cores.value_or(std::numeric_limits<double>::quiet_NaN());
}
std::uint64_t WorkloadObject::MemoryBytes() {
  return view().memory_bytes.value_or(std::numeric_limits<std::uint64_t>::max());
}
double WorkloadObject::Score() { return view().score.value_or(std::numeric_limits<double>::quiet_NaN()); }

// --- LogControl1 ---

LogControlObject::LogControlObject(sdbus::IConnection& connection, Control& control)
    : AdaptorInterfaces(connection, sdbus::ObjectPath{bus::kLogControlPath}), control_(control) {
  registerAdaptor();
}

LogControlObject::~LogControlObject() { unregisterAdaptor(); }

std::string LogControlObject::LogLevel() {
  const std::string level = control_.log_level();
  for (const auto& [syslog, own] : kLevels) {
    if (level == own) return syslog;
  }
  return level;
}

void LogControlObject::LogLevel(const std::string& level) {
  for (const auto& [syslog, own] : kLevels) {
    if (level != syslog) continue;
    if (auto set = control_.set_log_level(own); !set) throw to_bus_error(set.error());
    return;
  }
  throw bus::make_error(
      bus::kInvalidInput,
      fmt::format("there is no log level \"{}\"; there are emerg, alert, crit, err, warning, notice, "
                  "info and debug",
                  level));
}

std::string LogControlObject::LogTarget() { return stderr_is_journal() ? "journal" : "console"; }

void LogControlObject::LogTarget(const std::string& target) {
  if (target == LogTarget() || target == "auto") return;
  throw bus::make_error(
      "org.freedesktop.DBus.Error.NotSupported",
      fmt::format("the log goes to {} and cannot be sent elsewhere while berthd runs", LogTarget()));
}

std::string LogControlObject::SyslogIdentifier() { return "berthd"; }

}  // namespace berth::daemon
