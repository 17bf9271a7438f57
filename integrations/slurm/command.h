// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace berth::slurm {

// The end of a program, and the beginning of its output.
struct Finished {
  int status = 0;  // its exit status; 128 plus the signal that ended it
  std::string output;
  std::string errors;
};

// A node of Slurm takes 2 KiB. More output than this is a failure.
inline constexpr std::size_t kMostOutputBytes = std::size_t{64} << 10;
// Of standard error this much is kept.
inline constexpr std::size_t kMostErrorBytes = 2048;

// Runs the program at the absolute path `words[0]` with these arguments, and with `environment`
// ("NAME=value") alone. No shell is involved. Its input is empty. After `limit` it is killed. Error: it
// cannot be started (kind of errno), took too long (transient), or wrote more than kMostOutputBytes
// (refused).
model::Result<Finished> run_program(const std::vector<std::string>& words,
                                    const std::vector<std::string>& environment,
                                    std::chrono::milliseconds limit);

}  // namespace berth::slurm
