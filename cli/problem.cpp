// SPDX-License-Identifier: Apache-2.0
#include "cli/problem.h"

namespace berth::cli {

tl::unexpected<Problem> problem(const model::Error& error) {
  switch (error.kind()) {
    case model::ErrorKind::invalid_input:
      return problem(Exit::wrong_use, error.message());
    case model::ErrorKind::refused:
      return problem(Exit::refused, error.message());
    case model::ErrorKind::io:
    case model::ErrorKind::gone:
    case model::ErrorKind::transient:
    case model::ErrorKind::permission:
    case model::ErrorKind::unavailable:
      break;
  }
  return problem(Exit::failed, error.message());
}

}  // namespace berth::cli
