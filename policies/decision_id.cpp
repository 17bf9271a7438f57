// SPDX-License-Identifier: Apache-2.0
#include "policies/decision_id.h"

#include "model/hash.h"

#include <cstdint>
#include <string_view>

#include <fmt/core.h>

namespace berth::policies {

namespace {

struct ValueText {
  std::string operator()(const model::Set& it) const { return plain_text(it.value); }
  std::string operator()(const model::GiveBack& it) const {
    return it.attribute == model::Attribute::cpus ? "" : "none";
  }
  std::string operator()(const model::Evict& it) const {
    return fmt::format("{} {}", static_cast<int>(it.how), it.frees_bytes);
  }
  std::string operator()(const model::Advertise& it) const {
    return fmt::format("{} {} {} {}", static_cast<int>(it.resource), it.factor, it.capacity,
                       static_cast<int>(it.state));
  }
};

}  // namespace

std::string value_text(const model::Action& action) { return std::visit(ValueText{}, action.what); }

std::string decision_id(double snapshot_time, const model::Action& action) {
  const std::string* workload = action.workload();
  return decision_id(snapshot_time, action.policy, action.kind(),
                     workload == nullptr ? std::string() : *workload, value_text(action));
}

std::string decision_id(double time, std::string_view policy, std::string_view kind,
                        std::string_view workload, std::string_view outcome) {
  // No name here holds a newline, so the fields cannot run into each other.
  const std::uint64_t hash =
      model::fnv1a(fmt::format("{}\n{}\n{}\n{}\n{}", time, policy, kind, workload, outcome));
  constexpr int kBits = 48;
  return fmt::format("d-{:012x}", (hash >> kBits) ^ (hash & ((std::uint64_t{1} << kBits) - 1)));
}

}  // namespace berth::policies
