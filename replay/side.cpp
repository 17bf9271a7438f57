// SPDX-License-Identifier: Apache-2.0
#include "replay/side.h"

#include "model/attribute.h"
#include "model/json.h"
#include "policies/decide.h"

#include <type_traits>
#include <utility>
#include <variant>

#include <fmt/core.h>

namespace berth::replay {

namespace {

struct Values {
  std::string before;
  std::string after;
};

std::string text_of(const model::AttributeValue& value) {
  if (const auto* cpus = std::get_if<model::CpuSet>(&value)) return cpus->to_string();
  if (const auto* bound = std::get_if<model::MemoryNodes>(&value)) return bound->nodes.to_string();
  if (const auto* priority = std::get_if<model::LowPriority>(&value))
    return *priority == model::LowPriority::idle ? "1" : "0 1";
  return model::words(value);
}

std::string words_now(const model::Workload& workload, model::Attribute attribute) {
  if (const auto value = model::value_in(workload, attribute)) return text_of(*value);
  if (attribute == model::Attribute::memory_nodes) return "all";
  return attribute == model::Attribute::cpus ? "" : "0";
}

std::string priority_now(const model::Snapshot& seen, const std::string& id) {
  const auto* group = find_group(seen, id);
  const auto priority = group != nullptr ? model::priority_of(*group) : std::nullopt;
  return priority ? text_of(*priority) : "the usual one";
}

// The value that stands, and the one that the action sets. `workload` is null where it does not run yet.
Values values_of(const model::Action& action, const model::Snapshot& seen, const model::Workload* workload) {
  if (const auto attribute = action.attribute()) {
    const auto* set = std::get_if<model::Set>(&action.what);
    const std::string back = *attribute == model::Attribute::cpus ? "" : "as before";
    if (*attribute == model::Attribute::cpu_idle)
      return {priority_now(seen, *action.workload()), set != nullptr ? text_of(set->value) : back};
    if (const auto* other = find_other(seen, *action.workload()); other != nullptr && workload == nullptr)
      return {other->held ? text_of(*other->held) : "", set != nullptr ? text_of(set->value) : back};
    return {workload != nullptr ? words_now(*workload, *attribute) : "",
            set != nullptr ? text_of(set->value) : back};
  }
  if (const auto* eviction = std::get_if<model::Evict>(&action.what))
    return {"", model::to_string(eviction->how)};
  const auto& what = std::get<model::Advertise>(action.what);
  const auto& said = what.resource == model::Resource::cpu ? seen.advertised.cpu : seen.advertised.memory;
  const auto before = said.value_or(model::AdvertisedResource());
  return {fmt::format("{} {} {:.2f}", model::to_string(what.resource), model::to_string(before.state),
                      before.factor),
          fmt::format("{} {} {:.2f}", model::to_string(what.resource), model::to_string(what.state),
                      what.factor)};
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
  standing_->take(plan_, seen_, settings_);
  return decisions_;
}

void Side::finish() {
  figures_.finish();
  history_.finish();
}

}  // namespace berth::replay
