// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace berth::spark {

// The parts of a JSON text that are kept while it is read. All others are passed over, and take no memory.
struct JsonParts {
  // Names of members, at any level.
  std::set<std::string_view> members;
  // Names of members that are lists. Each element is handed over as soon as it is complete, and is then
  // forgotten. "" is the text's own list.
  std::set<std::string_view> lists;
};

// Reads JSON of a program that berth does not trust. A reader reads straight down: the first error sticks,
// and values after it are empty.
//
// A hostile text can have a million levels, or a single text of megabytes. So the reader takes at most
// kMostLevels, kMostTokenBytes, and kMostElementBytes of memory for one element with its parts.
class JsonReader {  // NOLINT(bugprone-exception-escape): no move of a document throws
 public:
  using json = nlohmann::json;
  using Take = std::function<void(const std::string& list, const json& element)>;

  static constexpr std::size_t kMostLevels = 32;
  static constexpr std::size_t kMostTokenBytes = std::size_t{1} << 20;
  static constexpr std::size_t kMostElementBytes = std::size_t{1} << 20;

  // Hands the elements of lists to `take`, inner ones first. root() is the rest: lists are empty there.
  // Reading stops at the first error, which `take` may report, too.
  void read(std::string_view text, const JsonParts& parts, const Take& take);

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
  // A clock, a count or an amount: never an error. nullopt where it is absent, no number, or negative, as
  // after a step of a clock; `most` where it is more.
  std::optional<double> figure(const json& object, const char* name, double most);
  // The same of a count.
  std::optional<int> count(const json& object, const char* name);
  // An id. Absent or null: `otherwise`, or an error where there is none.
  int integer(const json& object, const char* name, std::optional<double> otherwise = {});
  // The integers of an array; none where it is no array.
  std::vector<int> integers(const json& value, const char* where);
  // The figure, or 0: Spark says -1 where it does not know.
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
