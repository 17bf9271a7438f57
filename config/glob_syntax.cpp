// SPDX-License-Identifier: Apache-2.0
#include "config/glob_syntax.h"

#include <cstddef>

#include <fmt/format.h>

namespace berth::config {
namespace {

// `open` is the position of '['. Moves it to the closing ']', or says what is wrong.
std::optional<std::string> bracket_error(std::string_view glob, std::size_t& open) {
  std::size_t i = open + 1;
  if (i < glob.size() && (glob[i] == '!' || glob[i] == '^')) ++i;
  // A ']' in the first place stands for itself (glob(7)).
  for (const std::size_t first = i; i < glob.size(); ++i) {
    if (glob[i] == ']' && i > first) {
      open = i;
      return std::nullopt;
    }
    if (glob[i] == '/') return "a bracket expression cannot hold '/'";
    if (glob[i] == '\\') {
      ++i;
      continue;
    }
    const bool range = i + 2 < glob.size() && glob[i + 1] == '-' && glob[i + 2] != ']';
    if (range) {
      if (glob[i + 2] == '/') return "a bracket expression cannot hold '/'";
      if (static_cast<unsigned char>(glob[i]) > static_cast<unsigned char>(glob[i + 2])) {
        return fmt::format("the range {} runs backwards", glob.substr(i, 3));
      }
      i += 2;
    }
  }
  return fmt::format("'[' at character {} is never closed", open + 1);
}

}  // namespace

std::optional<std::string> match_error(std::string_view match) {
  if (match.empty()) return "it is empty";
  if (match.front() == '/') {
    return "it starts with '/': write the path as it is below the cgroup root, such as "
           "\"system.slice/web.service\"";
  }
  if (match.back() == '/') return "it ends with '/'";
  std::size_t start = 0;
  for (std::size_t i = 0; i <= match.size(); ++i) {
    if (i < match.size() && match[i] != '/') continue;
    const auto component = match.substr(start, i - start);
    if (component.empty()) return "it holds an empty path component (\"//\")";
    if (component == "." || component == "..") {
      return fmt::format("it holds the path component \"{}\", and cgroup paths are taken as they are",
                         component);
    }
    start = i + 1;
  }
  for (std::size_t i = 0; i < match.size(); ++i) {
    if (match[i] == '\0') return "it holds a zero byte";
    if (match[i] == '\\') {
      if (i + 1 == match.size()) return "'\\' at its end escapes nothing";
      ++i;
    } else if (match[i] == '[') {
      if (auto error = bracket_error(match, i)) return error;
    }
  }
  return std::nullopt;
}

}  // namespace berth::config
