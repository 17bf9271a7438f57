// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/daemon_client.h"
#include "cli/end_signals.h"
#include "cli/metric_command.h"
#include "cli/problem.h"
#include "cli/progress_bar.h"
#include "trial/driver.h"

#include <iosfwd>
#include <optional>
#include <string>

namespace berth::cli {

// This host, by its berthd.
class DaemonHost final : public trial::Host {
 public:
  // Progress is shown on `err`. Signals end waits from now on.
  DaemonHost(DaemonClient& daemon, std::ostream& err, const std::optional<std::string>& metric);

  model::Result<void> use(trial::Side side, double lease_s) override;
  model::Result<model::Snapshot> look() override;
  double now() override;
  bool wait(double seconds) override;
  void begin_metric(double seconds) override;
  std::optional<model::Result<double>> end_metric() override;
  void show(std::size_t windows, std::size_t of, trial::Side side, double left_s) override;

  // Removes the line of progress.
  void clear() { bar_.clear(); }
  // The daemon's last refusal or silence, with its exit status; nullopt where it has answered all.
  const std::optional<Problem>& problem() const { return problem_; }

 private:
  tl::unexpected<model::Error> failed(const Problem& problem);

  DaemonClient& daemon_;
  EndSignals signals_;
  ProgressBar bar_;
  std::optional<MetricCommand> metric_;
  std::optional<Problem> problem_;
  double seen_ = 0;  // time of the last snapshot
};

}  // namespace berth::cli
