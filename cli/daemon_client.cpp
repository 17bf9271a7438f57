// SPDX-License-Identifier: Apache-2.0
#include "cli/daemon_client.h"

#include "bus/compat.h"
#include "bus/names.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <manager_proxy.h>
#include <unistd.h>

namespace berth::cli {

namespace {

constexpr std::chrono::seconds kReadTimeout{10};
// Somebody may have to type a password, and putting everything back takes its time.
constexpr std::chrono::seconds kChangeTimeout{120};

constexpr const char* kAdvice = "is berthd running? systemctl start berthd";

class ManagerProxy final : public sdbus::ProxyInterfaces<org::berth::Node1::Manager_proxy> {
 public:
  explicit ManagerProxy(sdbus::IConnection& connection)
      : ProxyInterfaces(connection, bus::ServiceName{bus::kServiceName},
                        sdbus::ObjectPath{bus::kManagerPath}) {}

  // The generated calls cannot say that polkit may ask the user.
  template <typename... Arguments>
  std::string change(const char* method, const Arguments&... arguments) {
    auto message = getProxy().createMethodCall(bus::InterfaceName{Manager_proxy::INTERFACE_NAME},
                                               bus::MethodName{method});
    (void)(message << ... << arguments);
    if (isatty(STDIN_FILENO) != 0) bus::allow_interaction(message);
    auto reply = getProxy().callMethod(
        message, static_cast<std::uint64_t>(std::chrono::microseconds(kChangeTimeout).count()));
    std::string text;
    if (!reply.isEmpty()) reply >> text;
    return text;
  }

 private:
  void onPinned(const std::string&, const std::string&, const std::string&) override {}
  void onQuotaChanged(const std::string&, const std::string&, const std::string&, const std::string&,
                      const std::string&) override {}
  void onStragglerFound(const std::string&, const std::string&, const std::string&) override {}
  void onRelocationNeeded(const std::string&, const double&, const uint64_t&, const std::string&) override {}
  void onUnpinned(const std::string&, const std::string&) override {}
};

// Errors of the bus itself, by which the daemon is not there (any more) to answer.
bool is_absence(const std::string& name) {
  for (const char* absent : {"ServiceUnknown", "NameHasNoOwner", "NoReply", "Timeout", "TimedOut",
                             "Disconnected", "NoServer", "IOError", "FileNotFound"}) {
    if (name == std::string("org.freedesktop.DBus.Error.") + absent) return true;
  }
  return name.starts_with("org.freedesktop.DBus.Error.Spawn.") || name.starts_with("System.Error.E");
}

Problem to_problem(const sdbus::Error& error, const char* action) {
  const std::string name = error.getName();
  const std::string& message = error.getMessage();
  if (name == bus::kInvalidInput) return {Exit::wrong_use, message};
  if (name == bus::kAccessDenied || name == bus::kInteractionRequired) {
    return {Exit::refused,
            fmt::format("refused: {}; run as root, or have polkit grant you {}", message, action)};
  }
  if (is_absence(name))
    return {Exit::unreachable, fmt::format("berthd did not answer ({}); {}", message, kAdvice)};
  return {Exit::failed, message.empty() ? name : message};
}

template <typename Call>
auto guarded(Call call, const char* action = bus::kManageAction) -> Outcome<decltype(call())> {
  try {
    if constexpr (std::is_void_v<decltype(call())>) {
      call();
      return {};
    } else {
      return call();
    }
  } catch (const sdbus::Error& error) {
    return tl::unexpected<Problem>(to_problem(error, action));
  }
}

}  // namespace

struct DaemonClient::State {
  explicit State(std::unique_ptr<sdbus::IConnection> bus)
      : connection(std::move(bus)), manager(*connection) {}
  std::unique_ptr<sdbus::IConnection> connection;
  ManagerProxy manager;
};

DaemonClient::DaemonClient(std::unique_ptr<State> state) : state_(std::move(state)) {}
DaemonClient::~DaemonClient() = default;
DaemonClient::DaemonClient(DaemonClient&&) noexcept = default;
DaemonClient& DaemonClient::operator=(DaemonClient&&) noexcept = default;

Outcome<DaemonClient> DaemonClient::connect() {
  std::unique_ptr<State> state;
  try {
    state = std::make_unique<State>(sdbus::createSystemBusConnection());
  } catch (const sdbus::Error& error) {
    return problem(Exit::unreachable,
                   fmt::format("cannot reach the system bus ({}); {}", error.getMessage(), kAdvice));
  }
  try {
    state->connection->setMethodCallTimeout(kReadTimeout);
    // Asked first, since a call would have the bus start a daemon that somebody stopped on purpose.
    bool present = false;
    sdbus::createProxy(*state->connection, bus::ServiceName{"org.freedesktop.DBus"},
                       sdbus::ObjectPath{"/org/freedesktop/DBus"})
        ->callMethod("NameHasOwner")
        .onInterface("org.freedesktop.DBus")
        .withArguments(std::string(bus::kServiceName))
        .storeResultsTo(present);
    if (!present)
      return problem(Exit::unreachable, fmt::format("berthd is not on the system bus; {}", kAdvice));
  } catch (const sdbus::Error& error) {
    return problem(Exit::unreachable,
                   fmt::format("the system bus does not answer ({}); {}", error.getMessage(), kAdvice));
  }
  return DaemonClient(std::move(state));
}

Outcome<std::string> DaemonClient::status() {
  return guarded([this] { return state_->manager.GetStatus(); });
}
Outcome<std::string> DaemonClient::workloads() {
  return guarded([this] { return state_->manager.GetWorkloads(); });
}
Outcome<std::string> DaemonClient::topology() {
  return guarded([this] { return state_->manager.GetTopology(); });
}
Outcome<std::string> DaemonClient::snapshot() {
  return guarded([this] { return state_->manager.GetSnapshot(); });
}
Outcome<std::string> DaemonClient::plan() {
  return guarded([this] { return state_->manager.GetPlan(); });
}
Outcome<std::string> DaemonClient::log(std::uint32_t limit) {
  return guarded([this, limit] { return state_->manager.GetLog(limit); });
}

Outcome<std::string> DaemonClient::explain(const std::string& subject) {
  return guarded([&] { return state_->manager.Explain(subject); });
}

Outcome<std::string> DaemonClient::metrics() {
  return guarded([this] { return state_->manager.GetMetrics(); });
}

Outcome<void> DaemonClient::set_mode(const std::string& mode) {
  return guarded([&] { (void)state_->manager.change("SetMode", mode); });
}
Outcome<void> DaemonClient::set_workload(const std::string& id,
                                         const std::map<std::string, std::string>& settings) {
  return guarded([&] { (void)state_->manager.change("SetWorkload", id, settings); });
}
Outcome<void> DaemonClient::report_progress(const std::string& id, double fraction) {
  return guarded([&] { (void)state_->manager.change("ReportProgress", id, fraction); },
                 bus::kReportProgressAction);
}
Outcome<std::string> DaemonClient::restore() {
  return guarded([this] { return state_->manager.change("Restore"); });
}
Outcome<void> DaemonClient::reload() {
  return guarded([this] { (void)state_->manager.change("Reload"); });
}

}  // namespace berth::cli
