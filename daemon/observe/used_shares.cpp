// SPDX-License-Identifier: Apache-2.0
#include "daemon/observe/used_shares.h"

#include "model/json_text.h"
#include "os/staged_file.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace berth::daemon {

namespace {

using nlohmann::json;

constexpr const char* kSchema = "berth.used-shares/1";
// Far more than a day needs.
constexpr std::uintmax_t kMostBytes = 262144;
constexpr double kMostShare = 1e6;  // the largest that a snapshot takes

// Two days of them.
constexpr std::size_t kMostEntries = 600;

bool is_share(double value) { return value >= 0 && value <= kMostShare; }

void read_shares(const json& list, std::vector<model::UsedShare>& into) {
  for (const json& element : list) {
    const model::UsedShare share{.time = element.at(0).get<double>(),
                                 .cpu = element.at(1).get<double>(),
                                 .memory = element.at(2).get<double>()};
    if (std::isfinite(share.time) && is_share(share.cpu) && is_share(share.memory) &&
        into.size() < kMostEntries)
      into.push_back(share);
  }
}

json shares_json(const std::vector<model::UsedShare>& shares, double wall_ahead_s) {
  json list = json::array();
  for (const model::UsedShare& share : shares)
    list.push_back({share.time + wall_ahead_s, share.cpu, share.memory});
  return list;
}

bool is_earlier(const model::UsedShare& a, const model::UsedShare& b) { return a.time < b.time; }

}  // namespace

UsedShares::UsedShares(const std::filesystem::path& state_dir, os::Clock clock, std::string boot_id,
                       std::optional<std::string>& warning)
    : file_(state_dir / "used_shares.json"),
      clock_(std::move(clock)),
      boot_id_(std::move(boot_id)),
      began_(clock_.now()) {
  warning =
      os::read_document(file_.file(), kMostBytes, [this](const json& document) -> std::optional<std::string> {
        if (document.at("schema") != kSchema) return fmt::format("it is not a {} document", kSchema);
        const bool same_boot = !boot_id_.empty() && document.value("boot", std::string()) == boot_id_;
        const double booted = document.value("booted", 0.0);
        auto& own = same_boot ? entries_ : before_;
        read_shares(document.at("shares"), own);
        for (model::UsedShare& share : entries_) share.time = clock_.of_boot(share.time - booted);
        read_shares(document.value("before", json::array()), before_);
        return std::nullopt;
      });
  if (warning) {
    before_.clear();
    entries_.clear();
  }
  for (auto* entries : {&before_, &entries_}) std::sort(entries->begin(), entries->end(), is_earlier);
  gather(began_);
}

void UsedShares::gather(double now) {
  const auto is_over = [now](const model::UsedShare& entry) {
    return entry.time + kSpan_s <= now - kDay_s || entry.time > now;
  };
  std::erase_if(entries_, is_over);
  if (now - began_ > kDay_s) before_.clear();
  all_ = before_;
  const double ahead_s = clock_.wall_ahead_s();
  for (model::UsedShare& entry : all_) entry.time -= ahead_s;
  // Whatever the wall clock shows, they were before this daemon began.
  std::erase_if(all_, [&](const model::UsedShare& entry) { return is_over(entry) || entry.time > began_; });
  all_.insert(all_.end(), entries_.begin(), entries_.end());
  std::stable_sort(all_.begin(), all_.end(), is_earlier);
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
  if (plan.time >= minute_ + kMinute_s) {
    begun = close_minute();
    minute_ = plan.time;
    gather(plan.time);
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

std::string UsedShares::document() const {
  const double ahead_s = clock_.wall_ahead_s();
  const json document = {{"schema", kSchema},
                         {"boot", boot_id_},
                         {"booted", clock_.of_boot(0) + ahead_s},
                         {"shares", shares_json(entries_, ahead_s)},
                         {"before", shares_json(before_, 0)}};
  return model::json_text(document) + "\n";
}

model::Result<void> UsedShares::save() { return file_.save(document()); }

model::Result<void> UsedShares::save_in_background() {
  if (file_.is_busy()) return {};
  auto before = file_.take_outcome();
  auto begun = file_.begin(document());
  return begun ? before : begun;
}

}  // namespace berth::daemon
