// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"
#include "model/snapshot.h"
#include "model/topology.h"
#include "model/trace.h"
#include "trace/ticks.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace berth::trace {

// Reads a trace, tick by tick.
class Reader {
 public:
  // Reads into the buffer; 0 at the end of the file.
  using Source = std::function<model::Result<std::size_t>(char* buffer, std::size_t size)>;

  // Reads the first line. Error invalid_input where the file is no trace.
  static model::Result<Reader> open(Source source, const Limits& limits = {});
  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;
  ~Reader();

  const model::TraceHeader& header() const { return header_; }
  // Makes snapshot() that of the next tick. False at the end of the trace.
  bool next();
  const model::Snapshot& snapshot() const { return ticks_.snapshot(); }
  std::uint64_t ticks() const { return ticks_.count(); }
  // After next() returned false: in words, why the trace ends before its last line. nullopt: it is complete.
  const std::optional<std::string>& cut() const { return cut_; }
  // Compressed bytes read so far.
  std::uint64_t bytes_read() const;

 private:
  class Lines;
  Reader(std::unique_ptr<Lines> lines, const Limits& limits);
  bool end_at(const std::string& why);

  std::unique_ptr<Lines> lines_;
  Limits limits_;
  model::TraceHeader header_;
  Ticks ticks_;
  std::optional<std::string> cut_;
  bool ended_ = false;
};

}  // namespace berth::trace
