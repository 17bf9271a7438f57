// SPDX-License-Identifier: Apache-2.0
#include "daemon/observe/used_shares.h"

#include "model/json_text.h"
#include "os/staged_file.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace berth::daemon {

namespace {

using nlohmann::json;

constexpr const char* kSchema = "berth.used-shares/1";
// Far more than a day needs.
constexpr std::uintmax_t kMostBytes = 256 * 1024;
constexpr double kMostShare = 1e6;  // the largest that a snapshot takes

bool is_share(double value) { return value >= 0 && value <= kMostShare; }

}  // namespace

UsedShares::UsedShares(const std::filesystem::path& state_dir, double now,
                       std::optional<std::string>& warning)
    : file_(state_dir / "used_shares.json") {
  warning = os::read_document(file_, kMostBytes, [this](const json& document) -> std::optional<std::string> {
    if (document.at("schema") != kSchema) return fmt::format("it is not a {} document", kSchema);
    for (const json& element : document.at("shares")) {
      const model::UsedShare share{.time = element.at(0).get<double>(),
                                   .cpu = element.at(1).get<double>(),
                                   .memory = element.at(2).get<double>()};
      const bool follows = entries_.empty() || entries_.back().time < share.time;
      if (std::isfinite(share.time) && is_share(share.cpu) && is_share(share.memory) && follows)
        entries_.push_back(share);
    }
    return std::nullopt;
  });
  if (warning) entries_.clear();
  forget_old(now);
}

// A time in the future comes from a clock that was set back.
void UsedShares::forget_old(double now) {
  std::erase_if(entries_, [now](const model::UsedShare& entry) {
    return entry.time + kSpan_s <= now - kDay_s || entry.time > now;
  });
}

bool UsedShares::close_minute() {
  if (readings_ == 0) return false;
  const double begins = std::floor(minute_ / kSpan_s) * kSpan_s;
  const bool begun = entries_.empty() || entries_.back().time < begins;
  if (begun) entries_.push_back({.time = begins});
  model::UsedShare& entry = entries_.back();
  entry.cpu = std::min(kMostShare, std::max(entry.cpu, cpu_sum_ / readings_));
  entry.memory = std::min(kMostShare, std::max(entry.memory, memory_most_));
  cpu_sum_ = 0;
  readings_ = 0;
  memory_most_ = 0;
  return begun;
}

bool UsedShares::take(const model::Plan& plan) {
  if (!plan.findings.oversell) return false;
  bool begun = false;
  if (plan.time < minute_ || plan.time >= minute_ + kMinute_s) {
    begun = close_minute();
    minute_ = plan.time;
    forget_old(plan.time);
  }
  const auto& cpu = plan.findings.oversell->cpu.used_share;
  const auto& memory = plan.findings.oversell->memory.used_share;
  if (cpu && memory) {
    cpu_sum_ += *cpu;
    memory_most_ = std::max(memory_most_, *memory);
    ++readings_;
  }
  return begun;
}

model::Result<void> UsedShares::save() const {
  json shares = json::array();
  for (const model::UsedShare& entry : entries_) shares.push_back({entry.time, entry.cpu, entry.memory});
  return os::replace_file(file_,
                          model::json_text({{"schema", kSchema}, {"shares", std::move(shares)}}) + "\n");
}

}  // namespace berth::daemon
