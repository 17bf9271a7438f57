// SPDX-License-Identifier: Apache-2.0
// One list of fields for each struct. Its reader and its writer follow from the list:
//
//   template <typename Io>
//   void fields(Io& io, Of<Io, Relocation>& relocation) {
//     io.required("workload", relocation.workload, as::name);
//     io.required("lacks", relocation.lacks, as::object);
//   }
//
// The order is that of the document. The verb says when the member must be there, and when it is written:
//
//   required         Read: it must be there. Written: always.
//   optional         Read: an absent one leaves the field's default. Written: always.
//   nullable         Read: an absent or null one does. Written: always, as null for nullopt.
//   if_set           Read: as optional. Written: if the field is set.
//   nullable_if_set  Read: as nullable. Written: if the field is set.
//
// Set is a std::optional or Maybe with a value, a list, map or text with an element, and anything else that
// differs from 0, false or the default that the list gives. The default of a std::optional or Maybe is
// nullopt. The third argument says how the value is written, and within which limits it is read. Only the
// *_json files include this header.
#pragma once

#include "model/json_reader.h"
#include "model/json_writer.h"

#include <array>
#include <cfloat>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace berth::model {

class FieldReader {
 public:
  static constexpr bool kReads = true;

  // Errors go to the value's context. Unknown members become warnings there.
  explicit FieldReader(const JsonValue& value) : object_(value) {}

  void schema(std::string_view expected) { object_.require_schema(expected); }
  void ignore_unknown() { object_.ignore_unknown(); }

  void required(std::string_view name, auto& field, const auto& how) {
    take(object_.required(name), field, how);
  }
  void optional(std::string_view name, auto& field, const auto& how) {
    take_if(object_.optional(name), field, how);
  }
  // Absent: `otherwise`.
  void optional(std::string_view name, auto& field, const auto& how, const auto& otherwise) {
    if (const auto value = object_.optional(name)) {
      take(*value, field, how);
    } else {
      field = otherwise;
    }
  }
  void nullable(std::string_view name, auto& field, const auto& how) {
    take_if(object_.nullable(name), field, how);
  }
  void if_set(std::string_view name, auto& field, const auto& how, const auto&... /*usual*/) {
    take_if(object_.optional(name), field, how);
  }
  void nullable_if_set(std::string_view name, auto& field, const auto& how) {
    take_if(object_.nullable(name), field, how);
  }

  // For what no verb says.
  JsonObject& object() { return object_; }
  bool failed() const { return object_.context().failed(); }
  void fail(std::string_view why) { object_.context().fail(object_.path(), why); }
  // Of a member.
  void fail(std::string_view name, std::string_view why) {
    object_.context().fail(object_.path_of(name), why);
  }

 private:
  static void take(const JsonValue& value, auto& field, const auto& how) {
    if constexpr (requires { field.has_value(), field.emplace(); }) {
      how.read(value, field.emplace());
    } else {
      how.read(value, field);
    }
  }
  static void take_if(const std::optional<JsonValue>& value, auto& field, const auto& how) {
    if (value) {
      take(*value, field, how);
    } else if constexpr (requires { field.has_value(); }) {
      field = std::nullopt;
    }
  }

  JsonObject object_;
};

class FieldWriter {
 public:
  static constexpr bool kReads = false;

  // Writes into an object that is open.
  explicit FieldWriter(JsonWriter& out) : out_(&out) {}

  void schema(std::string_view name) { out_->member("schema", name); }
  void ignore_unknown() {}

  void required(std::string_view name, const auto& field, const auto& how) {
    out_->key(name);
    if constexpr (requires { field.has_value(); }) {
      field.has_value() ? how.write(*out_, *field) : void(out_->null());
    } else {
      how.write(*out_, field);
    }
  }
  void optional(std::string_view name, const auto& field, const auto& how, const auto&... /*otherwise*/) {
    required(name, field, how);
  }
  void nullable(std::string_view name, const auto& field, const auto& how) { required(name, field, how); }
  void if_set(std::string_view name, const auto& field, const auto& how) {
    if (is_set(field)) required(name, field, how);
  }
  void if_set(std::string_view name, const auto& field, const auto& how, const auto& usual) {
    if (field != usual) required(name, field, how);
  }
  void nullable_if_set(std::string_view name, const auto& field, const auto& how) {
    if (is_set(field)) required(name, field, how);
  }

  JsonWriter& out() { return *out_; }

 private:
  template <typename T>
  static bool is_set(const T& field) {
    if constexpr (requires { field.has_value(); }) {
      return field.has_value();
    } else if constexpr (requires { field.empty(); }) {
      return !field.empty();
    } else {
      return field != T();
    }
  }

  JsonWriter* out_;
};

// A struct as `Io` has it: the writer does not change it.
template <typename Io, typename T>
using Of = std::conditional_t<Io::kReads, T, const T>;

// How a value is read into a field and written. Structs of other headers can say it too: AsX.
namespace as {

template <auto get>
struct Value {
  void read(const JsonValue& value, auto& field) const { field = (value.*get)(); }
  void write(JsonWriter& out, const auto& field) const { out.value(field); }
};
inline constexpr Value<&JsonValue::boolean> flag;
inline constexpr Value<&JsonValue::bytes> bytes;
inline constexpr Value<&JsonValue::fraction> fraction;
inline constexpr Value<&JsonValue::text> text;
inline constexpr Value<&JsonValue::line> line;
inline constexpr Value<&JsonValue::name> name;
inline constexpr Value<&JsonValue::cpulist> cpulist;

struct number {
  double lowest = 0;
  double highest = DBL_MAX;

  void read(const JsonValue& value, auto& field) const { field = value.number(lowest, highest); }
  void write(JsonWriter& out, const auto& field) const { out.value(field); }
};
inline constexpr number amount;
inline constexpr number figure{-DBL_MAX, DBL_MAX};
inline constexpr number percent{0, 100};

// Without 0.
struct positive {
  double highest;

  void read(const JsonValue& value, auto& field) const { field = value.positive_number(highest); }
  void write(JsonWriter& out, const auto& field) const { out.value(field); }
};

struct integer {
  std::int64_t lowest;
  std::int64_t highest;

  template <typename T>
  void read(const JsonValue& value, T& field) const {
    field = static_cast<T>(value.integer(lowest, highest));
  }
  void write(JsonWriter& out, int field) const { out.value(field); }
  void write(JsonWriter& out, std::uint64_t field) const { out.value(field); }
  void write(JsonWriter& out, std::uint32_t field) const { out.value(std::uint64_t{field}); }
};
inline constexpr integer count{0, std::int64_t{1} << 53};

// Epoch seconds. The document has them as the wall clock does.
struct Time {
  double lowest = 0;
  double highest = kLastTime_s;

  void read(const JsonValue& value, double& field) const { field = value.number(lowest, highest); }
  void write(JsonWriter& out, double field) const { out.time_value(field); }
};
inline constexpr Time time;
// A forecast, which may be in no calendar.
inline constexpr Time any_time{-DBL_MAX, DBL_MAX};

template <typename T, std::size_t N>
struct Choice {
  const std::array<T, N>& choices;
  const char* (*name_of)(T);

  void read(const JsonValue& value, T& field) const { field = value.choice(choices, name_of); }
  void write(JsonWriter& out, T field) const { out.value(name_of(field)); }
};
template <typename T, std::size_t N>
constexpr Choice<T, N> one_of(const std::array<T, N>& choices, const char* (*name_of)(T)) {
  return {choices, name_of};
}

// Some fields of a struct, in an object of their own: list_of(io, object).
template <typename Fields>
struct Part {
  Fields list_of;

  void read(const JsonValue& value, auto& object) const {
    FieldReader io(value);
    list_of(io, object);
  }
  void write(JsonWriter& out, const auto& object) const {
    out.begin_object();
    FieldWriter io(out);
    list_of(io, object);
    out.end_object();
  }
};
template <typename Fields>
constexpr Part<Fields> part(Fields list_of) {
  return {list_of};
}

// A struct by its list of fields.
inline constexpr auto object = part([](auto& io, auto& it) { fields(io, it); });

// Null stands for the default of a field that has no nullopt.
template <typename How>
struct OrNull {
  How set;

  void read(const JsonValue& value, auto& field) const { set.read(value, field); }
  template <typename T>
  void write(JsonWriter& out, const T& field) const {
    field != T() ? set.write(out, field) : void(out.null());
  }
};
template <typename How>
constexpr OrNull<How> or_null(const How& set) {
  return {set};
}

template <typename How>
struct List {
  How element;

  void read(const JsonValue& value, auto& list) const {
    list.clear();
    value.each([&](const JsonValue& it) { element.read(it, list.emplace_back()); });
  }
  void write(JsonWriter& out, const auto& list) const {
    out.begin_array();
    for (const auto& it : list) element.write(out, it);
    out.end_array();
  }
};
template <typename How>
constexpr List<How> list(const How& element) {
  return {element};
}

// An object whose members are the entries of a map.
template <typename How>
struct ByName {
  How entry;

  void read(const JsonValue& value, auto& map) const {
    map.clear();
    value.each_member([&](const std::string& key, const JsonValue& it) { entry.read(it, map[key]); });
  }
  void write(JsonWriter& out, const auto& map) const {
    out.begin_object();
    for (const auto& [key, it] : map) entry.write(out.key(key), it);
    out.end_object();
  }
};
template <typename How>
constexpr ByName<How> by_name(const How& entry) {
  return {entry};
}

}  // namespace as

// Reads a document by the list of its fields. Unknown members are ignored. Error invalid_input with the JSON
// path.
template <typename T>
Result<T> parse_document(std::string_view text) {
  const auto root = parse_json(text);
  if (!root) return fail(root.error());
  ReadContext context;
  context.ignore_unknown();
  T document;
  as::object.read(JsonValue(context, *root), document);
  if (context.failed()) return fail(*context.error());
  return document;
}

// One line without a trailing newline. `wall_ahead_s` is added to each time (Snapshot::wall_ahead_s).
template <typename T>
std::string document_text(const T& document, double wall_ahead_s = 0) {
  JsonWriter out(wall_ahead_s);
  as::object.write(out, document);
  return out.take();
}

}  // namespace berth::model
