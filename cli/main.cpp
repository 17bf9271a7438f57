// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

#include <csignal>
#include <iostream>

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // `berthctl log | head` ends with an exit status, not by a signal
  std::ios::sync_with_stdio(false);
  return berth::cli::run(argc, argv, std::cout, std::cerr);
}
