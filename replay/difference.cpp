// SPDX-License-Identifier: Apache-2.0
#include "replay/difference.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <variant>

namespace berth::replay {

namespace {

// The parts of a decision that two sides have in common.
using Key = std::tuple<std::string, std::string, std::string>;

bool counts(const Decision& decision) {
  const auto* advertised = std::get_if<model::Advertise>(&decision.action.what);
  if (advertised == nullptr) return true;
  // "RESOURCE STATE FACTOR"
  return decision.before.substr(0, decision.before.rfind(' ')) !=
         decision.after.substr(0, decision.after.rfind(' '));
}

Key key_of(const Decision& decision) {
  const bool advertised = std::holds_alternative<model::Advertise>(decision.action.what);
  return {decision.kind, decision.workload,
          advertised ? decision.after.substr(0, decision.after.rfind(' ')) : decision.after};
}

std::set<Key> keys_of(const std::vector<Decision>& decisions) {
  std::set<Key> keys;
  for (const Decision& decision : decisions) {
    if (counts(decision)) keys.insert(key_of(decision));
  }
  return keys;
}

}  // namespace

void Differences::add(const std::vector<Decision>& first, const std::vector<Decision>& second) {
  if (first.empty() && second.empty()) return;
  const std::set<Key> of_first = keys_of(first);
  const std::set<Key> of_second = keys_of(second);
  if (of_first == of_second) return;
  const std::uint64_t before = all_;
  const auto take = [this](const std::vector<Decision>& decisions, const std::set<Key>& others,
                           bool is_first) {
    for (const Decision& decision : decisions) {
      if (!counts(decision) || others.contains(key_of(decision))) continue;
      ++all_;
      if (list_.size() < most_) list_.push_back({is_first, decision});
    }
  };
  take(first, of_second, true);
  take(second, of_first, false);
  if (all_ > before) ++ticks_;
}

}  // namespace berth::replay
