// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/serve/control.h"
#include "model/error.h"

#include <memory>
#include <optional>
#include <string>

#include <systemd/sd-event.h>

namespace berth::daemon {

// org.berth.Node1 on the system bus (org.berth.Node1(5)). It has the manager, an
// object per workload, and org.freedesktop.LogControl1. It serves one connection, on the loop's thread, and
// never waits for it. Once that is lost, the caller starts a new service.
class BusService final : public Listener {
 public:
  // The longest time for the bus to give the service its name. A call of the service's own that is answered
  // while the caller waits has the same limit.
  static constexpr std::uint64_t kAnswerTimeoutUsec = 2'000'000;

  // Begins to connect and puts every object in place; link() has the outcome. `event` and `control` outlive
  // the service. Error unavailable where there is no bus to connect to.
  static model::Result<std::unique_ptr<BusService>> start(sd_event* event, Control& control);
  // Sends the queued messages, if the bus takes them within kAnswerTimeoutUsec.
  ~BusService() override;

  // Lost also where the bus does not answer in time, another process has the name, or this user may not have
  // it.
  Link link() const override;
  std::string problem() const override;
  std::optional<std::string> polkit_problem() const override;

  void workload_appeared(const std::string& id) override;
  void workload_vanished(const std::string& id) override;
  void workload_changed(const std::string& id) override;
  void changed(const LogEntry& entry) override;
  void straggler_found(const StragglerNews& news) override;
  void decided(const LogEntry& entry) override;
  void relocation_needed(const StragglerNews& news) override;
  void mode_changed() override;
  void node_changed() override;

 private:
  struct State;
  explicit BusService(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace berth::daemon
