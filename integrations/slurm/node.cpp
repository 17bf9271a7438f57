// SPDX-License-Identifier: Apache-2.0
#include "integrations/slurm/node.h"

#include "model/json.h"
#include "model/number.h"
#include "model/text.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <utility>

#include <fmt/core.h>

namespace berth::slurm {

namespace {

using model::ErrorKind;
using model::is_letter_or_digit;

// Lines whose whole rest is one value. Those of the second list are free text: only such lines follow.
constexpr std::array<std::string_view, 1> kWholeLines{"Gres"};
constexpr std::array<std::string_view, 4> kFreeText{"Reason", "Comment", "Extra", "OS"};

// The figures by name, and the free texts by name, in the order of the lines.
struct Fields {
  std::map<std::string_view, std::string_view> figures;
  std::multimap<std::string_view, std::string_view> texts;
};

bool is_name(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return is_letter_or_digit(c) || c == '_'; });
}

void read_words(std::string_view line, Fields& fields) {
  while (!line.empty()) {
    const std::string_view word = model::take_part(line, " ");
    line = model::trimmed_start(line, model::kBlanks);
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos || !is_name(word.substr(0, equals))) continue;
    fields.figures.emplace(word.substr(0, equals), word.substr(equals + 1));
  }
}

model::Result<Fields> fields_of(std::string_view text) {
  Fields fields;
  bool figures_end = false;
  while (!text.empty()) {
    const std::string_view line =
        model::trimmed_end(model::trimmed_start(model::take_line(text), model::kBlanks), " \t\r");
    if (line.size() > kMaxLineBytes)
      return model::fail(ErrorKind::invalid_input,
                         fmt::format("a line is longer than {} bytes", kMaxLineBytes));
    std::string_view rest = line;
    const std::string_view name = model::take_part(rest, "=");
    if (std::find(kFreeText.begin(), kFreeText.end(), name) != kFreeText.end()) {
      fields.texts.emplace(name, rest);
      // Slurm prints figures after the name of the operating system, which root of the node chose.
      figures_end = figures_end || name != "OS";
    } else if (figures_end) {
      continue;
    } else if (std::find(kWholeLines.begin(), kWholeLines.end(), name) != kWholeLines.end()) {
      fields.figures.emplace(name, rest);
    } else {
      read_words(line, fields);
    }
  }
  return fields;
}

// "gpu:a100:2(S:0,2),becpu:8" has two entries.
model::Result<std::vector<std::string>> gres_of(std::string_view list) {
  std::vector<std::string> entries;
  if (list.empty() || list == "(null)") return entries;
  if (!std::all_of(list.begin(), list.end(), model::is_visible) ||
      list.find_first_of("\"'\\") != std::string_view::npos)
    return model::fail(ErrorKind::invalid_input, "Gres has characters that no resource has");
  int depth = 0;
  std::string entry;
  for (const char c : list) {
    depth += (c == '(' ? 1 : 0) - (c == ')' ? 1 : 0);
    if (depth < 0) break;
    if (c == ',' && depth == 0) {
      entries.push_back(std::exchange(entry, {}));
    } else {
      entry += c;
    }
  }
  entries.push_back(std::move(entry));
  const auto empty = [](const std::string& it) { return it.empty(); };
  if (depth != 0 || std::any_of(entries.begin(), entries.end(), empty))
    return model::fail(ErrorKind::invalid_input, "Gres is no list of resources");
  if (entries.size() > kMaxGresEntries)
    return model::fail(ErrorKind::invalid_input,
                       fmt::format("Gres has more than {} entries", kMaxGresEntries));
  return entries;
}

std::optional<Version> version_of(std::string_view text) {
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view rest = text.substr(dot + 1);
  const auto major = model::to_number<int>(text.substr(0, dot));
  const auto minor = model::to_number<int>(rest.substr(0, std::min(rest.find_first_of(".-"), rest.size())));
  if (!major || !minor || *major < 0 || *minor < 0) return std::nullopt;
  return Version{*major, *minor};
}

// "text [root@2026-11-24T22:48:27]" is "text".
std::string without_author(std::string_view reason) {
  const std::size_t bracket = reason.rfind(" [");
  if (bracket == std::string_view::npos || reason.back() != ']') return std::string(reason);
  return std::string(reason.substr(0, bracket));
}

// The one text of the name; nullopt where none or several lines look like it.
std::optional<std::string_view> only(const Fields& fields, std::string_view name) {
  const auto [first, last] = fields.texts.equal_range(name);
  if (first == last || std::next(first) != last) return std::nullopt;
  return first->second;
}

void read_state(std::string_view text, Node& node) {
  // A star marks a node that does not answer, other signs its power; the flags say the same.
  while (!text.empty() && !is_letter_or_digit(text.back()) && text.back() != '_') text.remove_suffix(1);
  bool first = true;
  while (!text.empty()) {
    const std::string word(model::take_part(text, "+"));
    if (first) {
      node.base_state = word;
    } else {
      node.flags.push_back(word);
    }
    first = false;
  }
}

constexpr std::string_view kUnits = "KMGTP";

std::string_view name_of(std::string_view entry) { return entry.substr(0, entry.find_first_of(":=(")); }

std::string_view without_sockets(std::string_view entry) { return entry.substr(0, entry.find('(')); }

// "14", or "2K" for 2048.
std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t unit = 1;
  if (!text.empty()) {
    if (const std::size_t power = kUnits.find(text.back()); power != std::string_view::npos) {
      unit <<= 10 * (power + 1);
      text.remove_suffix(1);
    }
  }
  const auto number = model::to_number<std::uint64_t>(text);
  if (!number || *number > std::numeric_limits<std::uint64_t>::max() / unit) return std::nullopt;
  return *number * unit;
}

}  // namespace

std::optional<std::string> why_no_node_name(std::string_view name) {
  if (name.empty()) return "it is empty";
  if (name.size() > kMaxNodeNameBytes) return fmt::format("it is longer than {} bytes", kMaxNodeNameBytes);
  const auto allowed = [](char c) { return is_letter_or_digit(c) || c == '.' || c == '-' || c == '_'; };
  if (!is_letter_or_digit(name.front()) || !std::all_of(name.begin(), name.end(), allowed))
    return "it has other characters than letters, digits, dots, hyphens and underscores";
  if (model::equal_ignoring_case(name, "all")) return "it means all nodes";
  return std::nullopt;
}

bool Node::has_flag(std::string_view flag) const {
  return std::find(flags.begin(), flags.end(), flag) != flags.end();
}

bool Node::drained() const {
  return has_flag("DRAIN") || base_state == "DRAINED" || base_state == "DRAINING";
}

bool Node::takes_no_work() const {
  return drained() || has_flag("FAIL") || base_state == "DOWN" || base_state == "FUTURE";
}

model::Result<Node> parse_node(std::string_view text, std::string_view name) {
  const auto fields = fields_of(text);
  if (!fields) return model::fail(fields.error());
  const auto figure = [&](std::string_view of) -> std::optional<std::string_view> {
    const auto found = fields->figures.find(of);
    return found == fields->figures.end() ? std::nullopt : std::optional(found->second);
  };
  Node node;
  node.name = figure("NodeName").value_or("");
  if (node.name != name) return model::fail(ErrorKind::invalid_input, "the answer is about another node");
  const auto weight = model::to_number<std::uint32_t>(figure("Weight").value_or(""));
  if (!weight) return model::fail(ErrorKind::invalid_input, "there is no Weight");
  node.weight = *weight;
  read_state(figure("State").value_or(""), node);
  if (node.base_state.empty()) return model::fail(ErrorKind::invalid_input, "there is no State");
  auto gres = gres_of(figure("Gres").value_or(""));
  if (!gres) return model::fail(gres.error());
  node.gres = *std::move(gres);
  if (const auto version = figure("Version")) node.version = version_of(*version);
  if (const auto reason = only(*fields, "Reason")) node.reason = without_author(*reason);
  if (const auto extra = only(*fields, "Extra")) node.extra = std::string(*extra);
  node.extra_is_clear = fields->texts.count("Extra") <= 1;
  return node;
}

std::optional<std::uint64_t> count_of(const std::vector<std::string>& entries, std::string_view name) {
  const auto is_own = [name](const std::string& entry) { return name_of(entry) == name; };
  const auto own = std::count_if(entries.begin(), entries.end(), is_own);
  if (own == 0) return 0;
  if (own > 1) return std::nullopt;
  const std::string_view entry = without_sockets(*std::find_if(entries.begin(), entries.end(), is_own));
  if (entry.size() <= name.size() || entry[name.size()] != ':') return std::nullopt;
  return number_of(entry.substr(name.size() + 1));
}

std::string with_count(const std::vector<std::string>& entries, std::string_view name, std::uint64_t count) {
  std::string list;
  bool written = false;
  const auto add = [&list](std::string_view entry) {
    if (!list.empty()) list += ',';
    list += entry;
  };
  const std::string own = fmt::format("{}:{}", name, count);
  for (const std::string& entry : entries) {
    if (name_of(entry) != name) {
      add(without_sockets(entry));
    } else if (!written) {
      add(own);
      written = true;
    }
  }
  if (!written) add(own);
  return list;
}

}  // namespace berth::slurm
