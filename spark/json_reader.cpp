// SPDX-License-Identifier: Apache-2.0
#include "spark/json_reader.h"

#include "model/json.h"
#include "model/json_text.h"
#include "model/name.h"

#include <cstddef>

#include <fmt/core.h>

namespace berth::spark {

namespace {

constexpr int kMost = 1'000'000'000;  // stages, partitions

}  // namespace

bool too_deep_or_many(std::string_view text) {
  constexpr int kMostLevels = 32;
  constexpr std::size_t kMostValues = 500'000;  // some 90 MB once parsed
  std::size_t values = 0;
  int level = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      if (++values > kMostValues) return true;
    } else if (c == '[' || c == '{') {
      if (++values > kMostValues) return true;
      if (++level > kMostLevels) return true;
    } else if (c == ']' || c == '}') {
      --level;
    }
  }
  return false;
}

JsonReader::JsonReader(std::string_view text) {
  if (too_deep_or_many(text)) {
    fail("", "is nested too deeply, or has too many values");
    return;
  }
  root_ = model::json_or_discarded(text);
  if (root_.is_discarded()) fail("", "is not JSON");
}

void JsonReader::fail(std::string_view where, const char* why) {
  if (error_.empty()) error_ = fmt::format("{} {}", where.empty() ? "the answer" : where, why);
}

const nlohmann::json* JsonReader::array(const json& value, const char* where) {
  if (!failed() && !value.is_array()) fail(where, "is not an array");
  return failed() ? nullptr : &value;
}

double JsonReader::number(const json& object, const char* name, double most,
                          std::optional<double> otherwise) {
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

int JsonReader::integer(const json& object, const char* name, std::optional<double> otherwise) {
  return static_cast<int>(number(object, name, kMost, otherwise));
}

std::vector<int> JsonReader::integers(const json& value, const char* where) {
  std::vector<int> numbers;
  if (array(value, where) == nullptr) return numbers;
  numbers.reserve(value.size());
  for (const json& element : value) {
    const auto number = element.is_number_integer() ? element.get<std::int64_t>() : -1;
    if (number < 0 || number > kMost) {
      fail(where, "has an element that is not an id");
      return {};
    }
    numbers.push_back(static_cast<int>(number));
  }
  return numbers;
}

std::uint64_t JsonReader::bytes(const json& object, const char* name) {
  const json* value = member(object, name);
  if (value != nullptr && value->is_number() && value->get<double>() < 0) return 0;
  return static_cast<std::uint64_t>(number(object, name, static_cast<double>(model::kMaxBytes), 0));
}

std::string JsonReader::name(const json& object, const char* name) {
  const json* value = member(object, name);
  if (value == nullptr || !value->is_string() || !model::is_name(value->get_ref<const std::string&>())) {
    fail(name, "is missing, or not a name");
    return "";
  }
  return value->get<std::string>();
}

const nlohmann::json& JsonReader::object(const json& outer, const char* name) {
  static const json kNone = json::object();
  const json* value = member(outer, name);
  if (value == nullptr) return kNone;
  if (!value->is_object()) fail(name, "is not an object");
  return failed() ? kNone : *value;
}

const nlohmann::json* JsonReader::member(const json& object, const char* name) {
  if (!object.is_object()) {
    fail("an element", "is not an object");
    return nullptr;
  }
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

}  // namespace berth::spark
