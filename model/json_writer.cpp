// SPDX-License-Identifier: Apache-2.0
#include "model/json_writer.h"

#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace berth::model {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

bool continues(std::string_view text, std::size_t at, unsigned char lowest = 0x80,
               unsigned char highest = 0xBF) {
  if (at >= text.size()) return false;
  const auto byte = static_cast<unsigned char>(text[at]);
  return byte >= lowest && byte <= highest;
}

// Bytes of the well-formed UTF-8 sequence at `at` (Unicode, table 3-7), 0 where there is none.
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  if (lead < 0xE0) return continues(text, at + 1) ? 2 : 0;
  if (lead < 0xF0) {
    const unsigned char lowest = lead == 0xE0 ? 0xA0 : 0x80;
    const unsigned char highest = lead == 0xED ? 0x9F : 0xBF;
    return continues(text, at + 1, lowest, highest) && continues(text, at + 2) ? 3 : 0;
  }
  const unsigned char lowest = lead == 0xF0 ? 0x90 : 0x80;
  const unsigned char highest = lead == 0xF4 ? 0x8F : 0xBF;
  return continues(text, at + 1, lowest, highest) && continues(text, at + 2) && continues(text, at + 3) ? 4
                                                                                                        : 0;
}

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

}  // namespace berth::model
