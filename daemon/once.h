// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/config.h"
#include "daemon/options.h"

namespace berth::daemon {

// --once: looks at the host, prints what would be done, changes nothing and keeps nothing.
ExitStatus run_once(const Options& options, const config::Settings& settings);

// --restore: puts back what an earlier run left and prints what became of it.
ExitStatus run_restore(const Options& options);

}  // namespace berth::daemon
