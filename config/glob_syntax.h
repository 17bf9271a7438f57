// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace berth::config {

// What is wrong with a rule's `match`, nullopt where nothing is. A match is a relative cgroup path (no
// leading or trailing slash, no empty, "." or ".." component) with '*', '**' and '?', bracket expressions as
// in glob(7) ("[0-9]",
// "[!a]") and '\' before a character that stands for itself.
std::optional<std::string> match_error(std::string_view match);

}  // namespace berth::config
