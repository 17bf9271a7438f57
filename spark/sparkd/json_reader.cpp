// SPDX-License-Identifier: Apache-2.0
#include "spark/sparkd/json_reader.h"

#include "model/json.h"
#include "spark/names.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

namespace berth::spark {

namespace {

using nlohmann::json;

constexpr int kMost = 1'000'000'000;  // stages, partitions

// Whether a part of the text between two of its marks is longer than any real one. The parser would copy it.
bool has_long_token(std::string_view text) {
  bool quoted = false;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (i - begin > JsonReader::kMostTokenBytes) return true;
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"';
      if (!quoted) begin = i;
    } else if (c == '"') {
      quoted = true;
      begin = i;
    } else if (c == ',' || c == ':' || c == '[' || c == ']' || c == '{' || c == '}') {
      begin = i;
    }
  }
  return text.size() > begin + JsonReader::kMostTokenBytes;
}

// Builds what JsonParts keeps of a text, while the text is parsed.
class Picker final : public nlohmann::json_sax<json> {
 public:
  Picker(JsonReader& reader, const JsonParts& parts, const JsonReader::Take& take)
      : reader_(reader), parts_(parts), take_(take) {}

  json& root() { return root_; }

  bool null() override { return place(json()); }
  bool boolean(bool value) override { return place(json(value)); }
  bool number_integer(number_integer_t value) override { return place(json(value)); }
  bool number_unsigned(number_unsigned_t value) override { return place(json(value)); }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return place(json(value)); }
  bool string(string_t& value) override {
    if (!is_wanted()) return true;
    if (value.size() > kMostTextBytes) value.resize(kMostTextBytes);  // still longer than any limit
    return charge(kTextBytes + value.size()) && place(json(std::move(value)));
  }
  bool binary(binary_t& /*value*/) override { return false; }
  bool start_object(std::size_t /*elements*/) override { return open(json::object(), false); }
  bool start_array(std::size_t /*elements*/) override {
    const bool list = open_.empty() ? parts_.lists.count("") > 0
                                    : open_.back().value.is_object() && parts_.lists.count(key_) > 0;
    return open(json::array(), list);
  }
  bool key(string_t& name) override {
    if (skipped_ > 0) return true;
    wanted_ = parts_.members.count(name) > 0 || parts_.lists.count(name) > 0;
    if (wanted_) key_ = name;
    return true;
  }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    reader_.fail("", "is not JSON");
    return false;
  }

 private:
  static constexpr std::size_t kMostTextBytes = 8192;
  static constexpr std::size_t kValueBytes = 2 * sizeof(json);  // an array grows by doubling
  static constexpr std::size_t kTextBytes = 64;                 // a string, and what malloc adds
  static constexpr std::size_t kMemberBytes = 128;              // a node of a map, with its name

  struct Level {
    json value;
    std::string name;  // of the member that it is
    bool list = false;
    std::size_t kept = 0;  // bytes, when it began
  };

  bool is_wanted() const {
    return skipped_ == 0 && (open_.empty() || !open_.back().value.is_object() || wanted_);
  }

  bool charge(std::size_t bytes) {
    kept_ += bytes;
    if (kept_ > JsonReader::kMostElementBytes) reader_.fail("", "has an element that is too large");
    return !reader_.failed();
  }

  bool open(json value, bool list) {
    if (++levels_ > JsonReader::kMostLevels) {
      reader_.fail("", "is nested too deeply");
      return false;
    }
    if (!is_wanted()) {
      ++skipped_;
      return true;
    }
    open_.push_back({.value = std::move(value), .name = key_, .list = list, .kept = kept_});
    return charge(kValueBytes);
  }

  bool close() {
    --levels_;
    if (skipped_ > 0) {
      --skipped_;
      return true;
    }
    Level level = std::move(open_.back());
    open_.pop_back();
    key_ = level.name;
    wanted_ = true;  // it was
    return place(std::move(level.value));
  }

  bool place(json value) {
    if (!is_wanted()) return true;
    if (open_.empty()) {
      root_ = std::move(value);
      return true;
    }
    Level& outer = open_.back();
    if (outer.value.is_object()) {
      outer.value[key_] = std::move(value);
      return charge(kMemberBytes);
    }
    if (!outer.list) {
      outer.value.push_back(std::move(value));
      return charge(kValueBytes);
    }
    take_(open_.size() == 1 ? "" : outer.name, value);
    kept_ = outer.kept;
    return !reader_.failed();
  }

  JsonReader& reader_;
  const JsonParts& parts_;
  const JsonReader::Take& take_;
  std::vector<Level> open_;
  std::string key_;      // of the member that comes next
  bool wanted_ = false;  // that member
  std::size_t levels_ = 0;
  std::size_t skipped_ = 0;  // levels of a value that is passed over
  std::size_t kept_ = 0;     // bytes of the values in open_
  json root_;
};

}  // namespace

void JsonReader::read(std::string_view text, const JsonParts& parts, const Take& take) {
  if (has_long_token(text)) {
    fail("", "has a part that is too long");
    return;
  }
  Picker picker(*this, parts, take);
  const bool parsed = json::sax_parse(text.begin(), text.end(), &picker);
  if (!parsed) fail("", "is not JSON");
  if (!failed()) root_ = std::move(picker.root());
}

void JsonReader::fail(std::string_view where, const char* why) {
  if (error_.empty()) error_ = fmt::format("{} {}", where.empty() ? "the answer" : where, why);
}

const nlohmann::json* JsonReader::array(const json& value, const char* where) {
  if (!failed() && !value.is_array()) fail(where, "is not an array");
  return failed() ? nullptr : &value;
}

std::optional<double> JsonReader::figure(const json& object, const char* name, double most) {
  const json* value = member(object, name);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  const auto read = value->get<double>();
  return read >= 0 ? std::optional(std::min(read, most)) : std::nullopt;
}

std::optional<int> JsonReader::count(const json& object, const char* name) {
  const auto read = figure(object, name, kMost);
  return read ? std::optional(static_cast<int>(*read)) : std::nullopt;
}

int JsonReader::integer(const json& object, const char* name, std::optional<double> otherwise) {
  const json* value = member(object, name);
  if (value == nullptr && otherwise) return static_cast<int>(*otherwise);
  if (value == nullptr || !value->is_number()) {
    fail(name, value == nullptr ? "is missing" : "is not a number");
    return 0;
  }
  const auto read = value->get<double>();
  if (!(read >= 0 && read <= kMost)) fail(name, "is out of range");
  return failed() ? 0 : static_cast<int>(read);
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
  return static_cast<std::uint64_t>(figure(object, name, static_cast<double>(model::kMaxBytes)).value_or(0));
}

std::string JsonReader::name(const json& object, const char* name) {
  const json* value = member(object, name);
  if (value == nullptr || !value->is_string() || !is_name(value->get_ref<const std::string&>())) {
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
