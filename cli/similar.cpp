// SPDX-License-Identifier: Apache-2.0
#include "cli/similar.h"

#include "config/wording.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace berth::cli {

namespace {

constexpr std::size_t kMostWords = 3;

}  // namespace

std::vector<std::string> similar_to(std::string_view word, const std::vector<std::string>& known) {
  if (word.empty()) return {};
  std::vector<std::string> words;
  std::copy_if(known.begin(), known.end(), std::back_inserter(words),
               [&](const std::string& candidate) { return candidate.starts_with(word); });
  if (words.size() > kMostWords) words.resize(kMostWords);
  if (!words.empty()) return words;
  const std::string closest = config::closest(word, known);
  return closest.empty() ? words : std::vector<std::string>{closest};
}

std::string did_you_mean(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    text += i == 0 ? "; did you mean " : i + 1 < words.size() ? ", " : " or ";
    text += words[i];
  }
  return words.empty() ? text : text + "?";
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
  return did_you_mean(similar_to(word, known));
}

}  // namespace berth::cli
