// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"

#include <string>
#include <utility>

namespace berth::cli {

// Exit statuses of docs/contract/README.md.
enum class Exit : int { done = 0, failed = 1, wrong_use = 2, refused = 3, unreachable = 4 };

// Why a command failed: the exit status for the shell, and one line for the user.
struct Problem {
  Exit exit = Exit::failed;
  std::string message;
};

template <typename T>
using Outcome = tl::expected<T, Problem>;

inline tl::unexpected<Problem> problem(Exit exit, std::string message) {
  return tl::unexpected<Problem>(Problem{exit, std::move(message)});
}

// invalid_input becomes wrong_use, refused stays refused; anything else is failed.
inline tl::unexpected<Problem> problem(const model::Error& error) {
  const bool misuse = error.kind() == model::ErrorKind::invalid_input;
  const bool refused = error.kind() == model::ErrorKind::refused;
  return problem(misuse ? Exit::wrong_use : refused ? Exit::refused : Exit::failed, error.message());
}

}  // namespace berth::cli
