// SPDX-License-Identifier: Apache-2.0
// Finds the word that a user meant by a mistyped one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace berth::cli {

// Those of `known` that begin with `word`, at most three, in their order in `known`. If none does, the one
// that is near enough for a typing error (config::closest). Empty where none is.
std::vector<std::string> similar_to(std::string_view word, const std::vector<std::string>& known);

// "; did you mean status or set?" of these words; "" where there is none.
std::string did_you_mean(const std::vector<std::string>& words);
// The same of similar_to().
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

}  // namespace berth::cli
