// SPDX-License-Identifier: Apache-2.0
#include "cli/trial_host.h"

#include "cli/text.h"
#include "model/json.h"
#include "os/clock.h"

#include <utility>

#include <fmt/core.h>
#include <unistd.h>

namespace berth::cli {

DaemonHost::DaemonHost(DaemonClient& daemon, std::ostream& err, const std::optional<std::string>& metric)
    : daemon_(daemon), bar_(err, STDERR_FILENO) {
  if (metric) metric_.emplace(*metric);
}

tl::unexpected<model::Error> DaemonHost::failed(const Problem& problem) {
  problem_ = problem;
  return model::fail(model::ErrorKind::unavailable, problem.message);
}

model::Result<void> DaemonHost::use(trial::Side side, double lease_s) {
  if (auto used = daemon_.use_trial_side(trial::to_string(side), lease_s); !used) return failed(used.error());
  return {};
}

model::Result<model::Snapshot> DaemonHost::look() {
  const auto text = daemon_.snapshot_since(seen_);
  if (!text) return failed(text.error());
  auto parsed = model::parse_snapshot(*text);
  if (!parsed) return failed({Exit::failed, "the daemon's snapshot: " + parsed.error().message()});
  seen_ = parsed->snapshot.time;
  return std::move(parsed->snapshot);
}

double DaemonHost::now() { return os::monotonic_s(); }

bool DaemonHost::wait(double seconds) {
  const bool ends = signals_.wait(seconds);
  if (ends && metric_) metric_->end();
  return !ends;
}

void DaemonHost::begin_metric(double seconds) {
  if (metric_) metric_->start(seconds);
}

std::optional<model::Result<double>> DaemonHost::end_metric() {
  if (!metric_) return std::nullopt;
  return metric_->number();
}

void DaemonHost::show(std::size_t windows, std::size_t of, trial::Side side, double left_s) {
  if (!bar_.is_due()) return;
  bar_.show(static_cast<double>(windows) / static_cast<double>(of),
            fmt::format("window {} of {} ({}), {} left; Ctrl-C ends", windows + 1, of, trial::to_string(side),
                        format_duration(left_s)));
}

}  // namespace berth::cli
