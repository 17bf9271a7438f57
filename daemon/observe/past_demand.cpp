// SPDX-License-Identifier: Apache-2.0
#include "daemon/observe/past_demand.h"

#include "model/bounds.h"
#include "model/json.h"
#include "model/json_text.h"
#include "os/staged_file.h"

#include <cstdint>
#include <system_error>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace berth::daemon {

namespace {

using nlohmann::json;

constexpr const char* kDemandSchema = "berth.demand/1";
constexpr std::uintmax_t kMostDemandBytes = std::uintmax_t{1} << 20;
// Older readings have no meaning for the present.
constexpr double kOldestReading_s = 600;

std::filesystem::path demand_file(const std::filesystem::path& state_dir) {
  return state_dir / "demand.json";
}

bool is_within(double value, double most) { return value >= 0 && value <= most; }

std::vector<model::MemoryReading> read_readings(const json& list, const os::Clock& clock) {
  const double now = clock.now();
  std::vector<model::MemoryReading> readings;
  for (const json& element : list) {
    const auto time = element.at(0).get<double>();
    const auto bytes = element.at(1).get<double>();
    if (!is_within(time, model::kLastTime_s) || !is_within(bytes, static_cast<double>(model::kMaxBytes)))
      continue;
    const model::MemoryReading reading{clock.of_boot(time), static_cast<std::uint64_t>(bytes)};
    if (reading.time < 0 || reading.time > now || now - reading.time > kOldestReading_s) continue;
    if (readings.empty() || readings.back().time < reading.time) model::add_reading(readings, reading);
  }
  return readings;
}

std::vector<double> read_durations(const json& list) {
  std::vector<double> durations;
  for (const json& element : list) {
    const auto duration = element.get<double>();
    if (is_within(duration, model::kLastTime_s) && durations.size() < model::kMostEvictionDurations)
      durations.push_back(duration);
  }
  return durations;
}

}  // namespace

model::Result<void> save_demand(const std::filesystem::path& state_dir, const std::string& boot_id,
                                const os::Clock& clock, const model::Snapshot& snapshot) {
  std::string text =
      fmt::format("{{\"schema\":\"{}\",\"boot\":{},\"readings\":[", kDemandSchema, model::json_text(boot_id));
  const char* separator = "";
  for (const model::MemoryReading& reading : snapshot.memory_readings) {
    text += fmt::format("{}[{},{}]", separator, clock.since_boot(reading.time), reading.bytes);
    separator = ",";
  }
  text += "],\"eviction_durations\":[";
  separator = "";
  for (const double duration : snapshot.eviction_durations_s) {
    text += fmt::format("{}{}", separator, duration);
    separator = ",";
  }
  return os::replace_file(demand_file(state_dir), text + "]}\n");
}

PastDemand take_demand(const std::filesystem::path& state_dir, const std::string& boot_id,
                       const os::Clock& clock, std::optional<std::string>& warning) {
  const std::filesystem::path file = demand_file(state_dir);
  PastDemand past;
  warning =
      os::read_document(file, kMostDemandBytes, [&](const json& document) -> std::optional<std::string> {
        if (document.at("schema") != kDemandSchema)
          return fmt::format("it is not a {} document", kDemandSchema);
        past.durations_s = read_durations(document.at("eviction_durations"));
        if (!boot_id.empty() && document.at("boot") == boot_id)
          past.readings = read_readings(document.at("readings"), clock);
        return std::nullopt;
      });
  if (warning) past = {};
  std::error_code ignored;
  std::filesystem::remove(file, ignored);
  return past;
}

}  // namespace berth::daemon
