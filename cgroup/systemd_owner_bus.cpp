// SPDX-License-Identifier: Apache-2.0
#include "cgroup/systemd_owner_bus.h"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
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
constexpr const char* kProperties = "org.freedesktop.DBus.Properties";
constexpr auto kConnectTimeout = 2s;
constexpr auto kScopeTimeout = 1s;    // the event loop waits, and what is not done now is done later
constexpr auto kReloadTimeout = 20s;  // it reads all units and runs all generators

// sdbus-c++ 1.2 takes plain strings for both, 2.x types of its own.
std::unique_ptr<sdbus::IProxy> make_proxy(sdbus::IConnection& connection, const std::string& path) {
#if BERTH_SDBUS_MAJOR >= 2
  return sdbus::createProxy(connection, sdbus::ServiceName(kService), sdbus::ObjectPath(path));
#else
  return sdbus::createProxy(connection, kService, path);
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

model::ErrorKind kind_of(std::string_view name) {
  if (name.ends_with(".NoSuchUnit") || name.ends_with(".UnknownObject")) return model::ErrorKind::gone;
  if (name.ends_with(".NoReply") || name.ends_with(".Timeout") || name.ends_with(".TimedOut") ||
      name.ends_with(".ETIMEDOUT") || broke_connection(name)) {
    return model::ErrorKind::transient;
  }
  if (name.ends_with(".OnlyByDependency") || name.ends_with(".UnitExists") ||
      name.ends_with(".JobTypeNotApplicable")) {
    return model::ErrorKind::refused;
  }
  if (name.ends_with(".AccessDenied") || name.ends_with(".InteractiveAuthorizationRequired")) {
    return model::ErrorKind::permission;
  }
  if (name.ends_with(".ServiceUnknown") || name.ends_with(".NameHasNoOwner"))
    return model::ErrorKind::unavailable;
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

// Asks for the properties of one interface of one object.
struct Reader {
  sdbus::IConnection& connection;
  std::string path;
  std::string interface;
  std::chrono::milliseconds timeout;

  template <typename T>
  T get(const char* name) const {
    sdbus::Variant value;
    make_proxy(connection, path)
        ->callMethod("Get")
        .onInterface(kProperties)
        .withTimeout(timeout)
        .withArguments(interface, std::string(name))
        .storeResultsTo(value);
    return value.get<T>();
  }
};

using Setting = sdbus::Struct<std::string, sdbus::Variant>;

std::vector<Setting> properties_of(Attribute attribute, const UnitSetting& setting) {
  switch (attribute) {
    case Attribute::cpus:
      return {Setting{std::string("AllowedCPUs"), sdbus::Variant(cpu_bytes(setting.allowed_cpus))}};
    case Attribute::cpu_quota:
      return {Setting{std::string("CPUQuotaPerSecUSec"), sdbus::Variant(setting.quota_us_per_second)},
              Setting{std::string("CPUQuotaPeriodUSec"), sdbus::Variant(setting.quota_period_us)}};
    case Attribute::memory_high:
      break;
  }
  return {Setting{std::string("MemoryHigh"), sdbus::Variant(setting.memory_high_bytes)}};
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
      unless<std::uint64_t>("CPUWeight", kInfinity),
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

struct SystemdBus::State {
  std::chrono::milliseconds timeout{};
  std::unique_ptr<sdbus::IConnection> connection;
  std::optional<std::uint64_t> default_tasks_max;

  sdbus::IConnection& get() {
    if (!connection) {
      require_answering_bus();
      connection = sdbus::createSystemBusConnection();
    }
    return *connection;
  }

  // The room's door for sdbus-c++'s exceptions.
  template <typename Call>
  auto guarded(const std::string& what, Call call)
      -> model::Result<decltype(call(std::declval<sdbus::IConnection&>()))> {
    try {
      if constexpr (std::is_void_v<decltype(call(get()))>) {
        call(get());
        return {};
      } else {
        return call(get());
      }
    } catch (const sdbus::Error& error) {
      const std::string name = error.getName();
      if (broke_connection(name)) connection.reset();
      return model::fail(kind_of(name), fmt::format("systemd: {}: {} ({})", what, error.getMessage(), name));
    } catch (const std::system_error& error) {
      return model::fail(model::ErrorKind::transient, fmt::format("systemd: {}: {}", what, error.what()));
    } catch (const std::exception& error) {
      return model::fail(model::ErrorKind::io, fmt::format("systemd: {}: {}", what, error.what()));
    }
  }
};

SystemdBus::SystemdBus(std::unique_ptr<State> state) : state_(std::move(state)) {}
SystemdBus::~SystemdBus() = default;

model::Result<std::unique_ptr<SystemdBus>> SystemdBus::connect(std::chrono::milliseconds timeout) {
  auto state = std::make_unique<State>();
  state->timeout = timeout;
  const auto answer = state->guarded("asking for its version", [&](sdbus::IConnection& connection) {
    return Reader{connection, kManagerPath, kManager, timeout}.get<std::string>("Version");
  });
  if (!answer) return model::fail(model::ErrorKind::unavailable, answer.error().message());
  return std::unique_ptr<SystemdBus>(new SystemdBus(std::move(state)));
}

model::Result<UnitSetting> SystemdBus::read(const std::string& unit, Attribute attribute) {
  return state_->guarded(fmt::format("reading properties of {}", unit), [&](sdbus::IConnection& connection) {
    const Reader reader{connection, unit_path(unit), unit_interface(unit), state_->timeout};
    UnitSetting setting;
    switch (attribute) {
      case Attribute::cpus:
        setting.allowed_cpus = cpus_of_bytes(reader.get<std::vector<std::uint8_t>>("AllowedCPUs"));
        break;
      case Attribute::cpu_quota:
        setting.quota_us_per_second = reader.get<std::uint64_t>("CPUQuotaPerSecUSec");
        setting.quota_period_us = reader.get<std::uint64_t>("CPUQuotaPeriodUSec");
        break;
      case Attribute::memory_high:
        setting.memory_high_bytes = reader.get<std::uint64_t>("MemoryHigh");
        break;
    }
    return setting;
  });
}

model::Result<void> SystemdBus::write(const std::string& unit, Attribute attribute,
                                      const UnitSetting& setting) {
  return state_->guarded(fmt::format("setting properties of {}", unit), [&](sdbus::IConnection& connection) {
    make_proxy(connection, kManagerPath)
        ->callMethod("SetUnitProperties")
        .onInterface(kManager)
        .withTimeout(state_->timeout)
        .withArguments(unit, true, properties_of(attribute, setting));
  });
}

model::Result<bool> SystemdBus::is_loaded(const std::string& unit) {
  return state_->guarded(fmt::format("reading the state of {}", unit), [&](sdbus::IConnection& connection) {
    return Reader{connection, unit_path(unit), kUnit, state_->timeout}.get<std::string>("LoadState") ==
           "loaded";
  });
}

model::Result<bool> SystemdBus::needs_reload(const std::string& unit) {
  return state_->guarded(fmt::format("reading the state of {}", unit), [&](sdbus::IConnection& connection) {
    return Reader{connection, unit_path(unit), kUnit, state_->timeout}.get<bool>("NeedDaemonReload");
  });
}

model::Result<void> SystemdBus::reload() {
  return state_->guarded("reloading its units", [](sdbus::IConnection& connection) {
    make_proxy(connection, kManagerPath)
        ->callMethod("Reload")
        .onInterface(kManager)
        .withTimeout(kReloadTimeout);
  });
}

model::Result<void> SystemdBus::stop(const std::string& unit) {
  return state_->guarded(fmt::format("stopping {}", unit), [&](sdbus::IConnection& connection) {
    sdbus::ObjectPath job;
    make_proxy(connection, kManagerPath)
        ->callMethod("StopUnit")
        .onInterface(kManager)
        .withTimeout(state_->timeout)
        .withArguments(unit, std::string("ignore-requirements"))
        .storeResultsTo(job);
  });
}

model::Result<std::vector<std::string>> SystemdBus::running_bound_units(const std::string& unit) {
  return state_->guarded(fmt::format("reading the units that are bound to {}", unit),
                         [&](sdbus::IConnection& connection) {
                           std::vector<std::string> running;
                           const Reader reader{connection, unit_path(unit), kUnit, state_->timeout};
                           for (const auto& name : reader.get<std::vector<std::string>>("BoundBy")) {
                             const Reader bound{connection, unit_path(name), kUnit, state_->timeout};
                             const auto state = bound.get<std::string>("ActiveState");
                             if (state != "inactive" && state != "failed") running.push_back(name);
                           }
                           return running;
                         });
}

model::Result<bool> SystemdBus::is_process_of(pid_t pid, const std::string& unit) {
  return state_->guarded(fmt::format("asking for the unit of process {}", pid),
                         [&](sdbus::IConnection& connection) {
                           sdbus::ObjectPath path;
                           make_proxy(connection, kManagerPath)
                               ->callMethod("GetUnitByPID")
                               .onInterface(kManager)
                               .withTimeout(kScopeTimeout)
                               .withArguments(static_cast<std::uint32_t>(pid))
                               .storeResultsTo(path);
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
  return state_->guarded(fmt::format("starting {}", scope.unit), [&](sdbus::IConnection& connection) {
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
    sdbus::ObjectPath job;
    make_proxy(connection, kManagerPath)
        ->callMethod("StartTransientUnit")
        .onInterface(kManager)
        .withTimeout(kScopeTimeout)
        .withArguments(scope.unit, std::string("fail"), properties, no_others)
        .storeResultsTo(job);
  });
}

model::Result<UnitTraits> SystemdBus::traits(const std::string& unit, const std::set<Attribute>& held) {
  return state_->guarded(fmt::format("reading properties of {}", unit), [&](sdbus::IConnection& connection) {
    Properties properties;
    make_proxy(connection, unit_path(unit))
        ->callMethod("GetAll")
        .onInterface(kProperties)
        .withTimeout(kScopeTimeout)
        .withArguments(unit_interface(unit))
        .storeResultsTo(properties);
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
    for (const Bound& bound : all) {
      if (!is_set(properties, bound)) continue;
      traits.bound = fmt::format("{} has {}= set", unit, bound.name);
      return traits;
    }
    // Each executor may have as many tasks as all of them had together; less would be a limit of its own.
    if (!state_->default_tasks_max)
      state_->default_tasks_max =
          Reader{connection, kManagerPath, kManager, kScopeTimeout}.get<std::uint64_t>("DefaultTasksMax");
    if (const auto tasks = properties.find("TasksMax"); tasks != properties.end()) {
      traits.tasks_max = tasks->second.get<std::uint64_t>();
      if (traits.tasks_max != *state_->default_tasks_max && traits.tasks_max != kInfinity)
        traits.bound = fmt::format("{} has TasksMax={}", unit, traits.tasks_max);
    }
    return traits;
  });
}

}  // namespace berth::cgroup
