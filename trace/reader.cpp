// SPDX-License-Identifier: Apache-2.0
#include "trace/reader.h"

#include "model/utc_text.h"

#include <array>
#include <new>
#include <string_view>
#include <utility>

#include <fmt/core.h>
#include <zstd.h>

namespace berth::trace {

using model::ErrorKind;

namespace {

// A frame that asks for a larger window is refused: zstd would take that much memory.
constexpr int kMostWindowLog = 23;

}  // namespace

// The decompressed lines.
class Reader::Lines {
 public:
  Lines(Source source, const Limits& limits)
      : source_(std::move(source)), limits_(limits), context_(ZSTD_createDCtx()) {
    if (context_ == nullptr) throw std::bad_alloc();
    ZSTD_DCtx_setParameter(context_, ZSTD_d_windowLogMax, kMostWindowLog);
  }
  ~Lines() { ZSTD_freeDCtx(context_); }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  // The next line, without its end. nullopt at the end of the file. Error where the file is damaged, is cut
  // within a frame or a line, or exceeds a limit.
  model::Result<std::optional<std::string>> next() {
    std::string line;
    for (;;) {
      const std::string_view text(out_.data() + begin_, end_ - begin_);
      const std::size_t found = text.find('\n');
      const std::size_t taken = found == std::string_view::npos ? text.size() : found;
      if (line.size() + taken > limits_.line_bytes)
        return model::fail(ErrorKind::invalid_input,
                           fmt::format("a line has more than {} bytes", limits_.line_bytes));
      line.append(text.substr(0, taken));
      begin_ += taken;
      if (found != std::string_view::npos) {
        ++begin_;
        return std::optional(std::move(line));
      }
      const auto more = decompress();
      if (!more) return model::fail(more.error());
      if (*more) continue;
      if (line.empty()) return std::nullopt;
      return model::fail(ErrorKind::invalid_input, "the last line is not complete");
    }
  }

  std::uint64_t bytes_read() const { return bytes_read_; }

 private:
  // Fills out_. False at the end of the file.
  model::Result<bool> decompress() {
    for (;;) {
      if (in_.pos == in_.size && !full_) {
        const auto read = source_(buffer_.data(), buffer_.size());
        if (!read) return model::fail(read.error());
        if (*read == 0) {
          if (within_frame_) return model::fail(ErrorKind::invalid_input, "the file is cut");
          return false;
        }
        bytes_read_ += *read;
        in_ = {buffer_.data(), *read, 0};
      }
      ZSTD_outBuffer out{out_.data(), out_.size(), 0};
      const std::size_t left = ZSTD_decompressStream(context_, &out, &in_);
      if (ZSTD_isError(left) != 0)
        return model::fail(ErrorKind::invalid_input,
                           std::string("cannot decompress: ") + ZSTD_getErrorName(left));
      within_frame_ = left != 0;
      // At the end of a frame zstd holds nothing. Without input it would begin another frame.
      full_ = within_frame_ && out.pos == out.size;
      if (out.pos == 0) continue;
      begin_ = 0;
      end_ = out.pos;
      text_bytes_ += out.pos;
      if (text_bytes_ > limits_.text_bytes)
        return model::fail(ErrorKind::invalid_input,
                           fmt::format("the trace has more than {} bytes, decompressed", limits_.text_bytes));
      return true;
    }
  }

  Source source_;
  const Limits limits_;
  ZSTD_DCtx* context_;
  std::array<char, 131072> buffer_{};  // compressed
  ZSTD_inBuffer in_{nullptr, 0, 0};
  std::array<char, 131072> out_{};
  std::size_t begin_ = 0;  // of the text in out_ that is not taken yet
  std::size_t end_ = 0;
  bool within_frame_ = false;
  bool full_ = false;  // out_ was filled: zstd may hold more
  std::uint64_t bytes_read_ = 0;
  std::uint64_t text_bytes_ = 0;
};

Reader::Reader(std::unique_ptr<Lines> lines, const Limits& limits)
    : lines_(std::move(lines)), limits_(limits) {}
Reader::Reader(Reader&&) noexcept = default;
Reader& Reader::operator=(Reader&&) noexcept = default;
Reader::~Reader() = default;

std::uint64_t Reader::bytes_read() const { return lines_->bytes_read(); }

model::Result<Reader> Reader::open(Source source, const Limits& limits) {
  Reader reader(std::make_unique<Lines>(std::move(source), limits), limits);
  auto line = reader.lines_->next();
  if (!line) return model::fail(line.error().context("no trace"));
  if (!*line) return model::fail(ErrorKind::invalid_input, "no trace: the file is empty");
  if (model::trace_line_of(**line) != model::TraceLine::header)
    return model::fail(ErrorKind::invalid_input,
                       "no trace of this version: its first line is no berth.trace/1 document");
  auto header = model::parse_trace_header(**line);
  if (!header) return model::fail(header.error().context("the first line"));
  reader.header_ = std::move(*header);
  reader.ticks_ = Ticks(reader.header_.history, limits);
  return reader;
}

bool Reader::end_at(const std::string& why) {
  ended_ = true;
  cut_ = ticks() == 0 ? why
                      : fmt::format("{}, after {} ticks, at {}", why, ticks(),
                                    model::utc_text(snapshot().time, "%Y-%m-%d %H:%M:%S UTC"));
  return false;
}

bool Reader::next() {
  if (ended_) return false;
  const auto line = lines_->next();
  if (!line) return end_at(line.error().message());
  if (!*line) return end_at("the trace has no last line: its recorder did not end it");
  const auto kind = model::trace_line_of(**line);
  if (kind == model::TraceLine::end) {
    ended_ = true;
    const auto said = model::parse_trace_end(**line);
    if (!said) return end_at("the last line: " + said.error().message());
    if (*said != ticks()) return end_at(fmt::format("its last line tells {} ticks", *said));
    // The checksum stands at the end of the frame.
    const auto rest = lines_->next();
    if (!rest) return end_at(rest.error().message());
    if (*rest) return end_at("more follows its last line");
    return false;
  }
  if (!kind || kind == model::TraceLine::header) return end_at("a line is no part of a trace");
  if (ticks() >= limits_.ticks) return end_at("the trace has too many ticks");
  if (const auto taken = ticks_.take(*kind, **line); !taken)
    return end_at(fmt::format("tick {}: {}", ticks() + 1, taken.error().message()));
  return true;
}

}  // namespace berth::trace
