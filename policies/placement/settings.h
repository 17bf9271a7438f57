// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace berth::policies {

// The [placement] table; defaults and meaning in berth.toml(5) and docs/decisions/placement.md.
struct PlacementSettings {
  double hold_s = 120;          // how long the place of an admitted workload is held
  bool avoid_gpu_nodes = true;  // work without GPUs goes to bins without GPUs, as long as it fits there
  bool memory_nodes = false;    // the memory of a pinned instance is bound to the NUMA nodes of its pin
  bool spread_service = true;   // an instance goes to a host without another one of its service, if it can
};

}  // namespace berth::policies
