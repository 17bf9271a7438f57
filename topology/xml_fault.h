// SPDX-License-Identifier: Apache-2.0
// Says why a file is no hwloc XML export that can be read, as hwloc itself gives no reason.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace berth::topology {

// The fault of an export, and what to do about it. `reads` is the newest major version that can be read.
// nullopt where the beginning and the end are those of an export, which may be wrong in between.
std::optional<std::string> fault_of_export(std::string_view xml, unsigned reads);

}  // namespace berth::topology
