// SPDX-License-Identifier: Apache-2.0
#include "integrations/kubernetes/decide.h"

#include "model/json_text.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace berth::kubernetes {

namespace {

using model::NodeState;
using model::SchedulingState;
using nlohmann::json;

constexpr double kMiB = 1024.0 * 1024.0;

// Tolerates the last bit of a difference: 14 - 1e-15 units are 14.
std::uint64_t whole(double amount, std::uint64_t most) {
  return static_cast<std::uint64_t>(std::clamp(std::floor(amount + 1e-7), 0.0, static_cast<double>(most)));
}

std::string closed_by(const NodeState& state) {
  if (state.memory.state != SchedulingState::schedule && state.memory.state >= state.cpu.state)
    return "memory";
  return state.cpu.state == SchedulingState::schedule ? "" : "cpu";
}

bool changed(std::uint64_t wanted, std::uint64_t published, double min_change) {
  const auto distance = static_cast<double>(std::max(wanted, published) - std::min(wanted, published));
  return distance > 0 && distance >= min_change * static_cast<double>(published);
}

std::string patch_of(const json& cpu, const json& memory, const Names& names) {
  const json amounts{{names.cpu, cpu}, {names.memory, memory}};
  return model::json_text({{"status", {{"allocatable", amounts}, {"capacity", amounts}}}});
}

}  // namespace

Wanted wanted_of(const Berth& berth, bool taint) {
  Wanted wanted;
  if (!berth.state) return wanted;
  const std::string closed = closed_by(*berth.state);
  // Nothing else keeps work away then.
  if (!taint && !closed.empty()) return wanted;
  wanted.closed = closed;
  wanted.cpu_millis = whole(1000 * berth.state->cpu.for_best_effort(), kMaxCpuMillis);
  const std::uint64_t mib = whole(berth.state->memory.for_best_effort() / kMiB, kMaxMemoryBytes >> 20);
  wanted.memory_bytes = mib << 20;
  return wanted;
}

bool is_urgent(const Wanted& wanted, const Wanted& published) {
  return wanted.closed != published.closed || (wanted.cpu_millis == 0) != (published.cpu_millis == 0) ||
         (wanted.memory_bytes == 0) != (published.memory_bytes == 0);
}

bool is_news(const Wanted& wanted, const Wanted& published, double min_change) {
  return changed(wanted.cpu_millis, published.cpu_millis, min_change) ||
         changed(wanted.memory_bytes, published.memory_bytes, min_change);
}

std::string status_patch(const Wanted& wanted, const Names& names) {
  return patch_of(std::to_string(wanted.cpu_millis), std::to_string(wanted.memory_bytes), names);
}

std::string status_removal(const Names& names) { return patch_of(nullptr, nullptr, names); }

std::string describe(const Wanted& wanted) {
  return fmt::format("be-cpu {}, be-memory {}, {}", wanted.cpu_millis, wanted.memory_bytes,
                     wanted.closed.empty() ? "no taint" : "taint " + wanted.closed);
}

}  // namespace berth::kubernetes
