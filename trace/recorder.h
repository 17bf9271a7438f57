// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"
#include "model/snapshot.h"
#include "model/trace.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace berth::trace {

// Time between two whole snapshots.
inline constexpr double kWholeEvery_s = 60;

// Makes the lines of a trace out of snapshots, one a tick.
class Recorder {
 public:
  // Takes a line, which has no end of its own.
  using Sink = std::function<model::Result<void>(std::string_view line)>;

  // Hands out the first line. Errors of the sink.
  static model::Result<Recorder> begin(Sink sink, const model::TraceHeader& header);

  // Whether the next snapshot has to come with all of its samples: it will be written whole. Otherwise those
  // later than last_time() do.
  bool wants_whole(double now) const;
  // Of the newest tick, epoch seconds; 0 before the first.
  double last_time() const { return last_ ? last_->time : 0; }

  enum class Added { tick, old, odd };
  // Takes a snapshot, and `text`, its document. `whole`: it has all of its samples. Returns `old` where the
  // trace has this tick already, and `odd` where a whole one is needed: the clock was set back, or the host
  // has other vCPUs. Neither hands out a line. Errors of the sink.
  model::Result<Added> add(model::Snapshot snapshot, std::string_view text, bool whole);
  // Hands out the last line.
  model::Result<void> end();
  std::uint64_t ticks() const { return ticks_; }

 private:
  explicit Recorder(Sink sink) : sink_(std::move(sink)) {}

  Sink sink_;
  std::optional<model::Snapshot> last_;
  double whole_at_ = 0;
  std::uint64_t ticks_ = 0;
};

// Compresses the lines of a trace. Each line is complete in the output when add() returns, so that a recorder
// that is killed loses nothing that it had written.
class Writer {
 public:
  // Takes all of the bytes.
  using Sink = std::function<model::Result<void>(std::string_view bytes)>;

  explicit Writer(Sink sink);
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // Adds a line, which must not hold a line's end. Errors of the sink.
  model::Result<void> add(std::string_view line);
  // Ends the compressed frame with its checksum; the last call.
  model::Result<void> end();
  // add(), for a recorder. The writer must outlive it.
  std::function<model::Result<void>(std::string_view line)> lines() {
    return [this](std::string_view line) { return add(line); };
  }
  // Bytes that the sink took.
  std::uint64_t bytes() const { return bytes_; }

 private:
  struct Compressor;
  model::Result<void> compress(std::string_view text, int directive);

  std::unique_ptr<Compressor> compressor_;
  Sink sink_;
  std::uint64_t bytes_ = 0;
};

}  // namespace berth::trace
