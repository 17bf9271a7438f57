// SPDX-License-Identifier: Apache-2.0
#include "spark/sparkd/event_log.h"

#include "spark/sparkd/json_reader.h"

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

const JsonParts kParts{.members = {"Parent IDs", "Stage ID", "Stage Info"}, .lists = {"Stage Infos"}};

bool of_interest(std::string_view line) {
  const std::string_view start = line.substr(0, kKindWithin);
  return std::any_of(kKinds.begin(), kKinds.end(),
                     [&](std::string_view kind) { return start.find(kind) != std::string_view::npos; });
}

}  // namespace

void EventLog::take_line(std::string_view line) {
  JsonReader in;
  const auto take_stage = [&](const json& stage) {
    const int id = in.integer(stage, "Stage ID");
    const json* its = in.member(stage, "Parent IDs");
    if (its == nullptr) return;
    auto parents = in.integers(*its, "Parent IDs");
    if (in.failed() || count_ + parents.size() + 1 > kMostParents) return;
    const std::size_t count = parents.size() + 1;
    if (parents_.emplace(id, std::move(parents)).second) count_ += count;
  };
  in.read(line, kParts, [&](const std::string&, const json& stage) { take_stage(stage); });
  if (in.failed()) return;
  if (const json* stage = in.member(in.root(), "Stage Info"); stage != nullptr) take_stage(*stage);
}

std::size_t EventLog::drop_open() {
  const std::size_t dropped = open_.size();
  release_open();
  return dropped;
}

// An assignment of an empty text keeps the memory.
void EventLog::release_open() { std::string().swap(open_); }

std::size_t EventLog::bytes() const {
  constexpr std::size_t kStage = 128;  // a node of the map, with a vector
  return open_.capacity() + parents_.size() * kStage + count_ * sizeof(int);
}

void EventLog::take(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    if (!passed_) {
      open_.append(part.substr(0, kLongestLine + 1 - std::min(open_.size(), kLongestLine)));
      passed_ = open_.size() > kLongestLine || (open_.size() >= kKindWithin && !of_interest(open_));
    }
    if (passed_) release_open();
    if (end == std::string_view::npos) return;
    if (!passed_ && of_interest(open_)) take_line(open_);
    open_.clear();
    passed_ = false;
    bytes.remove_prefix(end + 1);
  }
}

}  // namespace berth::spark
