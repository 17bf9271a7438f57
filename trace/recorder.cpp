// SPDX-License-Identifier: Apache-2.0
#include "trace/recorder.h"

#include "trace/ticks.h"

#include <array>
#include <new>
#include <utility>

#include <fmt/core.h>
#include <zstd.h>

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

// Level 3 is zstd's default. The window holds a minute of a large host, so that each whole snapshot finds its
// samples in the changes before it. A reader needs as much memory (Reader's limit is the same).
constexpr int kLevel = 3;
constexpr int kWindowLog = 23;

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

struct Writer::Compressor {
  Compressor() : context(ZSTD_createCCtx()) {
    if (context == nullptr) throw std::bad_alloc();
    ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, kLevel);
    ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, kWindowLog);
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  }
  ~Compressor() { ZSTD_freeCCtx(context); }
  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;

  ZSTD_CCtx* context;
  std::array<char, 65536> out{};
};

Writer::Writer(Sink sink) : compressor_(std::make_unique<Compressor>()), sink_(std::move(sink)) {}
Writer::~Writer() = default;

model::Result<void> Writer::compress(std::string_view text, int directive) {
  ZSTD_inBuffer in{text.data(), text.size(), 0};
  std::size_t left = 0;  // bytes that the compressor still holds
  do {
    ZSTD_outBuffer out{compressor_->out.data(), compressor_->out.size(), 0};
    left = ZSTD_compressStream2(compressor_->context, &out, &in, static_cast<ZSTD_EndDirective>(directive));
    if (ZSTD_isError(left) != 0)
      return model::fail(model::ErrorKind::io, std::string("cannot compress: ") + ZSTD_getErrorName(left));
    if (out.pos > 0) {
      if (auto written = sink_(std::string_view(compressor_->out.data(), out.pos)); !written) return written;
      bytes_ += out.pos;
    }
  } while (directive == ZSTD_e_continue ? in.pos < in.size : left > 0);
  return {};
}

model::Result<void> Writer::add(std::string_view line) {
  if (auto begun = compress(line, ZSTD_e_continue); !begun) return begun;
  return compress("\n", ZSTD_e_flush);
}

model::Result<void> Writer::end() { return compress("", ZSTD_e_end); }

}  // namespace berth::trace
