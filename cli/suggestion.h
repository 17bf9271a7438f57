// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/host_scan.h"

#include <string>

namespace berth::cli {

// A first berth.toml for the host, every setting with its reason in a comment. Units that listen become
// latency-sensitive, units that only compute become best-effort; those of the base system are left alone.
// `heading` is the first line, without "# ".
std::string suggestion(const SeenHost& host, const std::string& heading);

}  // namespace berth::cli
