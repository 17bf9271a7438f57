// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/ledger/log_entry.h"
#include "daemon/ledger/straggler_news.h"
#include "daemon/observe/observer.h"
#include "daemon/serve/control.h"
#include "model/error.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace berth::daemon {

// Tells a listener the changes of a tick, by comparison with its last news.
class BusNews {
 public:
  // The listener knows the present state.
  void start(const Control& control, const Observer& observer);
  void tell(Listener& listener, const Control& control, const Observer& observer,
            const std::vector<LogEntry>& entries, const StragglersNews& news);

 private:
  struct Known {
    std::string id;
    std::uint64_t cgroup_id = 0;
    std::size_t fingerprint = 0;  // of everything but measured figures
  };
  static std::vector<Known> now(const Control& control, const Observer& observer);

  std::vector<Known> known_;  // ascending by id
  std::string mode_;
  std::string best_effort_cpus_;
  WorkloadCounts counts_;
  model::Advertised advertised_;
};

// Makes a listener that serves the bus.
using BusStarter = std::function<model::Result<std::unique_ptr<Listener>>(Control&)>;

// The daemon's connection to the bus: made when it is wanted, made again after it was lost, told what
// changed.
class BusLink {
 public:
  // From here on connect() makes a listener with `starter`.
  void serve(BusStarter starter) { starter_ = std::move(starter); }
  // Connects, or notices that the connection was lost; at most one try each kRetry_s. `now` in epoch seconds.
  // Both references outlive the link.
  void connect(Control& control, const Observer& observer, double now);
  // Ends the connection for good: before the event loop that it runs on ends.
  void leave();

  // False while it is not known yet whether the bus answers.
  bool is_settled() const { return !listener_ || listener_->link() != Link::connecting; }
  // The connection was lost, and connect() has not noticed yet.
  bool is_lost() const { return listener_ && listener_->link() == Link::lost; }
  // Why callers cannot reach the daemon by the bus; nullopt where the bus works.
  std::optional<std::string> problem() const;
  // Why polkit cannot be asked; nullopt where it can.
  std::optional<std::string> polkit_problem() const;
  // Tells the listener, where there is one, what a tick or a call has changed.
  void tell(const std::vector<LogEntry>& entries, const StragglersNews& news);
  // Tells it the new entries of the decision log.
  void decided(const std::vector<LogEntry>& entries);

 private:
  static constexpr double kRetry_s = 10;

  void lose(const std::string& problem);

  BusStarter starter_;
  // As given to connect().
  const Control* control_ = nullptr;
  const Observer* observer_ = nullptr;
  BusNews news_;
  std::optional<std::string> problem_ = "not connected yet";  // as last said; none once it was up
  bool problem_said_ = false;
  double tried_at_ = 0;
  std::unique_ptr<Listener> listener_;  // the last member: it calls back into the daemon until it is gone
};

}  // namespace berth::daemon
