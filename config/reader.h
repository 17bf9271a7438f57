// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/config.h"
#include "model/error.h"

#include <string>
#include <string_view>

#include <toml++/toml.h>

namespace berth::config {

// Applies one TOML document to `settings`; its [[workload]] tables follow those already there. `name` stands
// in messages: "NAME:LINE:COLUMN: ...", the first error in reading order, and the number of further ones. On
// error `settings` is left half changed: pass a copy.
model::Result<void> apply_document(Settings& settings, std::string_view text, const std::string& name);

}  // namespace berth::config
