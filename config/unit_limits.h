// SPDX-License-Identifier: Apache-2.0
// Settings that are valid, and that berthd cannot carry out in the sandbox of berthd.service
// (systemd/berthd.service.in).
#pragma once

#include "config/config.h"

#include <string>
#include <vector>

namespace berth::config {

// One text for each such setting: its key or the place of its rule, the reason, and the remedy. Empty where
// the unit permits everything.
std::vector<std::string> forbidden_by_unit(const Settings& settings);

}  // namespace berth::config
