// SPDX-License-Identifier: Apache-2.0
#include "integrations/kubernetes/options.h"
#include "integrations/kubernetes/settings.h"

#include <algorithm>
#include <optional>
#include <sstream>

#include <fmt/core.h>
#include <toml++/toml.h>

namespace berth::kubernetes {

namespace {

using model::ErrorKind;

// As the command line would have the value; nullopt for a value of another type.
std::optional<std::string> text_of(const toml::node& node, Setting::Type type) {
  if (type == Setting::Type::text) return node.value<std::string>();
  if (!node.is_number()) return std::nullopt;
  const auto number = node.value<double>();
  return number ? std::optional(fmt::format("{}", *number)) : std::nullopt;
}

// Returns the reason for refusing the member.
std::optional<std::string> take(Options& options, std::string_view key, const toml::node& node) {
  if (key == "taint" || key == "events") {
    const auto flag = node.value_exact<bool>();
    if (!flag) return "it is neither true nor false";
    (key == "taint" ? options.taint : options.events) = *flag;
    return std::nullopt;
  }
  std::string name(key);
  std::replace(name.begin(), name.end(), '_', '-');
  for (const Setting& setting : known_settings()) {
    if (setting.name != name || key.find('-') != std::string_view::npos) continue;
    const auto value = text_of(node, setting.type);
    if (!value) return setting.type == Setting::Type::text ? "it is no text in quotes" : "it is no number";
    return setting.take(options, *value);
  }
  // The options have these names.
  if (key == "no_taint" || key == "no_events")
    return fmt::format("there is no such setting; write {} = false", key.substr(3));
  return "there is no such setting (berth-kube(8))";
}

// toml++ calls text without quotes an undetermined type.
const char* bare_word_hint(const toml::parse_error& error) {
  const bool untyped = error.description().find("could not determine value type") != std::string_view::npos;
  return untyped ? "; text is written in quotes" : "";
}

}  // namespace

model::Result<void> apply_config(Options& options, const std::string& text, const std::string& name) {
  try {
    const toml::table table = toml::parse(text);
    for (const auto& [key, node] : table) {
      if (const auto why = take(options, key.str(), node)) {
        return model::fail(ErrorKind::invalid_input,
                           fmt::format("{}:{}: {}: {}", name, key.source().begin.line, key.str(), *why));
      }
    }
  } catch (const toml::parse_error& error) {
    return model::fail(ErrorKind::invalid_input, fmt::format("{}:{}: {}{}", name, error.source().begin.line,
                                                             error.description(), bare_word_hint(error)));
  }
  return {};
}

}  // namespace berth::kubernetes
