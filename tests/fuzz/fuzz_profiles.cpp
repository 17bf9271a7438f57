// SPDX-License-Identifier: Apache-2.0
// Any text is read as profiles or refused in one line; what was read survives being written, and makes models
// of finite figures, also where it is added to itself.
#include "model/learning.h"
#include "policies/interference/learning/learn.h"
#include "policies/interference/learning/sums.h"
#include "tests/fuzz/property.h"

#include <cmath>

namespace model = berth::model;
namespace policies = berth::policies;

namespace {

void require_finite(const model::Coefficient& k) {
  fuzz::require(std::isfinite(k.value) && k.value >= 0, "a coefficient is 0 or more");
  if (!k.interval) return;
  fuzz::require(std::isfinite(k.interval->low) && std::isfinite(k.interval->high), "an interval is finite");
  fuzz::require(k.interval->low <= k.interval->high, "an interval has a low end and a high end");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto profiles = model::parse_profiles(fuzz::text_of(data, size));
  if (!profiles) {
    fuzz::require(profiles.error().message().starts_with("$"), "a refusal names a JSON path");
    fuzz::require_line(profiles.error().message());
    return 0;
  }
  const std::string text = model::to_json(*profiles, "host");
  const auto again = model::parse_profiles(text);
  fuzz::require(again.has_value() && *again == *profiles, "the profiles survive");
  policies::merge(*profiles, *again);
  for (const auto& learned : policies::judge_all(*profiles, *again, {})) {
    (void)model::to_json(learned);
    if (!learned.fit || !learned.accepted) continue;
    require_finite(learned.fit->k1);
    require_finite(learned.fit->k2);
  }
  return 0;
}
