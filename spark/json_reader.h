// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace berth::spark {

// Whether a text has brackets that nest deeper, or more values, than any real answer of a driver. A parsed
// value takes heap memory, and a hostile driver could send a million empty levels.
bool too_deep_or_many(std::string_view text);

// Reads JSON of a program that berth does not trust. A reader reads straight down: the first error sticks,
// and values after it are empty.
class JsonReader {
 public:
  using json = nlohmann::json;

  explicit JsonReader(std::string_view text);

  const json& root() const { return root_; }
  bool failed() const { return !error_.empty(); }
  void fail(std::string_view where, const char* why);
  template <typename T>
  model::Result<T> result(T value) const {
    if (failed()) return model::fail(model::ErrorKind::invalid_input, error_);
    return value;
  }

  // nullptr, and an error, where it is no array.
  const json* array(const json& value, const char* where);
  // Absent or null: `otherwise`, or an error where there is none.
  double number(const json& object, const char* name, double most, std::optional<double> otherwise = {});
  int integer(const json& object, const char* name, std::optional<double> otherwise = {});
  // The integers of an array; none where it is no array.
  std::vector<int> integers(const json& value, const char* where);
  // -1 counts as 0: Spark's way to say that it does not know.
  std::uint64_t bytes(const json& object, const char* name);
  std::string name(const json& object, const char* name);
  // An empty object where it is absent.
  const json& object(const json& outer, const char* name);
  const json* member(const json& object, const char* name);

 private:
  json root_;
  std::string error_;
};

}  // namespace berth::spark
