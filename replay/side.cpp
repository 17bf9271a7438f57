// SPDX-License-Identifier: Apache-2.0
#include "replay/side.h"

#include "model/json.h"
#include "policies/decide.h"

#include <type_traits>
#include <utility>
#include <variant>

#include <fmt/core.h>

namespace berth::replay {

namespace {

std::string cores_text(const std::optional<double>& cores) {
  return cores ? fmt::format("{:.2f} cores", *cores) : "no limit";
}

std::string bytes_text(const std::optional<std::uint64_t>& bytes) {
  return bytes ? fmt::format("{} bytes", *bytes) : "no limit";
}

std::string memory_nodes_text(const model::CpuSet& nodes) {
  return nodes.empty() ? "all" : nodes.to_string();
}

struct Values {
  std::string before;
  std::string after;
};

// The value that stands, and the one that the action sets. `workload` is null where it does not run yet.
Values values_of(const model::Action& action, const model::Snapshot& seen, const model::Workload* workload) {
  return std::visit(
      [&](const auto& what) -> Values {
        using What = std::decay_t<decltype(what)>;
        if constexpr (std::is_same_v<What, model::PinAction>) {
          return {workload != nullptr ? workload->cpus.to_string() : "", what.cpus.to_string()};
        } else if constexpr (std::is_same_v<What, model::UnpinAction>) {
          return {workload != nullptr ? workload->cpus.to_string() : "", ""};
        } else if constexpr (std::is_same_v<What, model::SetCpuQuotaAction>) {
          return {workload != nullptr ? cores_text(workload->cpu_quota_cores) : "",
                  cores_text(what.cpu_quota_cores)};
        } else if constexpr (std::is_same_v<What, model::SetMemoryHighAction>) {
          return {workload != nullptr ? bytes_text(workload->memory_high_bytes) : "",
                  bytes_text(what.memory_high_bytes)};
        } else if constexpr (std::is_same_v<What, model::SetMemoryNodesAction>) {
          return {workload != nullptr ? memory_nodes_text(workload->memory_nodes) : "",
                  what.nodes ? memory_nodes_text(*what.nodes) : "as before"};
        } else if constexpr (std::is_same_v<What, model::SetCpuIdleAction>) {
          return {workload != nullptr && workload->cpu_idle ? "1" : "0", what.idle ? "1" : "as before"};
        } else if constexpr (std::is_same_v<What, model::EvictAction>) {
          return {"", model::to_string(what.how)};
        } else {
          const auto& said =
              what.resource == model::Resource::cpu ? seen.advertised.cpu : seen.advertised.memory;
          const auto before = said.value_or(model::AdvertisedResource());
          return {fmt::format("{} {} {:.2f}", model::to_string(what.resource), model::to_string(before.state),
                              before.factor),
                  fmt::format("{} {} {:.2f}", model::to_string(what.resource), model::to_string(what.state),
                              what.factor)};
        }
      },
      action.what);
}

}  // namespace

const std::vector<Decision>& Side::step(const model::Snapshot& recorded) {
  if (!standing_) standing_.emplace(recorded);
  standing_->put_on(recorded, seen_);
  plan_ = policies::decide(seen_, settings_);
  figures_.add(plan_, seen_);
  history_.add(plan_, seen_);
  decisions_.clear();
  for (const model::Action& action : plan_.actions) {
    const std::string* id = action.workload();
    const model::Workload* workload = id != nullptr ? find_workload(seen_, *id) : nullptr;
    Values values = values_of(action, seen_, workload);
    decisions_.push_back({.time = plan_.time,
                          .kind = action.kind(),
                          .workload = id != nullptr ? *id : "",
                          .before = std::move(values.before),
                          .after = std::move(values.after),
                          .action = action});
  }
  standing_->take(plan_, seen_, settings_.spark.hold_s);
  return decisions_;
}

void Side::finish() {
  figures_.finish();
  history_.finish();
}

}  // namespace berth::replay
