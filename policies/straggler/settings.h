// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace berth::policies {

// The [straggler] table; defaults and meaning in berth.toml(5), docs/decisions/stragglers.md and
// docs/decisions/lending.md.
struct StragglerSettings {
  double max_growth = 2.0;  // times its allocation: the most a straggler is given
  double expected_utilisation =
      0.6;  // 0..1: a best-effort task that uses less of what it holds lends the rest
  double preempt_floor_cores = 0.1;  // a best-effort task is not shrunk below this
  double restore_hold_s = 30.0;      // without a straggler, until what was taken goes back
  double restore_step = 0.10;        // of the host: the most that goes back in one tick
};

}  // namespace berth::policies
