// SPDX-License-Identifier: Apache-2.0
#include "daemon/trial.h"

#include "model/json_text.h"

#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace berth::daemon {

using model::ErrorKind;

namespace {

model::Result<config::Settings> side_of(const Trial::Before& before, std::string_view toml,
                                        const char* name) {
  config::Settings base = before.settings;
  base.mode = before.enforced ? config::Mode::enforce : config::Mode::observe;
  auto side = config::trial_settings(base, toml, name);
  if (side && !before.enforced) side->policies.eviction.evict = side->policies.oversell.evict = false;
  return side;
}

}  // namespace

model::Result<Trial> Trial::begin(TrialCaller caller, Before before, std::string_view a, std::string_view b,
                                  double now) {
  auto first = side_of(before, a, "side a");
  if (!first) return model::fail(first.error());
  auto second = side_of(before, b, "side b");
  if (!second) return model::fail(second.error());
  Trial trial;
  trial.caller_ = std::move(caller);
  trial.before_ = std::move(before);
  trial.sides_ = {std::move(*first), std::move(*second)};
  trial.differs_ = config::differences(trial.sides_[0], trial.sides_[1]);
  trial.begun_ = now;
  trial.until_ = now + kFirstLease_s;
  if (trial.differs_.empty()) {
    return model::fail(ErrorKind::refused,
                       "the two sides do not differ: over the present configuration, both give each setting "
                       "the same value");
  }
  if (!trial.enforces()) {
    return model::fail(ErrorKind::refused,
                       "both sides only observe, so neither changes anything of the host; write mode = "
                       "\"enforce\" in one, or in both");
  }
  return trial;
}

std::string Trial::begin_json() const {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& [key, a, b] : differs_) list.push_back({{"key", key}, {"a", a}, {"b", b}});
  return model::json_text({{"schema", "berth.trial-begin/1"}, {"differs", std::move(list)}});
}

bool Trial::enforces() const {
  return sides_[0].mode == config::Mode::enforce || sides_[1].mode == config::Mode::enforce;
}

model::Result<void> Trial::use(std::string_view side, double lease_s, double now) {
  if (side != "a" && side != "b")
    return model::fail(ErrorKind::invalid_input, fmt::format("side \"{}\": must be a or b", side));
  if (!(lease_s >= kShortestLease_s && lease_s <= kLongestLease_s)) {
    return model::fail(ErrorKind::invalid_input, fmt::format("a lease of {} s: must be {} to {} s", lease_s,
                                                             kShortestLease_s, kLongestLease_s));
  }
  side_ = side == "a" ? 0 : 1;
  until_ = now + lease_s;
  return {};
}

std::string Trial::who() const {
  return caller_.pid > 0 ? fmt::format("process {} of user {}", caller_.pid, caller_.uid)
                         : fmt::format("a process of user {}", caller_.uid);
}

TrialReport Trial::report(double wall_ahead_s) const {
  return {.kept = false,
          .pid = caller_.pid,
          .uid = caller_.uid,
          .side = !side_        ? ""
                  : *side_ == 0 ? "a"
                                : "b",
          .begun = begun_ + wall_ahead_s,
          .until = until_ + wall_ahead_s};
}

}  // namespace berth::daemon
