// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

namespace berth::trace {

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
