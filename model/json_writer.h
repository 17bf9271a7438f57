// SPDX-License-Identifier: Apache-2.0
// Writes compact JSON in the order of the calls. So documents keep the order of docs/contract, and the same
// value always gives the same bytes. Only model/json_fields.h includes it.
#pragma once

#include "model/cpu_set.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace berth::model {

class JsonWriter {
 public:
  JsonWriter() = default;
  // `wall_ahead_s` is added to each time that the document has (Snapshot::wall_ahead_s).
  explicit JsonWriter(double wall_ahead_s) : wall_ahead_s_(wall_ahead_s) {}

  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_array();
  JsonWriter& end_array();
  // The name of the member whose value comes next.
  JsonWriter& key(std::string_view name);

  // Bytes that are not UTF-8 become U+FFFD: JSON cannot carry them.
  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(const std::string& text) { return value(std::string_view(text)); }
  // The shortest text that reads back as the same number; null for what is not finite.
  JsonWriter& value(double number);
  JsonWriter& value(float number);
  JsonWriter& value(int number);
  JsonWriter& value(std::uint64_t number);
  JsonWriter& value(bool flag);
  // As a cpulist.
  JsonWriter& value(const CpuSet& cpus);
  JsonWriter& null();
  template <typename T>
  JsonWriter& value(const std::optional<T>& maybe) {
    return maybe ? value(*maybe) : null();
  }

  template <typename T>
  JsonWriter& member(std::string_view name, const T& content) {
    return key(name).value(content);
  }

  // A time in seconds, as the wall clock has it. 0 is an unknown time, and stays so; no time is before 1970.
  JsonWriter& time(std::string_view name, double time_s) { return key(name).time_value(time_s); }
  JsonWriter& time_value(double time_s);

  std::string take() { return std::move(out_); }

 private:
  void separate();

  std::string out_;
  double wall_ahead_s_ = 0;
};

}  // namespace berth::model
