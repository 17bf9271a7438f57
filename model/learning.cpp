// SPDX-License-Identifier: Apache-2.0
#include "model/learning.h"

#include "model/bounds.h"

#include <fmt/core.h>

namespace berth::model {

namespace {

// Written so that NaN, which compares with nothing, is refused.
bool is_between(double value, double lowest, double highest) { return value >= lowest && value <= highest; }

}  // namespace

const char* to_string(Response response) {
  switch (response) {
    case Response::cpi:
      return "cpi";
    case Response::cost:
      return "cost";
    case Response::cpu:
      break;
  }
  return "cpu";
}

std::optional<std::string> fault_of(const Observation& seen) {
  const auto is_not = [](const char* name, double value, double highest) {
    return fmt::format("{} is {}, not between 0 and {:g}", name, value, highest);
  };
  if (!is_between(seen.time, 0, kLastTime_s)) return is_not("time", seen.time, kLastTime_s);
  if (!is_between(seen.y, 0, kMostResponse)) return is_not("y", seen.y, kMostResponse);
  if (seen.response != Response::cpu && !(seen.y > 0)) return std::string(to_string(seen.response)) + " is 0";
  if (!is_between(seen.sc, 0, kMostPressure)) return is_not("sc", seen.sc, kMostPressure);
  if (!is_between(seen.ss, 0, kMostPressure)) return is_not("ss", seen.ss, kMostPressure);
  if (seen.llc && !is_between(*seen.llc, 0, kMostMisses)) return is_not("llc", *seen.llc, kMostMisses);
  if (!is_between(seen.u, 0, kMostUse)) return is_not("u", seen.u, kMostUse);
  return std::nullopt;
}

}  // namespace berth::model
