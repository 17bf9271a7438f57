// SPDX-License-Identifier: Apache-2.0
// The nodes of bench-placement.
#pragma once

#include "tests/unit/policies/hosts.h"

#include <vector>

namespace berth::policies::bench {

struct Node {
  const char* name = "";
  testing::HostShape shape;
  double llc_mib = 16;
  int lesson_mixes = 60;  // a large host shows more of a mix
  int times = 1;          // that the moves are counted, each with other services at another time of the day
};

inline std::vector<Node> nodes() {
  return {{"1 x 4 x 2", {.sockets = 1, .llcs_per_socket = 1, .cores_per_llc = 4}, 8, 60, 8},
          {"1 x 16 x 2, 2 LLCs", {.sockets = 1, .llcs_per_socket = 2, .cores_per_llc = 8}, 16, 60, 2},
          {"2 x 16 x 2", {.sockets = 2, .llcs_per_socket = 1, .cores_per_llc = 16}, 32, 30, 1},
          {"2 x 64 x 2, 16 LLCs", {.sockets = 2, .llcs_per_socket = 8, .cores_per_llc = 8}, 32, 12, 1}};
}

}  // namespace berth::policies::bench
