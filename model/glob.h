// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"

#include <string_view>

namespace berth::model {

// Globs over cgroup paths (no leading slash). '*' matches any run of characters but '/', '**' any run at all.
// A "**/" at the start of a component also matches nothing ("a/**/b" matches "a/b"). '?' matches one
// character but '/'; "[a-z]" and "[!a-z]" match one of a set, never '/'. A backslash is an ordinary
// character, as systemd writes it into names ("foo\x2dbar.service").

// Checks a pattern. Error invalid_input says what is wrong. It may be empty, or have a leading or doubled
// slash, a "." or ".." component, or a NUL. A set may be unclosed or empty, or have a range that descends.
// Three stars in a row are refused.
Result<void> check_glob(std::string_view pattern);

// Whether the whole of `path` matches `pattern`; one that check_glob refuses matches nothing.
bool glob_match(std::string_view pattern, std::string_view path);

}  // namespace berth::model
