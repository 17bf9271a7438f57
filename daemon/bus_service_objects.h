// SPDX-License-Identifier: Apache-2.0
// The objects that BusService puts on the bus, each over the generated glue of its interface.
#pragma once

#include "bus/compat.h"
#include "daemon/control.h"
#include "daemon/polkit.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <log_control_adaptor.h>
#include <manager_adaptor.h>
#include <workload_adaptor.h>

namespace berth::daemon {

// Announces properties of one interface whose values are not those announced before.
class ManagerObject final
    : public sdbus::AdaptorInterfaces<org::berth::Node1::Manager_adaptor, sdbus::ObjectManager_adaptor> {
 public:
  ManagerObject(sdbus::IConnection& connection, Control& control, Polkit& polkit);
  ~ManagerObject();

  // One PropertiesChanged signal with what changed since the last one; none where nothing did.
  void announce_changes();

 private:
  struct Announced {
    std::string mode;
    WorkloadCounts counts;
    std::string best_effort_cpus;
  };
  Announced current() const;
  // Runs `act` if polkit lets the caller, and answers with its value or error.
  template <typename Reply, typename Act>
  void authorised(Reply&& reply, Act act);

  std::string GetStatus() override;
  std::string GetWorkloads() override;
  std::string GetTopology() override;
  std::string GetSnapshot() override;
  std::string GetPlan() override;
  std::string GetLog(const std::uint32_t& limit) override;
  void SetMode(sdbus::Result<>&& reply, std::string mode) override;
  void SetWorkload(sdbus::Result<>&& reply, std::string workload,
                   std::map<std::string, std::string> settings) override;
  void Restore(sdbus::Result<std::string>&& reply) override;
  void Reload(sdbus::Result<>&& reply) override;
  std::string Version() override;
  std::string Mode() override;
  double ScoreNode() override;
  std::uint32_t LatencySensitiveWorkloads() override;
  std::uint32_t BestEffortWorkloads() override;
  std::string BestEffortCPUs() override;

  Control& control_;
  Polkit& polkit_;
  Announced announced_;
};

class WorkloadObject final : public sdbus::AdaptorInterfaces<org::berth::Node1::Workload_adaptor> {
 public:
  WorkloadObject(sdbus::IConnection& connection, Control& control, WorkloadView view);
  ~WorkloadObject();

  void announce_added();
  void announce_removed();
  void announce_changes();

 private:
  // As it is now; as it was last seen, where the workload is about to be taken off the bus.
  WorkloadView view() const;

  std::string Id() override;
  std::string Service() override;
  std::string Class() override;
  std::string Kind() override;
  std::string MatchedBy() override;
  std::uint32_t VCPUs() override;
  std::string PinnedCPUs() override;
  bool Managed() override;
  std::string UnmanagedReason() override;
  double CPUCores() override;
  std::uint64_t MemoryBytes() override;
  double Score() override;

  Control& control_;
  WorkloadView announced_;
};

// org.freedesktop.LogControl1(5). The setters are marked privileged, so that sd-bus itself lets root alone
// use them.
class LogControlObject final : public sdbus::AdaptorInterfaces<org::freedesktop::LogControl1_adaptor> {
 public:
  LogControlObject(sdbus::IConnection& connection, Control& control);
  ~LogControlObject();

 private:
  std::string LogLevel() override;
  void LogLevel(const std::string& level) override;
  std::string LogTarget() override;
  void LogTarget(const std::string& target) override;
  std::string SyslogIdentifier() override;

  Control& control_;
};

}  // namespace berth::daemon
