// SPDX-License-Identifier: Apache-2.0
#include "config/wording.h"

#include "model/name.h"
#include "model/text.h"

#include <algorithm>
#include <cstddef>

#include <fmt/core.h>

namespace berth::config {
namespace {

constexpr std::size_t kLongestQuoted = 60;
constexpr std::size_t kLongestPhrase = 240;
constexpr std::size_t kLongestCompared = 48;

std::string folded(std::string_view word) {
  std::string result(word);
  for (char& c : result) {
    c = c == '-' ? '_' : model::lower(c);
  }
  return result;
}

// Optimal string alignment distance (Damerau-Levenshtein without overlapping edits).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::string quote(std::string_view text) {
  std::string result = "\"";
  std::size_t used = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool continues = (byte & 0xC0U) == 0x80U;
    if (used >= kLongestQuoted && !continues) return result + "...\"";
    if (byte < 0x20 || byte == 0x7F) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += c;
    }
    ++used;
  }
  return result + "\"";
}

std::string on_one_line(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (result.size() >= kLongestPhrase && (byte & 0xC0U) != 0x80U) return result + "...";
    result += byte < 0x20 || byte == 0x7F ? ' ' : c;
  }
  return result;
}

std::string closest(std::string_view word, const std::vector<std::string>& candidates) {
  if (word.size() > kLongestCompared) return "";
  const auto wanted = folded(word);
  const std::string* best = nullptr;
  std::size_t best_distance = 0;
  for (const auto& candidate : candidates) {
    const auto d = distance(wanted, folded(candidate));
    if (best == nullptr || d < best_distance) {
      best = &candidate;
      best_distance = d;
    }
  }
  // A third of the word wrong is still a slip; more is another word.
  if (best == nullptr || best_distance > std::max<std::size_t>(1, std::min(word.size(), best->size()) / 3))
    return "";
  return *best;
}

std::string listed(const std::vector<std::string>& words) { return model::joined(words, ", "); }

}  // namespace berth::config
