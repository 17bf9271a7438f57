// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"

#include <string_view>

namespace berth::model {

// Globs over cgroup paths (no leading slash). '*' matches any run of characters but '/', '**' any run at all,
// a "**/" at the start of a component also nothing ("a/**/b" matches "a/b"); '?' one character but '/';
// "[a-z]" and "[!a-z]" one of a set, never '/'. A backslash is an ordinary character, as systemd writes it
// into names ("foo\x2dbar.service").

// Error invalid_input, saying what is wrong: empty, a leading or doubled slash, a "." or ".." component, an
// unclosed or empty set, a range that descends, three stars in a row, a NUL.
Result<void> check_glob(std::string_view pattern);

// Whether the whole of `path` matches `pattern`; one that check_glob refuses matches nothing.
bool glob_match(std::string_view pattern, std::string_view path);

}  // namespace berth::model
