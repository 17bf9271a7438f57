// SPDX-License-Identifier: Apache-2.0
// How configuration errors speak: quoting what was found, and what was perhaps meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace berth::config {

// `text` in double quotes on one line: control characters escaped, what is longer than about 60 bytes cut.
std::string quote(std::string_view text);

// `text` on one line, control characters made blanks, what is longer than about 240 bytes cut.
std::string on_one_line(std::string_view text);

// The candidate nearest to `word` by edit distance (swapped neighbours count once; case and '-' for '_' count
// nothing); "" where none is near enough to be a slip of the hand. The first of equals.
std::string closest(std::string_view word, const std::vector<std::string>& candidates);

// "a, b, c".
std::string listed(const std::vector<std::string>& words);

}  // namespace berth::config
