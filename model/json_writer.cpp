// SPDX-License-Identifier: Apache-2.0
#include "model/json_writer.h"

#include "model/name.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <fmt/core.h>

namespace berth::model {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

template <typename Number>
void append_number(std::string& out, Number number) {
  std::array<char, 32> buffer{};
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number);
  out.append(buffer.data(), result.ptr);
}

}  // namespace

// A comma belongs before anything that follows another element of the same container.
void JsonWriter::separate() {
  if (out_.empty()) return;
  const char last = out_.back();
  if (last != '{' && last != '[' && last != ':') out_ += ',';
}

JsonWriter& JsonWriter::begin_object() {
  separate();
  out_ += '{';
  return *this;
}

JsonWriter& JsonWriter::end_object() {
  out_ += '}';
  return *this;
}

JsonWriter& JsonWriter::begin_array() {
  separate();
  out_ += '[';
  return *this;
}

JsonWriter& JsonWriter::end_array() {
  out_ += ']';
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  value(name);
  out_ += ':';
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  separate();
  out_ += '"';
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    const char c = text[at];
    if (length == 0)
      out_ += kReplacement;
    else if (c == '"' || c == '\\')
      (out_ += '\\') += c;
    else if (c >= '\0' && c < ' ')
      out_ += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out_ += text.substr(at, length);
    at += length == 0 ? 1 : length;
  }
  out_ += '"';
  return *this;
}

JsonWriter& JsonWriter::value(double number) {
  if (!std::isfinite(number)) return null();
  separate();
  append_number(out_, number);
  return *this;
}

JsonWriter& JsonWriter::value(float number) {
  if (!std::isfinite(number)) return null();
  separate();
  append_number(out_, number);
  return *this;
}

JsonWriter& JsonWriter::value(int number) {
  separate();
  append_number(out_, number);
  return *this;
}

JsonWriter& JsonWriter::value(std::uint64_t number) {
  separate();
  append_number(out_, number);
  return *this;
}

JsonWriter& JsonWriter::value(bool flag) {
  separate();
  out_ += flag ? "true" : "false";
  return *this;
}

JsonWriter& JsonWriter::value(const CpuSet& cpus) { return value(cpus.to_string()); }

JsonWriter& JsonWriter::null() {
  separate();
  out_ += "null";
  return *this;
}

JsonWriter& JsonWriter::time_value(double time_s) {
  const bool known = time_s != 0 && wall_ahead_s_ != 0;
  return value(known ? std::max(0.0, time_s + wall_ahead_s_) : time_s);
}

}  // namespace berth::model
