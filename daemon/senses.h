// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/observe/blame_sampling.h"
#include "daemon/observe/observer.h"
#include "daemon/observe/pressure_watch.h"
#include "daemon/observe/progress_files.h"
#include "daemon/observe/sampling_budget.h"
#include "daemon/observe/spark_watch.h"
#include "daemon/setup.h"
#include "model/capability.h"
#include "model/error.h"
#include "os/clock.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <systemd/sd-event.h>

namespace berth::daemon {

// Has `observer` keep as many samples, and read those attributes, that `settings` ask for.
void follow_settings(Observer& observer, const config::Settings& settings);

// All that reads the host: the observer at each tick, the sources that feed it, and the events between ticks.
class Senses {
 public:
  // Error where the host's processors cannot be read, or the tree cannot be watched. `setup` outlives the
  // senses.
  static model::Result<std::unique_ptr<Senses>> start(const Setup& setup);

  Observer& observer() { return *observer_; }
  const Observer& observer() const { return *observer_; }

  // Takes over settings that were read again.
  void follow_settings();
  // Reads the host. Logs faults, each once as long as it lasts.
  void look(double now);
  // Processes were moved: Spark's are looked for again.
  void look_for_spark_again() { spark_.look_again(); }

  // From here on the kernel counts, where it can; until then, files are read.
  void begin_sampling();
  // Calls `rose` on the loop's thread when something is newly under pressure, so that a tick should not wait.
  void watch_pressure(sd_event* event, std::function<void()> rose);
  // Reads the culprits of waits of the snapshot's workloads, if there was a question of late.
  void follow_blame(double now);
  // Call follow_blame() after a question.
  BlameSampling& blame() { return blame_; }
  const BlameSampling& blame() const { return blame_; }
  // The pressure of the workloads in the present snapshot is watched from here on.
  void follow_pressure() { pressure_.follow(observer_->snapshot(), observer_->found()); }
  // Progress files are read as soon as they change, from here on. Calls `before` first, which must note the
  // workloads that came and went.
  void watch_progress(sd_event* event, std::function<void()> before);
  // Call it before the event loop ends.
  void detach();

  // For the event loop: readable when Daemon::take_changes() has work.
  int changes_fd() const { return observer_->fd(); }
  // The same of the kernel's events; -1 where there are none.
  int kernel_events_fd() const { return observer_->kernel().events_fd(); }

  // Seconds from tick to tick: as configured, or longer where sampling would cost too much.
  double interval_s() const;
  // Whether it is longer.
  bool is_slowed() const { return interval_s() > setup_.settings.tick_s; }
  const SamplingBudget& budget() const { return budget_; }
  model::Capability pressure_capability() const { return pressure_.capability(); }
  // Notes that a tick begins.
  void begin_tick() { woken_ = false; }
  // Number of ticks that pressure caused.
  std::uint64_t woken_by_pressure() const { return woken_by_pressure_; }

 private:
  Senses(const Setup& setup, std::unique_ptr<Observer> observer);
  static std::optional<std::string> why_kernel_cannot_count(const Setup& setup);

  const Setup& setup_;
  std::unique_ptr<Observer> observer_;
  PressureWatch pressure_;
  ProgressFiles progress_files_;
  SparkWatch spark_;
  BlameSampling blame_;
  bool sampling_begun_ = false;
  SamplingBudget budget_;
  os::Suspends suspends_;
  std::uint64_t woken_by_pressure_ = 0;
  bool woken_ = false;  // the next tick is one
};

}  // namespace berth::daemon
