// SPDX-License-Identifier: Apache-2.0
#include "trace/ticks.h"

#include "model/json.h"

#include <cstddef>
#include <utility>

#include <fmt/core.h>

namespace berth::trace {

using model::ErrorKind;

model::Result<void> Ticks::take(model::TraceLine kind, std::string_view line) {
  // A change that fails leaves no snapshot behind; the time of the tick before is still to be told.
  const double time = snapshot_.time;
  auto taken = follow(kind, line);
  if (taken) {
    ++count_;
  } else {
    snapshot_.time = time;
  }
  return taken;
}

model::Result<void> Ticks::follow(model::TraceLine kind, std::string_view line) {
  if (kind == model::TraceLine::change) {
    if (count_ == 0) return model::fail(ErrorKind::invalid_input, "a change comes before any snapshot");
    auto changed = model::apply_change(line, static_cast<std::size_t>(history_), snapshot_);
    return changed ? check_size() : changed;
  }
  auto parsed = model::parse_snapshot(line);
  if (!parsed) return model::fail(parsed.error());
  if (count_ > 0 && parsed->snapshot.time <= snapshot_.time)
    return model::fail(ErrorKind::invalid_input, "$.time: not later than the tick before");
  snapshot_ = std::move(parsed->snapshot);
  return check_size();
}

model::Result<void> Ticks::check_size() const {
  if (snapshot_.workloads.size() > limits_.workloads)
    return model::fail(ErrorKind::invalid_input, fmt::format("more than {} workloads", limits_.workloads));
  std::size_t samples = 0;
  for (const auto& workload : snapshot_.workloads) samples += workload.usage.size();
  if (samples > limits_.samples)
    return model::fail(ErrorKind::invalid_input,
                       fmt::format("more than {} samples at once", limits_.samples));
  return {};
}

}  // namespace berth::trace
