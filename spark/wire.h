// SPDX-License-Identifier: Apache-2.0
// The messages between berthd and berth-sparkd, as bytes. Both run on one host, from one package: numbers are
// in the host's order, and there is no version.
//
// A round is: `question` to berth-sparkd; from it any number of `open` and `facts`, in any order, then
// `done`. berthd answers each `open` with `opened`, to which the descriptor of a file is attached.
#pragma once

#include "model/error.h"
#include "spark/interview.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::spark::wire {

enum class Type : std::uint8_t { question = 1, open, opened, facts, done };

// A file that a driver's event log is said to be.
struct Open {
  static constexpr std::size_t kMostPathBytes = 4096;  // PATH_MAX

  ProcessId process;
  std::string path;
  friend bool operator==(const Open&, const Open&) = default;
};

// Why a file was not opened; no error where its descriptor is attached, or where it is a directory.
struct Opened {
  bool done = false;
  model::ErrorKind kind = model::ErrorKind::io;
  std::string message;
  std::optional<std::vector<std::string>> parts;  // see LogFile
  friend bool operator==(const Opened&, const Opened&) = default;
};

std::string encode(const Question& question);
std::string encode(const Open& open);
std::string encode(const Opened& opened);
std::string encode(const DriverFacts& facts);
std::string encode_done(bool goes_on);

// Each fails with `invalid_input` for bytes that are no such message. Every count is checked before memory is
// taken for it.
model::Result<Question> decode_question(std::string_view bytes);
model::Result<Open> decode_open(std::string_view bytes);
model::Result<Opened> decode_opened(std::string_view bytes);
// The values take `most_bytes` of memory at most; the used part is taken off it. Names fit into a snapshot,
// and the application is one that a snapshot may hold (model::check_spark_app).
model::Result<DriverFacts> decode_facts(std::string_view bytes, std::size_t& most_bytes);
model::Result<bool> decode_done(std::string_view bytes);

}  // namespace berth::spark::wire
