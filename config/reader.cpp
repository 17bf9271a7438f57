// SPDX-License-Identifier: Apache-2.0
#include "config/reader.h"

#include "config/keys.h"
#include "config/wording.h"
#include "model/text.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace berth::config {
namespace {

using model::ErrorKind;
using model::fail;

// Dotted keys nest tables, which toml++ walks recursively: a line of many thousand dots would exhaust the
// stack. No setting is deeper than three, and no path in a rule needs as many.
constexpr std::ptrdiff_t kMostDotsPerLine = 64;

struct Complaint {
  toml::source_position at;
  std::string text;
};

// One walk over a document: its position, and its faults.
struct Reading {
  Settings& settings;
  const std::string& name;
  std::vector<Complaint> complaints;
  std::set<std::string> given;  // present names of settings

  void complain(const toml::source_position& at, std::string text) {
    complaints.push_back({at, std::move(text)});
  }
};

std::string positioned(const std::string& name, const toml::source_position& at, std::string_view text) {
  return fmt::format("{}:{}:{}: {}", name, at.line, at.column, text);
}

std::string described(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return node.is_array_of_tables() ? "an array of tables" : "an array";
    case toml::node_type::string:
      return quote(node.as_string()->get());
    case toml::node_type::integer:
      return fmt::format("{}", node.as_integer()->get());
    case toml::node_type::floating_point:
      return fmt::format("{}", node.as_floating_point()->get());
    case toml::node_type::boolean:
      return node.as_boolean()->get() ? "true" : "false";
    default:
      return "a date or time";
  }
}

template <typename Target>
std::optional<std::string> refusal_of(const KeySpec<Target>& spec, Target& target, const toml::node& node) {
  const auto hint = spec.set(target, node);
  if (!hint) return std::nullopt;
  // Free text or a table of the right type: its own fault is a better message than the wanted type.
  const bool free_text = spec.key.type == "string" && spec.choices.empty();
  if ((free_text || spec.key.type == "table") && !hint->empty()) {
    return fmt::format("{}: {}", spec.key.name, on_one_line(*hint));
  }
  return fmt::format("{} wants {}, got {}{}{}", spec.key.name, taken_by(spec.key, spec.choices),
                     described(node), hint->empty() ? "" : "; ", on_one_line(*hint));
}

// The valid names in the table `prefix` ("" is the top): keys and tables.
std::vector<std::string> names_below(const std::string& prefix) {
  std::vector<std::string> names;
  const auto start = prefix.empty() ? 0 : prefix.size() + 1;
  for (const auto& key : known_keys()) {
    if (!prefix.empty() && !key.name.starts_with(prefix + ".")) continue;
    auto name = key.name.substr(start, key.name.find('.', start) - start);
    if (names.empty() || names.back() != name) names.push_back(std::move(name));
  }
  if (prefix.empty()) names.emplace_back("workload");
  return names;
}

bool is_table_name(const std::string& name) {
  return std::any_of(known_keys().begin(), known_keys().end(),
                     [&](const Key& key) { return key.name.starts_with(name + "."); });
}

std::string in_table(const std::string& prefix) {
  return prefix.empty() ? "at the top level" : "in [" + prefix + "]";
}

// TOML ends no table but by the next one, so a key of the top level that follows a table is read as one of
// it.
constexpr const char* kBelongsAtTop = "; it belongs at the top level, before the first [table]";

bool is_known_at_top(std::string_view key) { return find_spec(setting_specs(), key) != nullptr; }

std::string unknown_key(const std::string& prefix, std::string_view key) {
  auto text = fmt::format("unknown key {} {}", quote(key), in_table(prefix));
  if (!prefix.empty() && is_known_at_top(key)) return text + kBelongsAtTop;
  const auto names = names_below(prefix);
  const auto meant = closest(key, names);
  if (meant.empty() && prefix == "spark") {
    const auto moved = closest(key, names_below("eviction"));
    if (!moved.empty()) return text + "; did you mean " + quote(moved) + " in [eviction]?";
  }
  if (!meant.empty()) return text + "; did you mean " + quote(meant) + "?";
  for (const auto& known : known_keys()) {
    const auto dot = known.name.rfind('.');
    if (dot != std::string::npos && std::string_view(known.name).substr(dot + 1) == key) {
      return text + fmt::format("; it belongs in [{}]", known.name.substr(0, dot));
    }
  }
  return text + "; known there: " + listed(names);
}

void note_gone(Reading& reading, const std::string& name, const char* why, const toml::source_position& at) {
  reading.settings.warnings.push_back(positioned(reading.name, at, fmt::format("{} {}", name, why)));
}

void read_rule(Reading& reading, const toml::table& table) {
  model::WorkloadRule rule;
  rule.origin = fmt::format("{}:{}", reading.name, table.source().begin.line);
  for (const auto& [key, node] : table) {
    const auto* spec = find_spec(workload_specs(), key.str());
    if (spec != nullptr) {
      if (auto error = refusal_of(*spec, rule, node))
        reading.complain(node.source().begin, std::move(*error));
      continue;
    }
    if (const char* why = why_gone("workload." + std::string(key.str()))) {
      note_gone(reading, std::string(key.str()), why, key.source().begin);
      continue;
    }
    if (is_known_at_top(key.str())) {
      reading.complain(key.source().begin,
                       fmt::format("unknown key {} in [[workload]]{}", quote(key.str()), kBelongsAtTop));
      continue;
    }
    std::vector<std::string> names;
    for (const auto& known : known_workload_keys()) names.push_back(known.name);
    const auto meant = closest(key.str(), names);
    reading.complain(key.source().begin, fmt::format("unknown key {} in [[workload]]; {}", quote(key.str()),
                                                     meant.empty() ? "known there: " + listed(names)
                                                                   : "did you mean " + quote(meant) + "?"));
  }
  if (!table.contains("match")) {
    reading.complain(table.source().begin, "[[workload]] without match: say which cgroups it is about");
  }
  reading.settings.rules.push_back(std::move(rule));
}

void read_rules(Reading& reading, const toml::node& node) {
  const auto* tables = node.as_array();
  if (tables == nullptr) {
    reading.complain(node.source().begin,
                     fmt::format("workload is written [[workload]], once per rule; got {}", described(node)));
    return;
  }
  for (const auto& element : *tables) {
    if (const auto* table = element.as_table()) {
      read_rule(reading, *table);
    } else {
      reading.complain(
          element.source().begin,
          fmt::format("workload wants tables, written [[workload]], got {}", described(element)));
    }
  }
}

std::string former_name(const std::string& name, const std::string& present) {
  return fmt::format("{} is the former name of {}; the next release refuses it", name, present);
}

void note_name(Reading& reading, const std::string& name, const std::string& present,
               const toml::source_position& at) {
  if (!reading.given.insert(present).second) {
    reading.complain(at,
                     fmt::format("{} is given twice, once by a former name; leave that one out", present));
  } else if (name != present) {
    reading.settings.warnings.push_back(
        positioned(reading.name, at,
                   fmt::format("{} is the former name of {}; the next release refuses it", name, present)));
  }
}

void read_table(Reading& reading, const toml::table& table, const std::string& prefix) {
  for (const auto& [key, node] : table) {
    const auto name = prefix.empty() ? std::string(key.str()) : prefix + "." + std::string(key.str());
    if (name == "workload") {
      read_rules(reading, node);
    } else if (const auto* spec = find_spec(setting_specs(), present_name(name))) {
      note_name(reading, name, spec->key.name, key.source().begin);
      if (auto error = refusal_of(*spec, reading.settings, node)) {
        reading.complain(node.source().begin, std::move(*error));
      }
    } else if (const char* why = why_gone(name)) {
      note_gone(reading, name, why, key.source().begin);
    } else if (!is_table_name(name)) {
      reading.complain(key.source().begin, unknown_key(prefix, key.str()));
    } else if (const auto* below = node.as_table()) {
      read_table(reading, *below, name);
    } else {
      reading.complain(node.source().begin,
                       fmt::format("{} is a table, written [{}] once; got {}", name, name, described(node)));
    }
  }
}

std::optional<std::string> too_deep(std::string_view text, const std::string& name) {
  std::size_t line = 1;
  while (!text.empty()) {
    const auto row = model::take_line(text);
    const bool comment = model::trimmed_start(row, model::kBlanks).starts_with('#');
    if (!comment && std::count(row.begin(), row.end(), '.') > kMostDotsPerLine) {
      return fmt::format("{}:{}:1: more than {} dots in one line; keys are not nested as deep", name, line,
                         kMostDotsPerLine);
    }
    ++line;
  }
  return std::nullopt;
}

// The most common mistake; toml++ calls it an undetermined type.
std::string bare_word_hint(const toml::parse_error& error) {
  const bool untyped = error.description().find("could not determine value type") != std::string_view::npos;
  return untyped ? "; text is written in quotes" : "";
}

bool comes_before(const Complaint& a, const Complaint& b) {
  return std::pair(a.at.line, a.at.column) < std::pair(b.at.line, b.at.column);
}

}  // namespace

model::Result<void> apply_document(Settings& settings, std::string_view text, const std::string& name) {
  if (auto error = too_deep(text, name)) return fail(ErrorKind::invalid_input, std::move(*error));
  Reading reading{settings, name, {}, {}};
  try {
    read_table(reading, toml::parse(text), "");
  } catch (const toml::parse_error& error) {
    return fail(
        ErrorKind::invalid_input,
        positioned(name, error.source().begin, on_one_line(error.description()) + bare_word_hint(error)));
  } catch (const std::exception& error) {
    return fail(ErrorKind::invalid_input, fmt::format("{}: {}", name, on_one_line(error.what())));
  }
  if (reading.complaints.empty()) return {};
  const auto& complaints = reading.complaints;
  const auto first = std::min_element(complaints.begin(), complaints.end(), comes_before);
  auto message = positioned(name, first->at, first->text);
  if (complaints.size() > 1) message += fmt::format(" (and {} more)", complaints.size() - 1);
  return fail(ErrorKind::invalid_input, std::move(message));
}

model::Result<void> override_setting(Settings& settings, std::string_view assignment) {
  const auto equals = assignment.find('=');
  const auto trimmed = [](std::string_view text) { return model::trimmed(text, model::kBlanks); };
  if (equals == std::string_view::npos || trimmed(assignment.substr(0, equals)).empty()) {
    return fail(ErrorKind::invalid_input,
                quote(assignment) + " is not of the form KEY=VALUE, such as interference.weighting=request");
  }
  const std::string name(trimmed(assignment.substr(0, equals)));
  const std::string value(trimmed(assignment.substr(equals + 1)));
  const auto* spec = find_spec(setting_specs(), present_name(name));
  if (const char* why = why_gone(name)) {
    settings.warnings.push_back(fmt::format("{} {}", name, why));
    return {};
  }
  if (spec == nullptr) {
    std::vector<std::string> names;
    for (const auto& key : known_keys()) names.push_back(key.name);
    const auto meant = closest(name, names);
    auto message = "unknown setting " + quote(name);
    if (name == "workload" || name.starts_with("workload.")) {
      message += "; [[workload]] rules are given in a file";
    } else if (is_table_name(name)) {
      message += "; name one of its members, such as " + name + "." + names_below(name).front();
    } else if (!meant.empty()) {
      message += "; did you mean " + quote(meant) + "?";
    } else if (const auto dot = name.rfind('.');
               dot != std::string::npos && is_table_name(name.substr(0, dot))) {
      message = unknown_key(name.substr(0, dot), name.substr(dot + 1));
    }
    return fail(ErrorKind::invalid_input, message);
  }
  if (name != spec->key.name) settings.warnings.push_back(former_name(name, spec->key.name));
  // Text keys take the words as they are: "0" is a cpulist here, not the integer.
  const bool text_key = spec->key.type == "string" || spec->key.type == "cpulist";
  const bool quoted = !value.empty() && (value.front() == '"' || value.front() == '\'');
  const bool one_line =
      std::none_of(value.begin(), value.end(), [](char c) { return c == '\n' || c == '\r' || c == '#'; });
  try {
    toml::table document;
    if (one_line && value.size() <= 4096 && std::count(value.begin(), value.end(), '.') <= kMostDotsPerLine &&
        (quoted || !text_key)) {
      try {
        document = toml::parse("value = " + value);
      } catch (const toml::parse_error&) {
        document.clear();
      }
    }
    if (!document.contains("value")) document.insert_or_assign("value", value);
    if (auto error = refusal_of(*spec, settings, *document.get("value"))) {
      return fail(ErrorKind::invalid_input, std::move(*error));
    }
  } catch (const std::exception& error) {
    return fail(ErrorKind::invalid_input, fmt::format("{}: {}", quote(name), on_one_line(error.what())));
  }
  return {};
}

}  // namespace berth::config
