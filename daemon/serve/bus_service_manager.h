// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/serve/bus_service_glue.h"
#include "daemon/serve/bus_service_trial.h"
#include "daemon/serve/control.h"
#include "daemon/serve/polkit.h"
#include "daemon/serve/read_budget.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace berth::daemon {

// org.berth.Node1.Manager, and the ObjectManager of the objects below it.
class ManagerObject {
 public:
  static constexpr std::size_t kMostUnsentBytes = std::size_t{32} << 20;

  // All outlive this. Throws std::system_error.
  ManagerObject(sd_bus* bus, Control& control, Polkit& polkit);
  ManagerObject(const ManagerObject&) = delete;
  ManagerObject& operator=(const ManagerObject&) = delete;

  // Signals; each throws std::system_error where the bus does not take it.
  void changed(const LogEntry& entry);
  void straggler_found(const StragglerNews& news);
  void relocation_needed(const StragglerNews& news);
  void decided(const LogEntry& entry);
  // Sends one PropertiesChanged with the changes since the last one; none without changes.
  void announce_changes();

  // For the table of the interface.
  Control& control() { return control_; }
  // Runs `act` if polkit permits the action to the caller, or need not be asked. Answers with its value or
  // error. Does not keep the call itself, which may be large.
  template <typename Act>
  int authorised(sd_bus_message* call, Act act, Polkit::Asked&& asked);
  // The same of an `act` with a document.
  int asked(sd_bus_message* call, std::function<model::Result<std::string>()> act, Polkit::Asked&& asked);
  TrialCallers& trial_callers() { return trial_callers_; }
  // Answers every user with the document that `act` computes, which is worth so many steps of ReadBudget.
  // `bytes`: of the arguments.
  template <typename Act>
  int computed(sd_bus_message* call, Act act, double steps, std::size_t bytes);
  // Whether a read of so many steps is answered at once, whatever user calls (ReadBudget::take_unasked).
  bool reads_unasked(double steps);
  // Answers a call that succeeded and has no document.
  void reply(sd_bus_message* call, const model::Result<void>& done);
  void reply(sd_bus_message* call, const model::Result<std::string>& document);
  // Answers with a document. Refuses the call instead if the bus has not taken kMostUnsentBytes of earlier
  // documents yet: a client that does not read its answers must not fill berthd's memory.
  void reply(sd_bus_message* call, const std::string& document);

 private:
  struct Announced {
    std::string mode;
    WorkloadCounts counts;
    std::string best_effort_cpus;
    model::Advertised advertised;
  };
  Announced current() const;
  template <typename... Arguments>
  void emit(const char* signal, const char* types, const Arguments&... arguments);

  sd_bus* bus_;
  Control& control_;
  Polkit& polkit_;
  Announced announced_;
  ReadBudget budget_;
  std::size_t unsent_bytes_ = 0;  // of documents; since the bus last had taken everything
  TrialCallers trial_callers_;
  Slot interface_;
  Slot object_manager_;
};

}  // namespace berth::daemon
