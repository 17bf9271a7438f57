// SPDX-License-Identifier: Apache-2.0
#include "trace/recorder.h"

#include "trace/bounds.h"

#include <utility>

#include <fmt/core.h>

namespace berth::trace {

namespace {

// A longer line would be no part of a trace for its reader.
model::Result<void> write(const Recorder::Sink& sink, std::string_view line) {
  constexpr std::size_t kMost = Limits().line_bytes;
  if (line.size() > kMost)
    return model::fail(model::ErrorKind::invalid_input,
                       fmt::format("the tick has {} bytes, and a trace may have {}", line.size(), kMost));
  return sink(line);
}

}  // namespace

model::Result<Recorder> Recorder::begin(Sink sink, const model::TraceHeader& header) {
  if (auto written = sink(model::to_json(header)); !written) return model::fail(written.error());
  return Recorder(std::move(sink));
}

bool Recorder::wants_whole(double now) const {
  return !last_ || now - whole_at_ >= kWholeEvery_s || now < last_->time;
}

model::Result<Recorder::Added> Recorder::add(model::Snapshot snapshot, std::string_view text, bool whole) {
  if (last_ && snapshot.time == last_->time) return Added::old;
  if (last_ && snapshot.time < last_->time) return Added::odd;
  if (whole) {
    whole_at_ = snapshot.time;
    if (auto written = write(sink_, text); !written) return model::fail(written.error());
  } else {
    const auto change = last_ ? model::change_json(*last_, snapshot) : std::nullopt;
    if (!change) return Added::odd;
    if (auto written = write(sink_, *change); !written) return model::fail(written.error());
  }
  last_ = std::move(snapshot);
  ++ticks_;
  return Added::tick;
}

model::Result<void> Recorder::end() { return sink_(model::trace_end_json(ticks_)); }

}  // namespace berth::trace
