// SPDX-License-Identifier: Apache-2.0
#include "model/plan.h"

#include "model/json.h"

#include <type_traits>

namespace berth::model {

const std::string* Action::workload() const {
  return std::visit(
      [](const auto& action) -> const std::string* {
        if constexpr (std::is_same_v<std::decay_t<decltype(action)>, Advertise>)
          return nullptr;
        else
          return &action.workload;
      },
      what);
}

const char* Action::kind() const {
  struct Names {
    const char* operator()(const Set& set) const { return row_of(attribute_of(set.value)).set; }
    const char* operator()(const GiveBack& back) const { return row_of(back.attribute).give_back; }
    const char* operator()(const Evict&) const { return "evict"; }
    const char* operator()(const Advertise&) const { return "advertise"; }
  };
  return std::visit(Names{}, what);
}

std::optional<Attribute> Action::attribute() const {
  if (const auto* set = std::get_if<Set>(&what)) return attribute_of(set->value);
  if (const auto* back = std::get_if<GiveBack>(&what)) return back->attribute;
  return std::nullopt;
}

bool Action::gives_back(Attribute attribute) const {
  const auto* back = std::get_if<GiveBack>(&what);
  return back != nullptr && back->attribute == attribute;
}

const char* to_string(EvictionStep step) {
  switch (step) {
    case EvictionStep::decommission:
      return "decommission";
    case EvictionStep::terminate:
      return "terminate";
    case EvictionStep::kill:
      break;
  }
  return "kill";
}

const char* to_string(Resource resource) { return resource == Resource::cpu ? "cpu" : "memory"; }

const char* to_string(SchedulingState state) {
  switch (state) {
    case SchedulingState::schedule:
      return "schedule";
    case SchedulingState::no_schedule:
      return "no-schedule";
    case SchedulingState::evict:
      break;
  }
  return "evict";
}

const char* to_string(ModelOrigin origin) {
  switch (origin) {
    case ModelOrigin::fallback:
      return "default";
    case ModelOrigin::given:
      return "given";
    case ModelOrigin::fitted:
      break;
  }
  return "fitted";
}

const char* to_string(WarningCause cause) {
  switch (cause) {
    case WarningCause::quota:
      return "quota";
    case WarningCause::place:
      return "place";
    case WarningCause::priority:
      return "priority";
    case WarningCause::use:
      break;
  }
  return "use";
}

const char* to_string(WaitCause cause) {
  switch (cause) {
    case WaitCause::quota:
      return "quota";
    case WaitCause::vcpus:
      return "vcpus";
    case WaitCause::best_effort:
      return "best-effort";
    case WaitCause::unknown:
      break;
  }
  return "unknown";
}

const char* to_string(HeldCause cause) {
  switch (cause) {
    case HeldCause::extended:
      return "extended";
    case HeldCause::lent:
      return "lent";
    case HeldCause::lifted:
      return "lifted";
    case HeldCause::preempted:
      break;
  }
  return "preempted";
}

const char* to_string(LimitMove::Kind kind) {
  switch (kind) {
    case LimitMove::Kind::reclaim:
      return "reclaim";
    case LimitMove::Kind::preempt:
      return "preempt";
    case LimitMove::Kind::recall:
      return "recall";
    case LimitMove::Kind::restore:
      return "restore";
    case LimitMove::Kind::release:
      break;
  }
  return "release";
}

const char* to_string(EvictionCandidate::Kind kind) {
  switch (kind) {
    case EvictionCandidate::Kind::executor:
      return "executor";
    case EvictionCandidate::Kind::driver:
      return "driver";
    case EvictionCandidate::Kind::other:
      break;
  }
  return "other";
}

const char* to_string(EvictionTrigger trigger) {
  switch (trigger) {
    case EvictionTrigger::none:
      return "none";
    case EvictionTrigger::need:
      return "need";
    case EvictionTrigger::pressure:
      break;
  }
  return "pressure";
}

}  // namespace berth::model
