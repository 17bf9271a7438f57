// SPDX-License-Identifier: Apache-2.0
#include "spark/event_log.h"

#include "spark/json_reader.h"

#include <algorithm>
#include <array>
#include <utility>

namespace berth::spark {

namespace {

using nlohmann::json;

// Spark writes the kind of an event first.
constexpr std::size_t kKindWithin = 64;
constexpr std::array<std::string_view, 2> kKinds{"\"SparkListenerJobStart\"",
                                                 "\"SparkListenerStageSubmitted\""};

bool of_interest(std::string_view line) {
  const std::string_view start = line.substr(0, kKindWithin);
  return std::any_of(kKinds.begin(), kKinds.end(),
                     [&](std::string_view kind) { return start.find(kind) != std::string_view::npos; });
}

}  // namespace

void EventLog::take_line(std::string_view line) {
  JsonReader in(line);
  if (in.failed()) return;
  const auto take_stage = [&](const json& stage) {
    const int id = in.integer(stage, "Stage ID");
    const json* its = in.member(stage, "Parent IDs");
    if (its == nullptr) return;
    auto parents = in.integers(*its, "Parent IDs");
    if (in.failed() || count_ + parents.size() + 1 > kMostParents) return;
    if (parents_.emplace(id, parents).second) count_ += parents.size() + 1;
  };
  if (const json* stage = in.member(in.root(), "Stage Info"); stage != nullptr) take_stage(*stage);
  const json* stages = in.member(in.root(), "Stage Infos");
  if (stages == nullptr || in.array(*stages, "Stage Infos") == nullptr) return;
  for (const json& stage : *stages) take_stage(stage);
}

void EventLog::take(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    if (!passed_) {
      open_.append(part.substr(0, kLongestLine + 1 - std::min(open_.size(), kLongestLine)));
      passed_ = open_.size() > kLongestLine || (open_.size() >= kKindWithin && !of_interest(open_));
    }
    if (passed_) open_ = {};
    if (end == std::string_view::npos) return;
    if (!passed_ && of_interest(open_)) take_line(open_);
    open_.clear();
    passed_ = false;
    bytes.remove_prefix(end + 1);
  }
}

}  // namespace berth::spark
