// SPDX-License-Identifier: Apache-2.0
#include "trace/writer.h"

#include <array>
#include <new>
#include <utility>

#include <zstd.h>

namespace berth::trace {

namespace {

// Level 3 is zstd's default. The window holds a minute of a large host, so that each whole snapshot finds its
// samples in the changes before it. A reader needs as much memory (Reader's limit is the same).
constexpr int kLevel = 3;
constexpr int kWindowLog = 23;

}  // namespace

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
