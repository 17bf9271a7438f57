// SPDX-License-Identifier: Apache-2.0
// A cursor over a parsed JSON document that knows its path. Only *_json.cpp files include it, here and in the
// integrations.
//
// The first error sticks in the ReadContext. From then on every accessor returns its type's default. So a
// reader reads straight down and looks at the context once, at the end.
#pragma once

#include "model/bounds.h"
#include "model/cpu_set.h"
#include "model/error.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace berth::model {

// A document with more values than this is refused: parsed, it would take gigabytes.
inline constexpr std::size_t kMaxJsonValues = 10'000'000;

// Parses UTF-8 text within the limits kMaxDocumentBytes, kMaxJsonDepth and `most_values`. No member may
// occur twice in one object, and nothing may follow the document. Error invalid_input with JSON path, line
// and column.
Result<nlohmann::json> parse_json(std::string_view text, std::size_t most_values = kMaxJsonValues);

// `text` as an ASCII JSON string cut to a readable length, for one-line messages.
std::string in_quotes(std::string_view text);

class ReadContext {
 public:
  // Keeps the first.
  void fail(const std::string& path, std::string_view why);
  void warn(const std::string& path, std::string_view what);
  bool failed() const { return error_.has_value(); }
  const std::optional<Error>& error() const { return error_; }
  // Members that no reader asks for are fine in the whole document.
  void ignore_unknown() { ignore_unknown_ = true; }
  bool ignores_unknown() const { return ignore_unknown_; }
  // At most 100, then one that counts the rest.
  std::vector<std::string> take_warnings();

 private:
  std::optional<Error> error_;
  std::vector<std::string> warnings_;
  std::size_t unlisted_ = 0;
  bool ignore_unknown_ = false;
};

// One value and where it stands. Refers to its parent: a child must not outlive it.
class JsonValue {
 public:
  JsonValue(ReadContext& context, const nlohmann::json& root) : context_(&context), value_(&root) {}

  // "$.workloads[3].cpus"
  std::string path() const;
  void fail(std::string_view why) const { context_->fail(path(), why); }
  ReadContext& context() const { return *context_; }

  bool is_null() const;
  bool boolean() const;
  // Finite, lowest..highest, both included.
  double number(double lowest, double highest) const;
  // 0..highest without 0.
  double positive_number(double highest) const;
  // 4 and 4.0 are integers, 4.5 is not.
  std::int64_t integer(std::int64_t lowest, std::int64_t highest) const;
  int small_integer(int lowest, int highest) const { return static_cast<int>(integer(lowest, highest)); }
  // Epoch seconds, up to the year 9999, so that milliseconds are noticed.
  double epoch() const { return number(0, kLastTime_s); }
  double fraction() const { return number(0, 1); }
  // 0..kMaxBytes.
  std::uint64_t bytes() const;
  // At most kMaxTextBytes bytes.
  std::string text() const;
  // At most kMaxNameBytes, without control characters.
  std::string line() const;
  // A line that is not empty.
  std::string name() const;
  CpuSet cpulist() const;
  // One of `choices`, each a {value, name} pair.
  template <typename T, std::size_t N>
  T choice(const std::array<T, N>& choices, const char* (*name_of)(T)) const;

  // Calls visit(element) for each element of an array, until something failed.
  template <typename Visit>
  void each(Visit visit) const;
  // Calls visit(name, value) for each member of an object until something failed. The names are data.
  template <typename Visit>
  void each_member(Visit visit) const;

 private:
  friend class JsonObject;
  JsonValue(const JsonValue& parent, const nlohmann::json* value, std::string_view name, std::size_t index)
      : context_(parent.context_), value_(value), parent_(&parent), name_(name), index_(index) {}
  // Returns the value where it has the type. Else reports an error and returns nullptr. After an earlier
  // error it returns nullptr without a report.
  const nlohmann::json* expect(bool (nlohmann::json::*has_type)() const noexcept,
                               std::string_view type) const;
  void expect_one_of(const std::string& names) const;

  ReadContext* context_;
  const nlohmann::json* value_;  // nullptr: a required member that is missing, already reported
  const JsonValue* parent_ = nullptr;
  std::string_view name_;  // of a member
  std::size_t index_ = 0;  // of an element
};

// An object whose member names are known. Members never asked for become warnings when it is destroyed.
class JsonObject {
 public:
  explicit JsonObject(const JsonValue& value);
  ~JsonObject();
  JsonObject(const JsonObject&) = delete;
  JsonObject& operator=(const JsonObject&) = delete;

  // `name` must outlive the object and be asked for once.
  JsonValue required(std::string_view name);
  // nullopt where absent; null is a value of the wrong type.
  std::optional<JsonValue> optional(std::string_view name);
  // nullopt where absent or null.
  std::optional<JsonValue> nullable(std::string_view name);
  // Asks for "schema" and fails unless it is `expected`.
  void require_schema(std::string_view expected);
  // Members not asked for are fine here.
  void ignore_unknown() { ignore_unknown_ = true; }
  std::string path() const { return value_.path(); }
  std::string path_of(std::string_view name) const;
  ReadContext& context() const { return value_.context(); }

 private:
  const nlohmann::json* find(std::string_view name);
  void warn_of_unknown() const;

  JsonValue value_;
  std::array<std::string_view, 64> asked_;
  std::size_t asked_count_ = 0;
  std::size_t found_count_ = 0;
  bool ignore_unknown_ = false;
};

template <typename T, std::size_t N>
T JsonValue::choice(const std::array<T, N>& choices, const char* (*name_of)(T)) const {
  const std::string given = text();
  if (context_->failed()) return choices[0];
  std::string names;
  for (const T candidate : choices) {
    if (given == name_of(candidate)) return candidate;
    names += names.empty() ? "" : ", ";
    names += name_of(candidate);
  }
  expect_one_of(names);
  return choices[0];
}

template <typename Visit>
void JsonValue::each(Visit visit) const {
  const nlohmann::json* array = expect(&nlohmann::json::is_array, "an array");
  if (array == nullptr) return;
  std::size_t index = 0;
  for (const nlohmann::json& element : *array) {
    if (context_->failed()) return;
    visit(JsonValue(*this, &element, {}, index++));
  }
}

template <typename Visit>
void JsonValue::each_member(Visit visit) const {
  const nlohmann::json* object = expect(&nlohmann::json::is_object, "an object");
  if (object == nullptr) return;
  for (const auto& [member, value] : object->get_ref<const nlohmann::json::object_t&>()) {
    if (context_->failed()) return;
    visit(member, JsonValue(*this, &value, member, 0));
  }
}

}  // namespace berth::model
