// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/config.h"
#include "model/error.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace berth::config {

// The longest document of one side of a trial.
inline constexpr std::size_t kMaxTrialBytes = std::size_t{64} * 1024;

// The settings of one side of a trial (berthctl(1)): `base`, and then the document, as the last file of
// FILE.d. `name` stands in messages. Error invalid_input for a document of more than kMaxTrialBytes, or
// that berth.toml could not be. Error refused for a value that `base` does not have, of a setting that a
// trial may not change: sampling, reports, learning, what ends work, and [[workload]] tables.
model::Result<Settings> trial_settings(const Settings& base, std::string_view toml, const std::string& name);

// A setting whose value differs, both as TOML.
struct Difference {
  std::string key;
  std::string a;
  std::string b;

  friend bool operator==(const Difference&, const Difference&) = default;
};
// In the order of known_keys(). Does not compare rules.
std::vector<Difference> differences(Settings a, Settings b);

}  // namespace berth::config
