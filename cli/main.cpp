// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

#include <iostream>

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  return berth::cli::run(argc, argv, std::cout, std::cerr);
}
