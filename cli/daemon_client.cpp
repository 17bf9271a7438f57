// SPDX-License-Identifier: Apache-2.0
#include "cli/daemon_client.h"

#include "bus/compat.h"
#include "bus/names.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <initializer_list>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/core.h>
#include <manager_proxy.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

namespace berth::cli {

namespace {

constexpr std::chrono::seconds kBusTimeout{2};
// As long as D-Bus's own libraries wait: on an overloaded host the answer matters most.
constexpr std::chrono::seconds kReadTimeout{25};
// The user may have to type a password, and a restore takes its time. Only a daemon that answers gets that
// long.
constexpr std::chrono::seconds kChangeTimeout{120};

constexpr const char* kAdvice = "if berthd does not run: berthctl check-config, then systemctl start berthd";

class ManagerProxy final : public sdbus::ProxyInterfaces<org::berth::Node1::Manager_proxy> {
 public:
  explicit ManagerProxy(sdbus::IConnection& connection)
      : ProxyInterfaces(connection, bus::ServiceName{bus::kServiceName},
                        sdbus::ObjectPath{bus::kManagerPath}) {}

  // The generated calls lack the flag by which polkit may ask the user.
  template <typename... Arguments>
  std::string change(const char* method, const Arguments&... arguments) {
    getProxy()
        .callMethod("Ping")
        .onInterface("org.freedesktop.DBus.Peer")
        .withTimeout(kReadTimeout)
        .storeResultsTo();
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

  std::string ask(const char* method, std::chrono::seconds timeout) {
    std::string text;
    getProxy()
        .callMethod(method)
        .onInterface(Manager_proxy::INTERFACE_NAME)
        .withTimeout(timeout)
        .storeResultsTo(text);
    return text;
  }

  template <typename Answered>
  sdbus::PendingAsyncCall ask_soon(const char* method, std::chrono::seconds timeout, Answered answered) {
    return getProxy()
        .callMethodAsync(method)
        .onInterface(Manager_proxy::INTERFACE_NAME)
        .withTimeout(timeout)
        .uponReplyInvoke([answered = std::move(answered)](bus::ReplyError error, std::string text) {
          answered(error, text);
        });
  }

 private:
  void onPinned(const std::string&, const std::string&, const std::string&) override {}
  void onQuotaChanged(const std::string&, const std::string&, const std::string&, const std::string&,
                      const std::string&) override {}
  void onEvicted(const std::string&, const std::string&, const uint64_t&, const std::string&) override {}
  void onStragglerFound(const std::string&, const std::string&, const std::string&) override {}
  void onRelocationNeeded(const std::string&, const double&, const uint64_t&, const std::string&) override {}
  void onSchedulingStateChanged(const std::string&, const std::string&, const std::string&,
                                const std::string&, const std::string&) override {}
  void onUnpinned(const std::string&, const std::string&) override {}
  void onDecided(const double&, const std::map<std::string, std::string>&) override {}
};

bool is_one_of(const std::string& name, std::initializer_list<const char*> errors) {
  return std::any_of(errors.begin(), errors.end(), [&](const char* error) {
    return name == std::string("org.freedesktop.DBus.Error.") + error;
  });
}

// The daemon is on the bus and does not answer.
bool is_silence(const std::string& name) {
  return is_one_of(name, {"NoReply", "Timeout", "TimedOut"}) || name == "System.Error.ETIMEDOUT";
}

// Errors of the bus itself that mean that the daemon is not there (any more).
bool is_absence(const std::string& name) {
  return is_one_of(name, {"ServiceUnknown", "NameHasNoOwner", "Disconnected", "NoServer", "IOError",
                          "FileNotFound"}) ||
         name.starts_with("org.freedesktop.DBus.Error.Spawn.") || name.starts_with("System.Error.E");
}

Problem to_problem(const sdbus::Error& error, const char* action) {
  const std::string& name = error.getName();
  const std::string& message = error.getMessage();
  if (name == bus::kInvalidInput) return {Exit::wrong_use, message};
  if (name == bus::kRefused) return {Exit::refused, "refused: " + message};
  if (name == bus::kAccessDenied || name == bus::kInteractionRequired) {
    return {Exit::refused,
            fmt::format("refused: {}; run as root, or have polkit grant you {}", message, action)};
  }
  if (is_silence(name)) {
    return {Exit::unreachable,
            fmt::format("berthd does not answer ({}); systemctl status berthd shows what it does", message)};
  }
  if (is_absence(name))
    return {Exit::unreachable, fmt::format("berthd did not answer ({}); {}", message, kAdvice)};
  return {Exit::failed, message.empty() ? name : message};
}

// 0, or the negative errno of sd-bus where the bus cannot be reached or takes the connection and is silent.
// sdbus-c++ would wait for 25 s a message, and has no option for a shorter time.
int try_bus() {
  sd_bus* raw = nullptr;
  if (const int r = sd_bus_open_system(&raw); r < 0) return r;
  const std::unique_ptr<sd_bus, decltype(&sd_bus_close_unref)> trial(raw, sd_bus_close_unref);
  const auto deadline = std::chrono::steady_clock::now() + kBusTimeout;
  for (;;) {
    if (const int ready = sd_bus_is_ready(raw); ready != 0) return std::min(ready, 0);
    const auto left =
        std::chrono::duration_cast<std::chrono::microseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return -ETIMEDOUT;
    int r = sd_bus_process(raw, nullptr);
    if (r == 0) r = sd_bus_wait(raw, static_cast<std::uint64_t>(left.count()));
    if (r < 0) return r;
  }
}

// A second at most; `deadline_usec` is on CLOCK_MONOTONIC.
std::chrono::milliseconds until(std::uint64_t deadline_usec) {
  using std::chrono::microseconds;
  const auto now =
      std::chrono::duration_cast<microseconds>(std::chrono::steady_clock::now().time_since_epoch());
  const auto now_usec = static_cast<std::uint64_t>(now.count());
  const std::uint64_t left = deadline_usec > now_usec ? deadline_usec - now_usec : 0;
  return std::chrono::milliseconds(std::min<std::uint64_t>(left / 1000 + 1, 1000));
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

  // The document that a method without arguments returns.
  Outcome<std::string> ask(const char* method) {
    return guarded([&] { return waiter ? ask_and_wait(method) : manager.ask(method, kReadTimeout); });
  }

  std::string ask_and_wait(const char* method) {
    // Shared with a reply that comes after the question was given up.
    const auto answer = std::make_shared<std::optional<std::string>>();
    const auto failure = std::make_shared<std::optional<sdbus::Error>>();
    auto call = manager.ask_soon(method, kReadTimeout, [answer, failure](auto&& error, const auto& text) {
      if (error) {
        failure->emplace(*error);
      } else {
        answer->emplace(text);
      }
    });
    while (!*answer && !*failure) {
      if (bus::process_one(*connection)) continue;
      const bus::PollData data = bus::poll_data(*connection);
      if (waiter(data.fd, data.events, until(data.timeout_usec))) continue;
      call.cancel();
      throw sdbus::Error(bus::ErrorName{"org.berth.Node1.Error.GivenUp"}, "given up");
    }
    if (*failure) throw **failure;
    return **answer;
  }

  std::unique_ptr<sdbus::IConnection> connection;
  ManagerProxy manager;
  Waiter waiter;
};

DaemonClient::DaemonClient(std::unique_ptr<State> state) : state_(std::move(state)) {}
DaemonClient::~DaemonClient() = default;
DaemonClient::DaemonClient(DaemonClient&&) noexcept = default;
DaemonClient& DaemonClient::operator=(DaemonClient&&) noexcept = default;

Outcome<DaemonClient> DaemonClient::connect() {
  if (const int r = try_bus(); r < 0) {
    const std::string why = r == -ETIMEDOUT
                                ? fmt::format("it does not answer within {} s", kBusTimeout.count())
                                : std::generic_category().message(-r);
    return problem(Exit::unreachable, fmt::format("cannot reach the system bus ({}); {}", why, kAdvice));
  }
  std::unique_ptr<State> state;
  try {
    state = std::make_unique<State>(sdbus::createSystemBusConnection());
  } catch (const sdbus::Error& error) {
    return problem(Exit::unreachable,
                   fmt::format("cannot reach the system bus ({}); {}", error.getMessage(), kAdvice));
  }
  try {
    state->connection->setMethodCallTimeout(kReadTimeout);
    // This comes first: a call would make the bus start a daemon that an administrator had stopped.
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

void DaemonClient::wait_by(Waiter waiter) { state_->waiter = std::move(waiter); }

Outcome<std::string> DaemonClient::status() { return state_->ask("GetStatus"); }
Outcome<std::string> DaemonClient::workloads() { return state_->ask("GetWorkloads"); }
Outcome<std::string> DaemonClient::topology() { return state_->ask("GetTopology"); }
Outcome<std::string> DaemonClient::snapshot() { return state_->ask("GetSnapshot"); }
Outcome<std::string> DaemonClient::snapshot_since(double since) {
  return guarded([this, since] { return state_->manager.GetSnapshotSince(since); });
}
Outcome<std::string> DaemonClient::plan() { return state_->ask("GetPlan"); }
Outcome<std::string> DaemonClient::profiles() { return state_->ask("GetProfiles"); }
Outcome<std::string> DaemonClient::models() { return state_->ask("GetModels"); }
Outcome<std::string> DaemonClient::reservations() { return state_->ask("GetReservations"); }
Outcome<std::string> DaemonClient::log(std::uint32_t limit) {
  return guarded([this, limit] { return state_->manager.GetLog(limit); });
}

Outcome<std::string> DaemonClient::find_log(const std::map<std::string, std::string>& filter,
                                            std::uint32_t limit) {
  return guarded([&] { return state_->manager.FindLog(filter, limit); });
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
Outcome<std::string> DaemonClient::evict(const std::string& id) {
  return guarded([&] { return state_->manager.change("Evict", id); }, bus::kEvictAction);
}
Outcome<std::string> DaemonClient::admit(const std::string& request, double hold_s) {
  return guarded([&] { return state_->manager.change("Admit", request, hold_s); }, bus::kAdmitAction);
}
Outcome<std::string> DaemonClient::cancel_reservation(const std::string& id) {
  return guarded([&] { return state_->manager.change("CancelReservation", id); }, bus::kAdmitAction);
}
Outcome<std::string> DaemonClient::blame(const std::string& service) {
  return guarded([&] { return state_->manager.change("Blame", service); });
}
Outcome<std::string> DaemonClient::restore() {
  return guarded([this] { return state_->manager.change("Restore"); });
}
Outcome<void> DaemonClient::import_profiles(const std::string& profiles) {
  return guarded([&] { (void)state_->manager.change("ImportProfiles", profiles); });
}
Outcome<void> DaemonClient::forget_profile(const std::string& service) {
  return guarded([&] { (void)state_->manager.change("ForgetProfile", service); });
}
Outcome<void> DaemonClient::reload() {
  return guarded([this] { (void)state_->manager.change("Reload"); });
}

Outcome<std::string> DaemonClient::begin_trial(const std::string& a, const std::string& b) {
  return guarded([&] { return state_->manager.change("BeginTrial", a, b); });
}
Outcome<void> DaemonClient::use_trial_side(const std::string& side, double lease_s) {
  return guarded(
      [&] { (void)state_->manager.change("UseTrialSide", side, static_cast<std::uint64_t>(lease_s * 1e6)); });
}
Outcome<void> DaemonClient::end_trial(bool keep) {
  return guarded([&] { (void)state_->manager.change("EndTrial", keep); });
}

}  // namespace berth::cli
