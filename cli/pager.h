// SPDX-License-Identifier: Apache-2.0
// Shows output that is longer than the terminal in the user's pager.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <string_view>

namespace berth::cli {

// Whether long output may go to a pager: standard output is a terminal, TERM is neither unset nor "dumb", and
// PAGER is neither empty nor "cat".
bool pager_is_wanted();

// Rows that `text` takes on a terminal of so many columns (0: as wide as needed). Colours take no room.
std::size_t rows_of(std::string_view text, std::size_t columns);

// Shows `text`, which goes to `out` if it fits the terminal or if no pager runs. The pager is $PAGER, run by
// the shell, or the first that exists of pager, less and more. Its LESS is "FRX", and its LV "-c", unless
// set. With the rights of another user than that of the login, PAGER has no effect. The pager is then less,
// without its commands that run programs and write files. Returns when the pager has ended.
void page(std::ostream& out, const std::string& text);

}  // namespace berth::cli
