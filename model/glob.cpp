// SPDX-License-Identifier: Apache-2.0
#include "model/glob.h"

#include <cstddef>
#include <optional>
#include <string>

#include <fmt/core.h>

namespace berth::model {

namespace {

constexpr std::size_t kNone = std::string_view::npos;

// Index of the ']' that closes the set opened at `open`; a ']' right after "[" or "[!" is a member.
std::size_t set_end(std::string_view pattern, std::size_t open) {
  std::size_t i = open + 1;
  if (i < pattern.size() && pattern[i] == '!') ++i;
  if (i < pattern.size() && pattern[i] == ']') ++i;
  return pattern.find(']', i);
}

bool in_set(std::string_view pattern, std::size_t open, std::size_t end, char c) {
  std::size_t i = open + 1;
  const bool negated = pattern[i] == '!';
  if (negated) ++i;
  const auto code = static_cast<unsigned char>(c);
  bool found = false;
  while (i < end) {
    const auto low = static_cast<unsigned char>(pattern[i]);
    if (i + 2 < end && pattern[i + 1] == '-') {
      found = found || (low <= code && code <= static_cast<unsigned char>(pattern[i + 2]));
      i += 3;
    } else {
      found = found || low == code;
      ++i;
    }
  }
  return found != negated;
}

// Length of the one-character item at `p` of the pattern if it matches `c`; nullopt if not.
std::optional<std::size_t> match_one(std::string_view pattern, std::size_t p, char c) {
  switch (pattern[p]) {
    case '?':
      if (c == '/') return std::nullopt;
      return 1;
    case '[': {
      const std::size_t end = set_end(pattern, p);
      if (end == kNone || c == '/' || !in_set(pattern, p, end, c)) return std::nullopt;
      return end + 1 - p;
    }
    default:
      if (pattern[p] != c) return std::nullopt;
      return 1;
  }
}

// Where matching resumes after a mismatch: in the pattern behind a star, and in the text at the next place to
// try.
struct Retry {
  std::size_t pattern = kNone;
  std::size_t text = 0;
  bool whole_components = false;  // a "**/": only the starts of components are tried
};

std::string at(std::string_view pattern, std::size_t position, std::string_view what) {
  return fmt::format("glob \"{}\", character {}: {}", pattern, position + 1, what);
}

}  // namespace

Result<void> check_glob(std::string_view pattern) {
  const auto bad = [&](std::size_t position, std::string_view what) {
    return fail(ErrorKind::invalid_input, at(pattern, position, what));
  };
  if (pattern.empty()) return fail(ErrorKind::invalid_input, "glob is empty");
  if (pattern.front() == '/') return bad(0, "paths have no leading slash");
  std::size_t component = 0;
  for (std::size_t i = 0; i <= pattern.size(); ++i) {
    if (i == pattern.size() || pattern[i] == '/') {
      const std::string_view name = pattern.substr(component, i - component);
      if (name.empty())
        return bad(i - 1, i == pattern.size() ? "a slash at the end" : "two slashes in a row");
      if (name == "." || name == "..") return bad(component, "\".\" and \"..\" never match");
      component = i + 1;
      continue;
    }
    if (pattern[i] == '\0') return bad(i, "a NUL");
    if (pattern.substr(i, 3) == "***") return bad(i, "three stars in a row");
    if (pattern[i] != '[') continue;
    const std::size_t end = set_end(pattern, i);
    if (end == kNone) return bad(i, "'[' without ']'");
    const std::string_view members = pattern.substr(i + 1, end - i - 1);
    if (members.find('/') != kNone) return bad(i, "a set cannot hold '/'");
    if (members.find('\0') != kNone) return bad(i, "a NUL");
    for (std::size_t j = 1; j + 1 < members.size(); ++j) {
      if (members[j] != '-') continue;
      if (static_cast<unsigned char>(members[j - 1]) > static_cast<unsigned char>(members[j + 1]) &&
          members[j - 1] != '!') {
        return bad(i + j, "a range that descends");
      }
    }
    i = end;
  }
  return {};
}

// Only the last '*' and the last '**' are tried again. The last star can match all that an earlier one could
// leave to it. A '*' that would have to cross a '/' falls back to the '**' before it.
bool glob_match(std::string_view pattern, std::string_view path) {
  if (!check_glob(pattern)) return false;
  Retry star;
  Retry globstar;
  std::size_t p = 0;
  std::size_t t = 0;
  while (true) {
    if (p < pattern.size() && pattern[p] == '*') {
      if (p + 1 < pattern.size() && pattern[p + 1] == '*') {
        const bool whole =
            p + 2 < pattern.size() && pattern[p + 2] == '/' && (p == 0 || pattern[p - 1] == '/');
        p += whole ? 3 : 2;
        globstar = {p, t, whole};
        star = {};
      } else {
        ++p;
        star = {p, t, false};
      }
      continue;
    }
    if (p == pattern.size() && t == path.size()) return true;
    if (p < pattern.size() && t < path.size()) {
      if (const auto length = match_one(pattern, p, path[t])) {
        p += *length;
        ++t;
        continue;
      }
    }
    if (star.pattern != kNone && star.text < path.size() && path[star.text] != '/') {
      ++star.text;
      p = star.pattern;
      t = star.text;
      continue;
    }
    if (globstar.pattern == kNone || globstar.text >= path.size()) return false;
    if (globstar.whole_components) {
      const std::size_t slash = path.find('/', globstar.text);
      if (slash == kNone) return false;
      globstar.text = slash + 1;
    } else {
      ++globstar.text;
    }
    star = {};
    p = globstar.pattern;
    t = globstar.text;
  }
}

}  // namespace berth::model
