// SPDX-License-Identifier: Apache-2.0
#include "cli/document.h"

#include "model/json_text.h"

#include <fmt/core.h>

namespace berth::cli {

Outcome<Document> parse_document(const Outcome<std::string>& text, const char* what) {
  if (!text) return tl::unexpected(text.error());
  Document document = model::json_or_discarded(*text);
  if (document.is_discarded() || !document.is_object()) {
    return problem(Exit::failed, fmt::format("the daemon's {} is not a JSON object", what));
  }
  return document;
}

const Document& member(const Document& object, const char* name) {
  static const Document nothing;
  if (!object.is_object()) return nothing;
  const auto found = object.find(name);
  return found == object.end() ? nothing : *found;
}

std::string text_of(const Document& object, const char* name) {
  const Document& value = member(object, name);
  return value.is_string() ? value.get<std::string>() : "";
}

std::optional<double> number_of(const Document& object, const char* name) {
  const Document& value = member(object, name);
  if (!value.is_number()) return std::nullopt;
  return value.get<double>();
}

bool flag_of(const Document& object, const char* name) {
  const Document& value = member(object, name);
  return value.is_boolean() && value.get<bool>();
}

const Document::array_t& list_of(const Document& object, const char* name) {
  static const Document::array_t nothing;
  const Document& value = member(object, name);
  return value.is_array() ? value.get_ref<const Document::array_t&>() : nothing;
}

model::DomainKind shared_domain_of(const Document& status) {
  const bool sockets = text_of(member(status, "interference"), "shared_domain") == "socket";
  return sockets ? model::DomainKind::socket : model::DomainKind::llc;
}

}  // namespace berth::cli
