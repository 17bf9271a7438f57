// SPDX-License-Identifier: Apache-2.0
// Values of attributes by their texts, as a control file has them.
#pragma once

#include "cgroup/value.h"

#include <optional>
#include <string>

namespace berth::cgroup {

inline Value value(Attribute attribute, const std::string& text) {
  return parse_value(attribute, text).value();
}
inline Value cpus(const std::string& text) { return value(Attribute::cpus, text); }
inline Value quota(const std::string& text) { return value(Attribute::cpu_quota, text); }
inline Value memory(const std::string& text) { return value(Attribute::memory_high, text); }

inline Value nodes(const std::string& text) { return value(Attribute::memory_nodes, text); }
inline Value priority(const std::string& text) { return value(Attribute::cpu_idle, text); }

inline Value burst(const std::string& text) { return value(Attribute::cpu_burst, text); }

inline std::string text(const std::optional<Value>& value) { return value ? to_text(*value) : "nothing"; }
inline std::string text(const model::Result<Value>& value) {
  return value ? to_text(*value) : "error: " + value.error().message();
}

}  // namespace berth::cgroup
