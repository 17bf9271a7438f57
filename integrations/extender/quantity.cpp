// SPDX-License-Identifier: Apache-2.0
#include "integrations/extender/quantity.h"

#include "model/number.h"

#include <array>
#include <cmath>
#include <utility>

namespace berth::extender {

namespace {

constexpr std::size_t kMaxBytes = 64;
constexpr double kMost = 16 * 1152921504606846976.0;  // 16Ei

constexpr std::array<std::pair<std::string_view, double>, 15> kUnits{{{"Ki", 1024.0},
                                                                      {"Mi", 1048576.0},
                                                                      {"Gi", 1073741824.0},
                                                                      {"Ti", 1099511627776.0},
                                                                      {"Pi", 1125899906842624.0},
                                                                      {"Ei", 1152921504606846976.0},
                                                                      {"n", 1e-9},
                                                                      {"u", 1e-6},
                                                                      {"m", 1e-3},
                                                                      {"k", 1e3},
                                                                      {"M", 1e6},
                                                                      {"G", 1e9},
                                                                      {"T", 1e12},
                                                                      {"P", 1e15},
                                                                      {"E", 1e18}}};

}  // namespace

std::optional<double> parse_quantity(std::string_view text) {
  if (text.size() > kMaxBytes) return std::nullopt;
  double unit = 1;
  for (const auto& [suffix, size] : kUnits) {
    if (!text.ends_with(suffix)) continue;
    text.remove_suffix(suffix.size());
    unit = size;
    break;
  }
  const auto number = model::to_number<double>(text);
  if (!number || !std::isfinite(*number) || *number < 0 || *number * unit > kMost) return std::nullopt;
  return *number * unit;
}

}  // namespace berth::extender
