// SPDX-License-Identifier: Apache-2.0
// Runs the real berthctl.
#pragma once

#include <string>

namespace berth::test {

struct Ran {
  int exit = -1;  // 128 and more: killed by a signal
  std::string out;
  std::string err;
};

// `command` by the shell, "berthctl" in it being the one that was built; `input` is its standard input.
// Nothing of it is a terminal.
Ran run_shell(const std::string& command, const std::string& input = "");

// How many lines `text` has.
int lines_of(const std::string& text);

}  // namespace berth::test
