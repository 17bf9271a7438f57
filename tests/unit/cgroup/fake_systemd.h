// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/systemd_owner_bus.h"
#include "write_fixture.h"

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

struct sd_bus;
struct sd_bus_message;

namespace berth::cgroup {

// A message bus of the test's own, on a socket in a temporary directory.
class PrivateBus {
 public:
  PrivateBus();
  PrivateBus(const PrivateBus&) = delete;
  PrivateBus& operator=(const PrivateBus&) = delete;
  ~PrivateBus();
  // Empty where this machine has no dbus-daemon.
  const std::string& address() const { return address_; }

 private:
  ScratchDirectory directory_;
  std::string address_;
  int pid_ = -1;
};

// Makes `address` this process's system bus for as long as it lives.
class SystemBusAddress {
 public:
  explicit SystemBusAddress(const std::string& address) {
    setenv("DBUS_SYSTEM_BUS_ADDRESS", address.c_str(), 1);
  }
  SystemBusAddress(const SystemBusAddress&) = delete;
  SystemBusAddress& operator=(const SystemBusAddress&) = delete;
  ~SystemBusAddress() { unsetenv("DBUS_SYSTEM_BUS_ADDRESS"); }
};

// org.freedesktop.systemd1, for resource settings: its changes of control files, its drop-ins, and the effect
// of a reload on both (src/core/dbus-cgroup.c, unit.c and load-fragment.c of systemd 252).
class FakeSystemd {
 public:
  static constexpr std::uint64_t kTasksMax = 4915;  // DefaultTasksMax
  static constexpr const char* kUnitOfAllProcesses = "worker.service";

  struct Unit {
    std::string cgroup;     // path in the tree; empty while it does not run
    UnitSetting unit_file;  // the settings in its file
    bool transient = false;
    std::vector<std::string> bound_by{};  // units that end with it
    bool refuses_stop = false;            // RefuseManualStop=
    std::set<std::string> confined{};     // of MemoryMax, Delegate, IPAddressDeny, RestrictFileSystems,
                                          // DeviceAllow, KillMode, OOMPolicy
    std::uint64_t tasks_max = kTasksMax;
    UnitSetting live{};
    std::uint8_t run = 0;                    // each byte of InvocationID
    std::set<std::string> known_drop_ins{};  // as of the last reload or change
  };

  FakeSystemd(const std::string& address, const ControlTree& tree, std::filesystem::path run_dir);
  FakeSystemd(const FakeSystemd&) = delete;
  FakeSystemd& operator=(const FakeSystemd&) = delete;
  ~FakeSystemd();

  void add(const std::string& name, Unit unit);
  void remove(const std::string& name);
  // Gives the unit another group, with its configured settings.
  void restart(const std::string& name);
  // As an administrator would, by systemctl set-property --runtime.
  void set_property(const std::string& name, Attribute attribute, const UnitSetting& setting);
  // The same without --runtime: AllowedCPUs= is in force, and no runtime drop-in is written.
  void set_live(const std::string& name, const UnitSetting& setting);
  void daemon_reload();
  UnitSetting live(const std::string& name) const;
  bool need_reload(const std::string& name) const;
  int reloads() const;
  int changes() const;
  // Units that it was asked to stop, each with the mode of its job.
  std::vector<std::string> stops() const;
  // Scopes that it was asked to start, each as "NAME MODE" and a line a property.
  std::vector<std::string> starts() const;
  // The unit restarts between the answer about a run and the next call.
  void let_units_restart() { restarts_after_lookup_ = true; }
  // Takes calls and never answers them.
  void fall_silent(bool silent);
  // Calls that were taken so.
  int unanswered() const;
  // Takes a setting, and the kernel refuses it: the control file stays as it is.
  void let_kernel_refuse(bool refuse);

 private:
  int handle(sd_bus_message* message);
  int handle_get(sd_bus_message* message);
  int handle_set(sd_bus_message* message);
  int handle_run(sd_bus_message* message);
  int handle_stop(sd_bus_message* message);
  int handle_all(sd_bus_message* message);
  int handle_start(sd_bus_message* message);
  void run();
  // Callers hold the mutex.
  void apply(Unit& unit, Attribute attribute) const;
  void change(const std::string& name, Attribute attribute, const UnitSetting& setting);
  std::set<std::string> drop_ins(const std::string& name) const;
  void load(const std::string& name, Unit& unit) const;

  const ControlTree& tree_;
  std::filesystem::path run_dir_;
  mutable std::mutex mutex_;
  std::map<std::string, Unit> units_;
  std::uint8_t last_run_ = 0;
  bool restarts_after_lookup_ = false;
  int reloads_ = 0;
  int changes_ = 0;
  int unanswered_ = 0;
  std::vector<std::string> stops_;
  std::vector<std::string> starts_;
  bool silent_ = false;
  bool refuse_ = false;
  bool stop_ = false;
  sd_bus* bus_ = nullptr;
  std::thread thread_;
};

}  // namespace berth::cgroup
