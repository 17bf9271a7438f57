// SPDX-License-Identifier: Apache-2.0
// First line a glob, the rest a path: a glob that is refused matches nothing, one that is not matches what
// model/glob.h says, and none takes long (libFuzzer's time limit sees to that).
#include "model/glob.h"
#include "tests/fuzz/property.h"

#include <vector>

namespace {

// The header's sentences, tried in every way.
class Restated {
 public:
  Restated(std::string_view pattern, std::string_view path)
      : pattern_(pattern), path_(path), known_((pattern.size() + 1) * (path.size() + 1), unknown) {}

  bool match(std::size_t p = 0, std::size_t t = 0) {
    char& answer = known_[p * (path_.size() + 1) + t];
    if (answer == unknown) answer = tried(p, t) ? yes : no;
    return answer == yes;
  }

 private:
  enum : char { unknown, yes, no };

  bool tried(std::size_t p, std::size_t t) {
    if (p == pattern_.size()) return t == path_.size();
    const std::string_view rest = pattern_.substr(p);
    if (rest.starts_with("**")) {
      const bool starts_component = p == 0 || pattern_[p - 1] == '/';
      if (starts_component && rest.starts_with("**/") && match(p + 3, t)) return true;
      for (std::size_t end = t; end <= path_.size(); ++end)
        if (match(p + 2, end)) return true;
      return false;
    }
    if (rest.front() == '*')
      return match(p + 1, t) || (t < path_.size() && path_[t] != '/' && match(p, t + 1));
    if (t == path_.size()) return false;
    const char c = path_[t];
    if (rest.front() == '?') return c != '/' && match(p + 1, t + 1);
    if (rest.front() != '[') return rest.front() == c && match(p + 1, t + 1);
    const bool negated = rest.starts_with("[!");
    const std::size_t first = negated ? 2 : 1;
    const std::size_t close = rest.find(']', first + 1);
    return c != '/' && holds(rest.substr(first, close - first), c) != negated && match(p + close + 1, t + 1);
  }

  static bool holds(std::string_view members, char c) {
    const auto code = [](char of) { return static_cast<unsigned char>(of); };
    for (std::size_t i = 0; i < members.size(); ++i) {
      const bool range = i + 2 < members.size() && members[i + 1] == '-';
      const char last = range ? members[i + 2] : members[i];
      if (code(members[i]) <= code(c) && code(c) <= code(last)) return true;
      if (range) i += 2;
    }
    return false;
  }

  std::string_view pattern_;
  std::string_view path_;
  std::vector<char> known_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  const auto line_end = text.find('\n');
  const std::string_view pattern = text.substr(0, line_end);
  const std::string_view path =
      line_end == std::string_view::npos ? std::string_view() : text.substr(line_end + 1);
  const bool matches = berth::model::glob_match(pattern, path);
  if (!berth::model::check_glob(pattern))
    fuzz::require(!matches, "a refused glob matches nothing");
  else if (pattern.size() < 200 && path.size() < 200)
    fuzz::require(matches == Restated(pattern, path).match(), "the glob matches as its header says");
  return 0;
}
