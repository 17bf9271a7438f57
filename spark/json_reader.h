// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"
#include "model/json.h"
#include "model/name.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace berth::spark {

// Whether a text has brackets that nest deeper, or more values, than any answer of a driver has reason to:
// what is parsed is kept on the heap, and a driver could have us build a million levels of nothing.
bool too_deep_or_many(std::string_view text);

// JSON of a program that is not to be trusted. Reads straight down; the first error sticks, and what is read
// after it is empty.
class JsonReader {
 public:
  using json = nlohmann::json;

  explicit JsonReader(std::string_view text) {
    if (too_deep_or_many(text)) {
      fail("", "is nested too deeply, or of too many values");
      return;
    }
    root_ = json::parse(text, nullptr, false);
    if (root_.is_discarded()) fail("", "is not JSON");
  }

  const json& root() const { return root_; }
  bool failed() const { return !error_.empty(); }
  void fail(const std::string& where, const char* why) {
    if (error_.empty()) error_ = fmt::format("{} {}", where.empty() ? "the answer" : where, why);
  }
  template <typename T>
  model::Result<T> result(T value) const {
    if (failed()) return model::fail(model::ErrorKind::invalid_input, error_);
    return value;
  }

  // nullptr, and an error, where it is not an array.
  const json* array(const json& value, const char* where) {
    if (!failed() && !value.is_array()) fail(where, "is not an array");
    return failed() ? nullptr : &value;
  }
  // Absent or null: `otherwise`, or an error where there is none.
  double number(const json& object, const char* name, double most, std::optional<double> otherwise = {}) {
    const json* value = member(object, name);
    if (value == nullptr && otherwise) return *otherwise;
    if (value == nullptr || !value->is_number()) {
      fail(name, value == nullptr ? "is missing" : "is not a number");
      return 0;
    }
    const auto read = value->get<double>();
    if (!(read >= 0 && read <= most)) fail(name, "is out of range");
    return failed() ? 0 : read;
  }
  int integer(const json& object, const char* name, std::optional<double> otherwise = {}) {
    return static_cast<int>(number(object, name, kMost, otherwise));
  }
  // Of an array; none where it is not one.
  std::vector<int> integers(const json& value, const char* where) {
    std::vector<int> numbers;
    if (array(value, where) == nullptr) return numbers;
    numbers.reserve(value.size());
    for (const json& element : value) {
      const auto number = element.is_number_integer() ? element.get<std::int64_t>() : -1;
      if (number < 0 || number > kMost) {
        fail(where, "holds what is no id");
        return {};
      }
      numbers.push_back(static_cast<int>(number));
    }
    return numbers;
  }
  // -1 counts as 0: Spark's way to say that it does not know.
  std::uint64_t bytes(const json& object, const char* name) {
    const json* value = member(object, name);
    if (value != nullptr && value->is_number() && value->get<double>() < 0) return 0;
    return static_cast<std::uint64_t>(number(object, name, static_cast<double>(model::kMaxBytes), 0));
  }
  std::string name(const json& object, const char* name) {
    const json* value = member(object, name);
    if (value == nullptr || !value->is_string() || !model::is_name(value->get_ref<const std::string&>())) {
      fail(name, "is missing, or no name");
      return "";
    }
    return value->get<std::string>();
  }
  // An empty object where it is absent.
  const json& object(const json& outer, const char* name) {
    static const json kNone = json::object();
    const json* value = member(outer, name);
    if (value == nullptr) return kNone;
    if (!value->is_object()) fail(name, "is not an object");
    return failed() ? kNone : *value;
  }
  const json* member(const json& object, const char* name) {
    if (!object.is_object()) {
      fail("an element", "is not an object");
      return nullptr;
    }
    const auto found = object.find(name);
    return found == object.end() || found->is_null() ? nullptr : &*found;
  }

 private:
  static constexpr int kMost = 1'000'000'000;  // stages, partitions

  json root_;
  std::string error_;
};

}  // namespace berth::spark
