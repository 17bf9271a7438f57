// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

namespace berth::extender {

// An amount as Kubernetes writes it, from 0 to 16Ei: "2", "1500m", "1.5", "64Gi", "8k", "1e3". nullopt for
// anything else.
std::optional<double> parse_quantity(std::string_view text);

}  // namespace berth::extender
