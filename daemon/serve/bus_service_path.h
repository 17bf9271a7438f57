// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace berth::daemon {

// Object path of a workload, its id escaped as sd_bus_path_encode(3) does.
std::string workload_path(const std::string& id);

}  // namespace berth::daemon
