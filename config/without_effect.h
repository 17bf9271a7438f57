// SPDX-License-Identifier: Apache-2.0
// Settings that are valid, and that change nothing beside the other settings.
#pragma once

#include "config/config.h"

#include <string>
#include <vector>

namespace berth::config {

// One text for each such setting, with the reason and the remedy: its key, in the order of known_keys(); or
// the place of its rule. A setting with its default value is never one: it asks for nothing. It
// knows nothing of marks, requests and `berthctl set`.
std::vector<std::string> without_effect(const Settings& settings);

// All that an administrator should know of valid settings: their warnings, and without_effect().
std::vector<std::string> remarks(const Settings& settings);

}  // namespace berth::config
