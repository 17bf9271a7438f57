// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/systemd_owner.h"
#include "cgroup/writer.h"
#include "fake_systemd.h"
#include "tests/patience.h"
#include "values.h"
#include "write_fixture.h"

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace berth::cgroup {

inline constexpr const char* kUnit = "web.service";
inline constexpr const char* kGroup = "system.slice/web.service";

inline UnitSetting allowed(const std::string& list) { return setting_of(cpus(list)); }

// A unit of a systemd that answers on a private bus.
class SystemdOwnerTest : public testing::Test {
 protected:
  void SetUp() override {
    if (bus.address().empty()) GTEST_SKIP() << "dbus-daemon is not installed";
    system_bus.emplace(bus.address());
    systemd = std::make_unique<FakeSystemd>(bus.address(), tree, run.path());
    connect(berth::test::kPatience);
    reopen();
  }

  SystemdOwner::Options options(std::chrono::milliseconds call_timeout) const {
    SystemdOwner::Options options;
    options.run_dir = run.path();
    options.cgroup_root = tree.root();
    options.call_timeout = call_timeout;
    return options;
  }
  void connect(std::chrono::milliseconds call_timeout) {
    auto connected = SystemdOwner::connect(options(call_timeout));
    ASSERT_TRUE(connected) << connected.error().message();
    owner = std::move(*connected);
  }
  // From here on calls are not answered, nor waited for as long as on a systemd that may just be slow.
  void fall_silent() {
    connect(std::chrono::seconds(2));
    systemd->fall_silent(true);
  }

  void reopen() {
    journal.reset();
    auto opened = UndoJournal::open(state.path(), "boot");
    ASSERT_TRUE(opened);
    journal = std::move(*opened);
  }
  void add(const std::string& configured = "", bool transient = false) {
    systemd->add(kUnit, {kGroup, allowed(configured), transient});
  }
  FoundWorkload web() const { return tree.found(kGroup, kUnit); }
  Writer writer() { return {tree.root(), *journal, direct, owner.get()}; }
  std::string now() const { return tree.get(kGroup, "cpuset.cpus"); }
  std::string configured() const { return systemd->live(kUnit).allowed_cpus.to_string(); }
  bool drop_in(const std::string& name = "50-AllowedCPUs.conf",
               const std::string& root = "system.control") const {
    return std::filesystem::exists(run.path() / root / (std::string(kUnit) + ".d") / name);
  }
  bool nothing_left() const {
    return !std::filesystem::exists(run.path() / "system.control" / (std::string(kUnit) + ".d")) &&
           !std::filesystem::exists(run.path() / "transient" / (std::string(kUnit) + ".d"));
  }

  PrivateBus bus;
  std::optional<SystemBusAddress> system_bus;
  ControlTree tree;
  ScratchDirectory run;
  ScratchDirectory state;
  std::unique_ptr<FakeSystemd> systemd;
  std::unique_ptr<SystemdOwner> owner;
  PatientOwner direct{tree.root()};
  std::unique_ptr<UndoJournal> journal;
};

}  // namespace berth::cgroup
