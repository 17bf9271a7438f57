// SPDX-License-Identifier: Apache-2.0
#include "cgroup/systemd_owner_bus.h"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <sdbus-c++/sdbus-c++.h>
#include <systemd/sd-bus.h>

namespace berth::cgroup {

namespace {

using namespace std::chrono_literals;

constexpr const char* kService = "org.freedesktop.systemd1";
constexpr const char* kManagerPath = "/org/freedesktop/systemd1";
constexpr const char* kManager = "org.freedesktop.systemd1.Manager";
constexpr const char* kUnit = "org.freedesktop.systemd1.Unit";
constexpr const char* kPropertiesInterface = "org.freedesktop.DBus.Properties";
constexpr const char* kBus = "org.freedesktop.DBus";
constexpr const char* kBusPath = "/org/freedesktop/DBus";
constexpr auto kConnectTimeout = 2s;
constexpr auto kScopeTimeout = 1s;    // what is not done now is done later
constexpr auto kReloadTimeout = 20s;  // it reads all units and runs all generators
constexpr auto kLongestCall = kConnectTimeout + kReloadTimeout + 1s;

// sdbus-c++ 1.2 takes plain strings for both, 2.x types of its own.
std::unique_ptr<sdbus::IProxy> make_proxy(sdbus::IConnection& connection, const std::string& path,
                                          const char* service = kService) {
#if BERTH_SDBUS_MAJOR >= 2
  return sdbus::createProxy(connection, sdbus::ServiceName(service), sdbus::ObjectPath(path));
#else
  return sdbus::createProxy(connection, service, path);
#endif
}

std::string unit_path(const std::string& unit) {
  char* encoded = nullptr;
  if (sd_bus_path_encode("/org/freedesktop/systemd1/unit", unit.c_str(), &encoded) < 0)
    throw std::bad_alloc();
  const std::unique_ptr<char, decltype(&std::free)> owned(encoded, std::free);
  return owned.get();
}

// "foo.service" has its resource settings at org.freedesktop.systemd1.Service, and so on.
std::string unit_interface(const std::string& unit) {
  std::string type = unit.substr(unit.rfind('.') + 1);
  if (!type.empty()) type[0] = static_cast<char>(type[0] & ~0x20);
  return fmt::format("{}.{}", kService, type);
}

bool broke_connection(std::string_view name) {
  return name.ends_with(".Disconnected") || name.ends_with(".NoServer") || name.ends_with(".ECONNRESET") ||
         name.ends_with(".ENOTCONN") || name.ends_with(".EPIPE") || name.ends_with(".ESTALE");
}

model::ErrorKind kind_of_bus_error(std::string_view name) {
  if (name.ends_with(".NoSuchUnit") || name.ends_with(".NoUnitForInvocationID") ||
      name.ends_with(".UnknownObject"))
    return model::ErrorKind::gone;
  if (name.ends_with(".NoReply") || name.ends_with(".Timeout") || name.ends_with(".TimedOut") ||
      name.ends_with(".ETIMEDOUT") || name.ends_with(".ServiceUnknown") ||
      name.ends_with(".NameHasNoOwner") || broke_connection(name)) {
    return model::ErrorKind::transient;
  }
  if (name.ends_with(".OnlyByDependency") || name.ends_with(".UnitExists") ||
      name.ends_with(".JobTypeNotApplicable")) {
    return model::ErrorKind::refused;
  }
  if (name.ends_with(".AccessDenied") || name.ends_with(".InteractiveAuthorizationRequired")) {
    return model::ErrorKind::permission;
  }
  return model::ErrorKind::io;
}

// Throws std::system_error where a bus takes the connection and does not answer. Without this check sdbus-c++
// would wait for 25 s and more; it has no option for a shorter time.
void require_answering_bus() {
  const auto check = [](int result) {
    if (result < 0) throw std::system_error(-result, std::generic_category(), "connecting to the system bus");
    return result;
  };
  sd_bus* raw = nullptr;
  check(sd_bus_open_system(&raw));
  const std::unique_ptr<sd_bus, decltype(&sd_bus_close_unref)> trial(raw, sd_bus_close_unref);
  const auto deadline = std::chrono::steady_clock::now() + kConnectTimeout;
  while (check(sd_bus_is_ready(raw)) == 0) {
    const auto left =
        std::chrono::duration_cast<std::chrono::microseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) check(-ETIMEDOUT);
    if (check(sd_bus_process(raw, nullptr)) == 0) {
      check(sd_bus_wait(raw, static_cast<std::uint64_t>(left.count())));
    }
  }
}

struct NotOnTheBus : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws NotOnTheBus where systemd is not there. Without this check the bus would try for 25 s to start it.
void require_systemd(sdbus::IConnection& connection, std::chrono::milliseconds timeout) {
  bool there = false;
  make_proxy(connection, kBusPath, kBus)
      ->callMethod("NameHasOwner")
      .onInterface(kBus)
      .withTimeout(timeout)
      .withArguments(std::string(kService))
      .storeResultsTo(there);
  if (!there)
    throw NotOnTheBus(
        "systemd is not on the system bus: it leaves a bus that hangs, and `kill -USR1 1` makes it return; "
        "berth asks again later");
}

// Calls a method of an object of systemd.
template <typename Answer = void, typename... Arguments>
Answer call(sdbus::IConnection& connection, const std::string& path, const char* interface,
            const char* method, std::chrono::milliseconds timeout, const Arguments&... arguments) {
  const auto proxy = make_proxy(connection, path);
  const auto begin = [&](sdbus::MethodInvoker&& invoker) -> sdbus::MethodInvoker& {
    return invoker.onInterface(interface).withTimeout(timeout).withArguments(arguments...);
  };
  if constexpr (std::is_void_v<Answer>) {
    begin(proxy->callMethod(method));
  } else {
    Answer answer;
    begin(proxy->callMethod(method)).storeResultsTo(answer);
    return answer;
  }
}

// Asks for the properties of one interface of one object.
struct Reader {
  sdbus::IConnection& connection;
  std::string path;
  std::string interface;
  std::chrono::milliseconds timeout;

  template <typename T>
  T get(const char* name) const {
    return call<sdbus::Variant>(connection, path, kPropertiesInterface, "Get", timeout, interface,
                                std::string(name))
        .template get<T>();
  }
};

using Setting = sdbus::Struct<std::string, sdbus::Variant>;

std::vector<Setting> settings_of(Attribute attribute, const UnitSetting& setting) {
  std::vector<Setting> settings;
  for (const UnitProperty& property : properties_of(attribute)) {
    const auto* list = std::get_if<UnitProperty::List>(&property.member);
    settings.emplace_back(std::string(property.name),
                          list != nullptr
                              ? sdbus::Variant(cpu_bytes(setting.**list))
                              : sdbus::Variant(setting.*std::get<UnitProperty::Number>(property.member)));
  }
  return settings;
}

using Properties = std::map<std::string, sdbus::Variant>;

// A setting that confines or favours a unit, and its text where it is unset.
struct Bound {
  const char* name;
  std::function<bool(const sdbus::Variant& value)> is_unset;
};

template <typename T>
Bound unless(const char* name, T unset) {
  return {name, [unset](const sdbus::Variant& value) { return value.get<T>() == unset; }};
}

template <typename... T>
Bound unless_list(const char* name) {
  if constexpr (sizeof...(T) == 1) {
    return {name, [](const sdbus::Variant& value) { return value.get<std::vector<T...>>().empty(); }};
  } else {
    return {name, [](const sdbus::Variant& value) {
              return value.get<std::vector<sdbus::Struct<T...>>>().empty();
            }};
  }
}

// The property is a pair: whether it lists allowed things, and the list. An empty list of denied things
// denies nothing.
Bound unless_named(const char* name) {
  using List = sdbus::Struct<bool, std::vector<std::string>>;
  return {name, [](const sdbus::Variant& value) {
            const auto list = value.get<List>();
            return !std::get<0>(list) && std::get<1>(list).empty();
          }};
}

// Settings that a cgroup's own control files do not show, or show mixed with defaults
// (org.freedesktop.systemd1(5), systemd.resource-control(5)). If systemd does not know a setting, the setting
// is not set.
const std::vector<Bound>& bounds() {
  using Bytes = std::vector<std::uint8_t>;
  static const std::vector<Bound> all{
      unless<std::uint64_t>("MemoryMax", kInfinity),
      unless<std::uint64_t>("MemorySwapMax", kInfinity),
      unless<std::uint64_t>("MemoryZSwapMax", kInfinity),
      unless_list<std::uint8_t>("AllowedMemoryNodes"),
      unless<std::uint64_t>("StartupMemoryHigh", kInfinity),
      unless<std::uint64_t>("StartupMemoryMax", kInfinity),
      unless<std::uint64_t>("StartupMemorySwapMax", kInfinity),
      unless<std::uint64_t>("StartupMemoryZSwapMax", kInfinity),
      unless_list<std::uint8_t>("StartupAllowedCPUs"),
      unless_list<std::uint8_t>("StartupAllowedMemoryNodes"),
      unless<std::uint64_t>("StartupCPUWeight", kInfinity),
      unless<std::uint64_t>("IOWeight", kInfinity),
      unless<std::uint64_t>("StartupIOWeight", kInfinity),
      unless_list<std::string, std::uint64_t>("IODeviceWeight"),
      unless_list<std::string, std::uint64_t>("IODeviceLatencyTargetUSec"),
      unless_list<std::string, std::uint64_t>("IOReadBandwidthMax"),
      unless_list<std::string, std::uint64_t>("IOWriteBandwidthMax"),
      unless_list<std::string, std::uint64_t>("IOReadIOPSMax"),
      unless_list<std::string, std::uint64_t>("IOWriteIOPSMax"),
      unless<std::string>("DevicePolicy", "auto"),
      unless_list<std::string, std::string>("DeviceAllow"),
      unless_list<std::int32_t, Bytes, std::uint32_t>("IPAddressAllow"),
      unless_list<std::int32_t, Bytes, std::uint32_t>("IPAddressDeny"),
      unless_list<std::string>("IPIngressFilterPath"),
      unless_list<std::string>("IPEgressFilterPath"),
      unless_named("RestrictFileSystems"),
      unless_named("RestrictNetworkInterfaces"),
      unless_list<std::string, std::string>("BPFProgram"),
      unless_list<std::int32_t, std::int32_t, std::uint16_t, std::uint16_t>("SocketBindAllow"),
      unless_list<std::int32_t, std::int32_t, std::uint16_t, std::uint16_t>("SocketBindDeny"),
      unless_list<std::int32_t, std::int32_t, std::string, std::string>("NFTSet"),
      unless<bool>("Delegate", false),
      unless<std::uint64_t>("RuntimeMaxUSec", kInfinity),
      unless<std::string>("KillMode", "control-group"),
      unless<std::int32_t>("KillSignal", SIGTERM),
      unless<bool>("SendSIGKILL", true),
      unless<bool>("SendSIGHUP", false),
      unless<std::string>("OOMPolicy", "stop"),
      unless<std::string>("ManagedOOMSwap", "auto"),
      unless<std::string>("ManagedOOMMemoryPressure", "auto"),
      unless<std::string>("ManagedOOMPreference", "none"),
  };
  return all;
}

bool is_set(const Properties& properties, const Bound& bound) {
  const auto found = properties.find(bound.name);
  return found != properties.end() && !bound.is_unset(found->second);
}

}  // namespace

// What the worker's thread alone uses.
struct SystemdBus::Connection {
  explicit Connection(std::chrono::milliseconds for_each_call) : timeout(for_each_call) {}

  const std::chrono::milliseconds timeout;
  std::unique_ptr<sdbus::IConnection> connection;
  bool answers = false;  // the last call was answered
  std::optional<std::uint64_t> default_tasks_max;

  sdbus::IConnection& get() {
    if (!connection) {
      require_answering_bus();
      connection = sdbus::createSystemBusConnection();
    }
    if (!answers) require_systemd(*connection, timeout);
    answers = true;
    return *connection;
  }

  // Exceptions of sdbus-c++ do not leave this module: they become errors here.
  template <typename Call>
  auto guarded(const std::string& what, const Call& call)
      -> model::Result<std::invoke_result_t<const Call&, Connection&>> {
    try {
      if constexpr (std::is_void_v<std::invoke_result_t<const Call&, Connection&>>) {
        call(*this);
        return {};
      } else {
        return call(*this);
      }
    } catch (const sdbus::Error& error) {
      const std::string& name = error.getName();
      if (broke_connection(name)) connection.reset();
      if (kind_of_bus_error(name) == model::ErrorKind::transient) answers = false;
      return model::fail(kind_of_bus_error(name),
                         fmt::format("systemd: {}: {} ({})", what, error.getMessage(), name));
    } catch (const NotOnTheBus& error) {
      return model::fail(model::ErrorKind::transient, fmt::format("{}: {}", what, error.what()));
    } catch (const std::system_error& error) {
      return model::fail(model::ErrorKind::transient, fmt::format("systemd: {}: {}", what, error.what()));
    } catch (const std::exception& error) {
      return model::fail(model::ErrorKind::io, fmt::format("systemd: {}: {}", what, error.what()));
    }
  }

  Reader reader(const std::string& path, const std::string& interface) {
    return {get(), path, interface, timeout};
  }
};

SystemdBus::SystemdBus(std::chrono::milliseconds timeout, std::chrono::milliseconds patience)
    : connection_(std::make_shared<Connection>(timeout)), patience_(patience) {}
SystemdBus::~SystemdBus() = default;

// The call gets copies of all that it needs, as it may end after this function.
template <typename Call>
auto SystemdBus::ask(const std::string& what, Call call) {
  auto answer = worker_.run(
      [connection = connection_, what, call = std::move(call)] { return connection->guarded(what, call); },
      patience_);
  using Answer = typename decltype(answer)::value_type;
  return answer ? *std::move(answer)
                : Answer(model::fail(model::ErrorKind::transient,
                                     fmt::format("systemd: {}: no answer within {} ms, to this call or to an "
                                                 "earlier one; berth goes on, and asks again later",
                                                 what, patience_.count())));
}

void SystemdBus::be_patient() {
  patience_ = kLongestCall;
  worker_.wait_again();
}

model::Result<void> SystemdBus::greet() {
  return ask("asking for its version",
             [](Connection& bus) { (void)bus.reader(kManagerPath, kManager).get<std::string>("Version"); });
}

model::Result<UnitSetting> SystemdBus::read(const std::string& unit, Attribute attribute) {
  return ask(fmt::format("reading properties of {}", unit), [=](Connection& bus) {
    const Reader reader{bus.get(), unit_path(unit), unit_interface(unit), bus.timeout};
    UnitSetting setting;
    for (const UnitProperty& property : properties_of(attribute)) {
      if (const auto* list = std::get_if<UnitProperty::List>(&property.member)) {
        setting.** list = cpus_of_bytes(reader.get<std::vector<std::uint8_t>>(property.name));
      } else {
        setting.*std::get<UnitProperty::Number>(property.member) = reader.get<std::uint64_t>(property.name);
      }
    }
    return setting;
  });
}

model::Result<void> SystemdBus::write(const std::string& unit, Attribute attribute,
                                      const UnitSetting& setting) {
  return ask(fmt::format("setting properties of {}", unit), [=](Connection& bus) {
    call(bus.get(), kManagerPath, kManager, "SetUnitProperties", bus.timeout, unit, true,
         settings_of(attribute, setting));
  });
}

model::Result<bool> SystemdBus::is_loaded(const std::string& unit) {
  return ask(fmt::format("reading the state of {}", unit), [=](Connection& bus) {
    return Reader{bus.get(), unit_path(unit), kUnit, bus.timeout}.get<std::string>("LoadState") == "loaded";
  });
}

model::Result<bool> SystemdBus::needs_reload(const std::string& unit) {
  return ask(fmt::format("reading the state of {}", unit), [=](Connection& bus) {
    return Reader{bus.get(), unit_path(unit), kUnit, bus.timeout}.get<bool>("NeedDaemonReload");
  });
}

model::Result<void> SystemdBus::reload() {
  return ask("reloading its units",
             [](Connection& bus) { call(bus.get(), kManagerPath, kManager, "Reload", kReloadTimeout); });
}

model::Result<std::vector<std::uint8_t>> SystemdBus::invocation(const std::string& unit) {
  return ask(fmt::format("reading the run of {}", unit), [=](Connection& bus) {
    return Reader{bus.get(), unit_path(unit), kUnit, bus.timeout}.get<std::vector<std::uint8_t>>(
        "InvocationID");
  });
}

model::Result<void> SystemdBus::stop_run(const std::vector<std::uint8_t>& invocation) {
  return ask("stopping a run", [=](Connection& bus) {
    // This path names the run, not the unit.
    const auto unit = call<sdbus::ObjectPath>(bus.get(), kManagerPath, kManager, "GetUnitByInvocationID",
                                              bus.timeout, invocation);
    (void)call<sdbus::ObjectPath>(bus.get(), unit, kUnit, "Stop", bus.timeout,
                                  std::string("ignore-requirements"));
  });
}

model::Result<std::vector<std::string>> SystemdBus::running_bound_units(const std::string& unit) {
  return ask(fmt::format("reading the units that are bound to {}", unit), [=](Connection& bus) {
    std::vector<std::string> running;
    const Reader reader{bus.get(), unit_path(unit), kUnit, bus.timeout};
    for (const auto& name : reader.get<std::vector<std::string>>("BoundBy")) {
      const Reader bound{bus.get(), unit_path(name), kUnit, bus.timeout};
      const auto state = bound.get<std::string>("ActiveState");
      if (state != "inactive" && state != "failed") running.push_back(name);
    }
    return running;
  });
}

model::Result<bool> SystemdBus::is_process_of(pid_t pid, const std::string& unit) {
  return ask(fmt::format("asking for the unit of process {}", pid), [=](Connection& bus) {
    const auto path = call<sdbus::ObjectPath>(bus.get(), kManagerPath, kManager, "GetUnitByPID",
                                              kScopeTimeout, static_cast<std::uint32_t>(pid));
    return path == unit_path(unit);
  });
}

model::Result<void> SystemdBus::start_scope(const Scope& scope) {
  const auto same = is_process_of(scope.pid, scope.stopped_with);
  // Nothing was begun in this case.
  if (!same) return model::fail(model::ErrorKind::unavailable, same.error().message());
  if (!*same)
    return model::fail(model::ErrorKind::io,
                       fmt::format("systemd: process {} is not in {}", scope.pid, scope.stopped_with));
  return ask(fmt::format("starting {}", scope.unit), [=](Connection& bus) {
    using Names = std::vector<std::string>;
    const std::vector<std::uint32_t> pids{static_cast<std::uint32_t>(scope.pid)};
    std::vector<Setting> properties{
        Setting{std::string("PIDs"), sdbus::Variant(pids)},
        Setting{std::string("Description"), sdbus::Variant(scope.description)},
        Setting{std::string("Slice"), sdbus::Variant(scope.slice)},
        Setting{std::string("StopPropagatedFrom"), sdbus::Variant(Names{scope.stopped_with})},
        Setting{std::string("TimeoutStopUSec"), sdbus::Variant(scope.timeout_stop_us)},
        Setting{std::string("TasksMax"), sdbus::Variant(scope.tasks_max)},
        Setting{std::string("CollectMode"), sdbus::Variant(std::string("inactive-or-failed"))},
    };
    const auto weigh = [&](const char* name, const std::optional<int>& weight) {
      if (weight)
        properties.push_back(Setting{std::string(name), sdbus::Variant(static_cast<std::uint64_t>(*weight))});
    };
    weigh("CPUWeight", scope.cpu_weight);
    weigh("IOWeight", scope.io_weight);
    const std::vector<sdbus::Struct<std::string, std::vector<Setting>>> no_others;
    (void)call<sdbus::ObjectPath>(bus.get(), kManagerPath, kManager, "StartTransientUnit", kScopeTimeout,
                                  scope.unit, std::string("fail"), properties, no_others);
  });
}

model::Result<UnitTraits> SystemdBus::traits(const std::string& unit, const std::set<Attribute>& held) {
  return ask(fmt::format("reading properties of {}", unit), [=](Connection& bus) {
    const auto properties = call<Properties>(bus.get(), unit_path(unit), kPropertiesInterface, "GetAll",
                                             kScopeTimeout, unit_interface(unit));
    UnitTraits traits;
    if (const auto pid = properties.find("MainPID"); pid != properties.end())
      traits.main_pid = static_cast<pid_t>(pid->second.get<std::uint32_t>());
    if (const auto timeout = properties.find("TimeoutStopUSec"); timeout != properties.end())
      traits.timeout_stop_us = timeout->second.get<std::uint64_t>();
    std::vector<Bound> all = bounds();
    if (!held.contains(Attribute::cpus)) all.push_back(unless_list<std::uint8_t>("AllowedCPUs"));
    if (!held.contains(Attribute::cpu_quota))
      all.push_back(unless<std::uint64_t>("CPUQuotaPerSecUSec", kInfinity));
    if (!held.contains(Attribute::memory_high)) all.push_back(unless<std::uint64_t>("MemoryHigh", kInfinity));
    if (!held.contains(Attribute::cpu_idle)) all.push_back(unless<std::uint64_t>("CPUWeight", kInfinity));
    for (const Bound& bound : all) {
      if (!is_set(properties, bound)) continue;
      traits.bound = fmt::format("{} has {}= set", unit, bound.name);
      return traits;
    }
    // Each executor may have as many tasks as all of them had together; less would be a limit of its own.
    if (!bus.default_tasks_max)
      bus.default_tasks_max =
          Reader{bus.get(), kManagerPath, kManager, kScopeTimeout}.get<std::uint64_t>("DefaultTasksMax");
    if (const auto tasks = properties.find("TasksMax"); tasks != properties.end()) {
      traits.tasks_max = tasks->second.get<std::uint64_t>();
      if (traits.tasks_max != *bus.default_tasks_max && traits.tasks_max != kInfinity)
        traits.bound = fmt::format("{} has TasksMax={}", unit, traits.tasks_max);
    }
    return traits;
  });
}

}  // namespace berth::cgroup
