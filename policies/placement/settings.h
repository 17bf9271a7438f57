// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace berth::policies {

// The [placement] table; defaults and meaning in berth.toml(5) and docs/algorithms.md.
struct PlacementSettings {
  double hold_s = 120;          // how long the place of who was let in is kept for it
  bool avoid_gpu_nodes = true;  // work without GPUs goes where there are none, as long as it fits there
};

}  // namespace berth::policies
