// SPDX-License-Identifier: Apache-2.0
// Words the errors of the configuration: quotes the text found, and the word that was perhaps meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace berth::config {

// `text` in double quotes on one line: control characters escaped, cut at about 60 bytes.
std::string quote(std::string_view text);

// `text` on one line, control characters made blanks, cut at about 240 bytes.
std::string on_one_line(std::string_view text);

// The candidate nearest to `word` by edit distance; "" where none is near enough to be a typing error.
// Swapped neighbours count once; case, and '-' for '_', do not count. Of equals it is the first.
std::string closest(std::string_view word, const std::vector<std::string>& candidates);

// "a, b, c".
std::string listed(const std::vector<std::string>& words);

}  // namespace berth::config
