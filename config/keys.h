// SPDX-License-Identifier: Apache-2.0
// The one table behind parsing, overriding and berth.toml(5).
#pragma once

#include "config/config.h"
#include "model/workload_rule.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <toml++/toml.h>

namespace berth::config {

// nullopt: the value was taken. Otherwise it was refused. The text, perhaps empty, names a fault beyond type
// and range.
using Refusal = std::optional<std::string>;

template <typename Target>
struct KeySpec {
  Key key;
  std::vector<std::string> choices;  // the allowed values of a string that has few
  std::function<Refusal(Target&, const toml::node&)> set;
  // The member's present value as TOML; "" for one that is unset. Null for members of [[workload]] that are
  // no plain value.
  std::function<std::string(Target&)> text = nullptr;
};

// The values that a key takes, in words: "an integer from 1 to 8192".
std::string taken_by(const Key& key, const std::vector<std::string>& choices);

// nullptr for a name that is none of theirs.
template <typename Target>
const KeySpec<Target>* find_spec(const std::vector<KeySpec<Target>>& specs, std::string_view name) {
  for (const auto& spec : specs) {
    if (spec.key.name == name) return &spec;
  }
  return nullptr;
}

// The present name of a setting. Most keys of [spark] are in [eviction] now; their former names still work.
std::string present_name(std::string name);

// Why a setting, or a member of [[workload]], that earlier releases had is accepted and does nothing; nullptr
// for all others. `name` is dotted, from the top of the file: "workload.borrow".
const char* why_gone(std::string_view name);

// `key.name` is dotted, from the top of the file.
const std::vector<KeySpec<Settings>>& setting_specs();
// `key.name` is the member's of a [[workload]] table.
const std::vector<KeySpec<model::WorkloadRule>>& workload_specs();

}  // namespace berth::config
