// SPDX-License-Identifier: Apache-2.0
#include "model/json_reader.h"

#include "model/json.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

namespace berth::model {

namespace {

using nlohmann::json;

constexpr std::size_t kMaxListedWarnings = 100;

bool is_plain_name(std::string_view name) {
  constexpr std::size_t kLongest = 64;
  if (name.empty() || name.size() > kLongest) return false;
  for (const char c : name)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-'))
      return false;
  return true;
}

void append_member(std::string& path, std::string_view name) {
  if (is_plain_name(name))
    path.append(".").append(name);
  else
    path += fmt::format("[{}]", in_quotes(name));
}

const char* type_of(const json& value) {
  switch (value.type()) {
    case json::value_t::null:
      return "null";
    case json::value_t::object:
      return "an object";
    case json::value_t::array:
      return "an array";
    case json::value_t::string:
      return "a string";
    case json::value_t::boolean:
      return "a boolean";
    default:
      return "a number";
  }
}

// Line and column (from 1) of the last of the `read` first characters.
std::string position_of(std::string_view text, std::size_t read) {
  std::size_t line = 1;
  std::size_t column = 1;
  for (const char c : text.substr(0, read == 0 ? 0 : read - 1)) {
    line += c == '\n' ? 1 : 0;
    column = c == '\n' ? 1 : column + 1;
  }
  return fmt::format("line {}, column {}", line, column);
}

// Builds the value while the parser reads, and stops it at the first fault. The library's own builder keeps
// the last of two equal members, and its errors know no path.
class Builder : public nlohmann::json_sax<json> {
 public:
  Builder(std::string_view text, std::size_t most_values) : text_(text), most_values_(most_values) {}

  json root;
  std::optional<Error> error;

  bool null() override { return put(nullptr) != nullptr; }
  bool boolean(bool value) override { return put(value) != nullptr; }
  bool number_integer(number_integer_t value) override { return put(value) != nullptr; }
  bool number_unsigned(number_unsigned_t value) override { return put(value) != nullptr; }
  bool number_float(number_float_t value, const string_t&) override { return put(value) != nullptr; }
  bool string(string_t& value) override { return put(std::move(value)) != nullptr; }
  bool binary(binary_t&) override { return refuse("binary data"); }
  bool start_object(std::size_t) override { return open(json::object()); }
  bool start_array(std::size_t) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    Frame& frame = stack_.back();
    const auto [member, fresh] = frame.container->emplace(std::move(name), nullptr);
    frame.slot = &*member;
    frame.name = &member.key();
    return fresh || refuse("given twice");
  }

  bool parse_error(std::size_t position, const std::string&, const json::exception& exception) override {
    std::string_view why = exception.what();
    // "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error ..."
    if (const auto tag = why.find("] "); tag != std::string_view::npos) why.remove_prefix(tag + 2);
    if (why.starts_with("parse error at"))
      if (const auto colon = why.find(": "); colon != std::string_view::npos) why.remove_prefix(colon + 2);
    const std::size_t read = std::min(position, text_.size());
    const char last = read == 0 ? '\0' : text_[read - 1];
    const char* hint = last == 'N' || last == 'I' ? " (JSON has no NaN and no Infinity)" : "";
    return refuse(fmt::format("{}: {}{}", position_of(text_, read), printable(why), hint));
  }

 private:
  struct Frame {
    json* container;
    json* slot = nullptr;  // of the member being read
    const std::string* name = nullptr;
  };

  static std::string printable(std::string_view text) {
    constexpr std::size_t kLongest = 160;
    std::string out;
    for (const char c : text.substr(0, kLongest)) out += (c >= ' ' && c <= '~') ? c : '?';
    if (text.size() > kLongest) out += "...";
    return out;
  }

  std::string path() const {
    std::string path = "$";
    for (const Frame& frame : stack_) {
      if (frame.container->is_object()) {
        if (frame.slot != nullptr) append_member(path, *frame.name);
      } else {
        // A container that is open is the array's last element already; anything else is still to come.
        const bool inside = &frame != &stack_.back();
        path += fmt::format("[{}]", frame.container->size() - (inside ? 1 : 0));
      }
    }
    return path;
  }

  bool refuse(std::string_view why) {
    error = Error(ErrorKind::invalid_input, fmt::format("{}: {}", path(), why));
    return false;
  }

  json* put(json value) {
    if (++values_ > most_values_) {
      refuse(fmt::format("the document holds more than {} values", most_values_));
      return nullptr;
    }
    if (stack_.empty()) {
      root = std::move(value);
      return &root;
    }
    Frame& frame = stack_.back();
    if (frame.container->is_array()) {
      frame.container->push_back(std::move(value));
      return &frame.container->back();
    }
    *frame.slot = std::move(value);
    return frame.slot;
  }

  bool open(json container) {
    if (stack_.size() >= static_cast<std::size_t>(kMaxJsonDepth))
      return refuse(fmt::format("nested deeper than {} levels", kMaxJsonDepth));
    json* opened = put(std::move(container));
    if (opened == nullptr) return false;
    stack_.push_back({opened, nullptr, nullptr});
    return true;
  }

  bool close() {
    stack_.pop_back();
    if (!stack_.empty()) stack_.back().slot = nullptr;
    return true;
  }

  std::string_view text_;
  std::size_t most_values_;
  std::vector<Frame> stack_;
  std::size_t values_ = 0;
};

}  // namespace

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  std::string out =
      json(std::string(text.substr(0, kLongest))).dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > kLongest) out += "...";
  return out;
}

Result<json> parse_json(std::string_view text, std::size_t most_values) {
  if (text.size() > kMaxDocumentBytes)
    return fail(ErrorKind::invalid_input,
                fmt::format("$: the document has {} bytes, more than the {} accepted", text.size(),
                            kMaxDocumentBytes));
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
    return fail(ErrorKind::invalid_input, "$: the document is empty");
  Builder builder(text, most_values);
  try {
    if (json::sax_parse(text, &builder)) return std::move(builder.root);
  } catch (const std::exception& exception) {
    return fail(ErrorKind::invalid_input, fmt::format("$: {}", exception.what()));
  }
  return fail(builder.error.value_or(Error(ErrorKind::invalid_input, "$: not a JSON document")));
}

void ReadContext::fail(const std::string& path, std::string_view why) {
  if (!error_) error_ = Error(ErrorKind::invalid_input, fmt::format("{}: {}", path, why));
}

void ReadContext::warn(const std::string& path, std::string_view what) {
  if (warnings_.size() < kMaxListedWarnings)
    warnings_.push_back(fmt::format("{}: {}", path, what));
  else
    ++unlisted_;
}

std::vector<std::string> ReadContext::take_warnings() {
  if (unlisted_ > 0) warnings_.push_back(fmt::format("and {} more warnings", unlisted_));
  unlisted_ = 0;
  return std::move(warnings_);
}

std::string JsonValue::path() const {
  if (parent_ == nullptr) return "$";
  std::string path = parent_->path();
  if (parent_->value_ != nullptr && parent_->value_->is_array())
    path += fmt::format("[{}]", index_);
  else
    append_member(path, name_);
  return path;
}

const json* JsonValue::expect(bool (json::*has_type)() const noexcept, std::string_view type) const {
  if (context_->failed() || value_ == nullptr) return nullptr;
  if ((value_->*has_type)()) return value_;
  fail(fmt::format("expected {}, found {}", type, type_of(*value_)));
  return nullptr;
}

void JsonValue::expect_one_of(const std::string& names) const {
  fail(fmt::format("expected one of {}, found {}", names, in_quotes(text())));
}

bool JsonValue::is_null() const { return value_ != nullptr && value_->is_null(); }

bool JsonValue::boolean() const {
  const json* value = expect(&json::is_boolean, "true or false");
  return value != nullptr && value->get<bool>();
}

double JsonValue::number(double lowest, double highest) const {
  const json* given = expect(&json::is_number, "a number");
  if (given == nullptr) return 0;
  const auto value = given->get<double>();
  if (value >= lowest && value <= highest) return value;
  fail(fmt::format("{} is not between {} and {}", value, lowest, highest));
  return 0;
}

double JsonValue::positive_number(double highest) const {
  const double value = number(0, highest);
  if (value <= 0 && !context_->failed() && value_ != nullptr) fail("0 is not a positive number");
  return value;
}

std::int64_t JsonValue::integer(std::int64_t lowest, std::int64_t highest) const {
  const json* given = expect(&json::is_number, "an integer");
  if (given == nullptr) return 0;
  if (given->is_number_float()) {
    // Doubles are exact integers up to 2^53.
    constexpr double kExact = 9007199254740992.0;
    const auto value = given->get<double>();
    if (value != std::floor(value)) {
      fail(fmt::format("expected an integer, found {}", value));
      return 0;
    }
    if (std::abs(value) <= kExact && value >= static_cast<double>(lowest) &&
        value <= static_cast<double>(highest))
      return static_cast<std::int64_t>(value);
    fail(fmt::format("{} is not between {} and {}", value, lowest, highest));
    return 0;
  }
  if (given->is_number_unsigned()) {
    const auto value = given->get<std::uint64_t>();
    if (highest >= 0 && value <= static_cast<std::uint64_t>(highest) &&
        (lowest < 0 || value >= static_cast<std::uint64_t>(lowest)))
      return static_cast<std::int64_t>(value);
    fail(fmt::format("{} is not between {} and {}", value, lowest, highest));
    return 0;
  }
  const auto value = given->get<std::int64_t>();
  if (value >= lowest && value <= highest) return value;
  fail(fmt::format("{} is not between {} and {}", value, lowest, highest));
  return 0;
}

std::uint64_t JsonValue::bytes() const {
  return static_cast<std::uint64_t>(integer(0, static_cast<std::int64_t>(kMaxBytes)));
}

std::string JsonValue::text() const {
  const json* given = expect(&json::is_string, "a string");
  if (given == nullptr) return {};
  const auto& value = given->get_ref<const std::string&>();
  if (value.size() <= kMaxTextBytes) return value;
  fail(fmt::format("{} bytes of text, more than the {} accepted", value.size(), kMaxTextBytes));
  return {};
}

std::string JsonValue::line() const {
  std::string value = text();
  if (value.size() > kMaxNameBytes) {
    fail(fmt::format("{} bytes, more than the {} accepted", value.size(), kMaxNameBytes));
    return {};
  }
  for (const char c : value)
    if ((c >= '\0' && c < ' ') || c == '\x7f')
      fail(fmt::format("{} holds a control character", in_quotes(value)));
  return value;
}

std::string JsonValue::name() const {
  std::string value = line();
  if (value.empty() && value_ != nullptr) fail("is empty");
  return value;
}

CpuSet JsonValue::cpulist() const {
  const std::string value = text();
  if (context_->failed()) return {};
  auto set = CpuSet::parse(value);
  if (set) return *std::move(set);
  fail(set.error().message());
  return {};
}

JsonObject::JsonObject(const JsonValue& value) : value_(value) {
  value_.expect(&json::is_object, "an object");
}

JsonObject::~JsonObject() {
  if (ignore_unknown_ || context().ignores_unknown() || context().failed() || value_.value_ == nullptr)
    return;
  if (found_count_ == value_.value_->size()) return;
  try {
    warn_of_unknown();
  } catch (const std::exception&) {
    // Out of memory for a warning. The document is still good, and a destructor cannot report.
    return;
  }
}

void JsonObject::warn_of_unknown() const {
  const auto* begin = asked_.data();
  const auto* end = begin + asked_count_;
  for (const auto& [member, ignored] : value_.value_->get_ref<const json::object_t&>())
    if (std::find(begin, end, member) == end) context().warn(path_of(member), "unknown member, ignored");
}

const json* JsonObject::find(std::string_view name) {
  if (asked_count_ < asked_.size()) asked_[asked_count_++] = name;
  if (value_.value_ == nullptr || !value_.value_->is_object()) return nullptr;
  const auto found = value_.value_->find(name);
  if (found == value_.value_->end()) return nullptr;
  ++found_count_;
  return &*found;
}

JsonValue JsonObject::required(std::string_view name) {
  const json* found = find(name);
  if (found == nullptr) context().fail(path_of(name), "missing");
  return JsonValue(value_, found, name, 0);
}

std::optional<JsonValue> JsonObject::optional(std::string_view name) {
  const json* found = find(name);
  if (found == nullptr) return std::nullopt;
  return JsonValue(value_, found, name, 0);
}

std::optional<JsonValue> JsonObject::nullable(std::string_view name) {
  const json* found = find(name);
  if (found == nullptr || found->is_null()) return std::nullopt;
  return JsonValue(value_, found, name, 0);
}

namespace {

// Advice on a document of another version, or of another kind of berth's; "" for any other text.
const char* remedy(std::string_view expected, std::string_view given) {
  const auto kind = [](std::string_view schema) { return schema.substr(0, schema.find('/')); };
  if (kind(expected) == kind(given))
    return "; another version of berth wrote it: use the berthctl of that host";
  return given.starts_with("berth.") ? "; this is another document of berth" : "";
}

}  // namespace

void JsonObject::require_schema(std::string_view expected) {
  const auto given = optional("schema");
  if (context().failed()) return;
  if (!given) {
    context().fail(path_of("schema"), fmt::format("missing; expected {}", in_quotes(expected)));
    return;
  }
  const std::string value = given->text();
  if (!context().failed() && value != expected)
    given->fail(fmt::format("expected {}, found {}{}", in_quotes(expected), in_quotes(value),
                            remedy(expected, value)));
}

std::string JsonObject::path_of(std::string_view name) const {
  std::string path = value_.path();
  append_member(path, name);
  return path;
}

}  // namespace berth::model
