// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/control.h"
#include "model/error.h"

#include <memory>
#include <string>

#include <systemd/sd-event.h>

namespace berth::daemon {

// org.berth.Node1 on the system bus (docs/contract.md, D-Bus; org.berth.Node1(5)): the manager, an object per
// workload, and org.freedesktop.LogControl1. Serves one connection, on the loop's thread; once that is lost,
// connected() is false, every call here is a no-op, and a new service has to be started.
class BusService final : public Listener {
 public:
  // Connects, puts every object in place and takes the name. `event` and `control` outlive the service. Error
  // unavailable where there is no bus, or another process has the name; permission where the bus does not let
  // this user have it.
  static model::Result<std::unique_ptr<BusService>> start(sd_event* event, Control& control);
  ~BusService() override;

  bool connected() const override;
  // Why the connection ended; empty while it stands.
  std::string lost_because() const;

  void workload_appeared(const std::string& id) override;
  void workload_vanished(const std::string& id) override;
  void workload_changed(const std::string& id) override;
  void pinned(const std::string& workload, const std::string& cpus, const std::string& decision) override;
  void unpinned(const std::string& workload, const std::string& decision) override;
  void mode_changed() override;
  void node_changed() override;

 private:
  struct State;
  explicit BusService(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace berth::daemon
