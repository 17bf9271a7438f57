// SPDX-License-Identifier: Apache-2.0
#include "model/progress.h"

#include "model/path.h"
#include "model/text.h"

#include <algorithm>
#include <charconv>
#include <climits>
#include <cmath>
#include <optional>

#include <fmt/core.h>

namespace berth::model {

namespace {

// A whole text that is one finite number of at least 0.
std::optional<double> parse_number(std::string_view text) {
  text = trimmed(text, kBlanksAndBreaks);
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stopped != end || !std::isfinite(number) || std::signbit(number)) {
    return std::nullopt;
  }
  return number;
}

struct UnitName {
  std::string_view whole;
  std::string_view prefix;
  std::string_view instance;
};

UnitName unit_name(std::string_view cgroup_path) {
  UnitName name;
  name.whole = last_component(cgroup_path);
  std::string_view stem = name.whole;
  for (const std::string_view suffix : {".service", ".scope", ".slice", ".socket", ".mount", ".swap"}) {
    if (stem.size() > suffix.size() && stem.ends_with(suffix)) {
      stem.remove_suffix(suffix.size());
      break;
    }
  }
  const auto at = stem.find('@');
  name.prefix = stem.substr(0, at);
  if (at != std::string_view::npos) name.instance = stem.substr(at + 1);
  return name;
}

std::optional<std::string> fault_of(std::string_view path) {
  if (!path.starts_with('/')) return "it is not an absolute path";
  if (path.size() >= PATH_MAX) return "it is longer than a path can be";
  for (const char c : path) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) return "it holds a control character";
  }
  while (!path.empty()) {
    path.remove_prefix(1);
    const auto end = std::min(path.find('/'), path.size());
    const auto component = path.substr(0, end);
    if (component == "." || component == "..") return fmt::format("it has a component \"{}\"", component);
    if (component.empty() && end == path.size()) return "it ends with a slash";
    path.remove_prefix(end);
  }
  return std::nullopt;
}

}  // namespace

Result<double> parse_progress(std::string_view text) {
  const auto slash = text.find('/');
  const bool share = slash != std::string_view::npos;
  const auto done = parse_number(text.substr(0, slash));
  const auto total = share ? parse_number(text.substr(slash + 1)) : std::optional(1.0);
  if (!done || !total || *total == 0 || *done > *total) {
    return fail(ErrorKind::invalid_input,
                "neither a fraction from 0 to 1, such as 0.42, nor DONE/TOTAL, such as 42/100");
  }
  return *done / *total;
}

Result<std::string> expand_progress_file(std::string_view pattern, std::string_view cgroup_path) {
  if (const auto fault = fault_of(pattern)) return fail(ErrorKind::invalid_input, *fault);
  const UnitName name = unit_name(cgroup_path);
  std::string path;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      path += pattern[i];
      continue;
    }
    switch (++i < pattern.size() ? pattern[i] : '\0') {
      case 'n':
        path += name.whole;
        break;
      case 'p':
        path += name.prefix;
        break;
      case 'i':
        path += name.instance;
        break;
      case '%':
        path += '%';
        break;
      default:
        return fail(
            ErrorKind::invalid_input,
            fmt::format("\"{}\" is no specifier; there are %n, %p, %i and %%", pattern.substr(i - 1, 2)));
    }
  }
  if (const auto fault = fault_of(path)) {
    return fail(ErrorKind::invalid_input, fmt::format("\"{}\" of {}: {}", pattern, cgroup_path, *fault));
  }
  return path;
}

}  // namespace berth::model
