// SPDX-License-Identifier: Apache-2.0
#include "daemon/observe/past_usage.h"

#include "model/bounds.h"
#include "model/json_text.h"
#include "os/staged_file.h"

#include <cmath>
#include <iterator>
#include <system_error>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace berth::daemon {

namespace {

using nlohmann::json;

constexpr const char* kUsageSchema = "berth.usage/2";
// A thousand workloads with 60 samples each take some 4 MiB, and five times that to read.
constexpr std::uintmax_t kMostUsageBytes = std::uintmax_t{16} << 20;
// Older samples have no meaning for the present.
constexpr double kOldestSample_s = 600;

std::filesystem::path usage_file(const std::filesystem::path& state_dir) { return state_dir / "usage.json"; }

template <typename Figure>
void append(std::string& out, const Figure& figure) {
  const auto value = figure ? static_cast<double>(*figure) : std::nan("");
  out += std::isfinite(value) ? fmt::format(",{}", value) : ",null";
}

// [seconds since the boot, cpu, memory, progress, p99 and median of waiting, misses]
void append_sample(std::string& out, const model::UsageSample& sample, const os::Clock& clock) {
  out += fmt::format("[{},{}", clock.since_boot(sample.time), sample.cpu_cores);
  append(out, sample.memory_bytes);
  append(out, sample.progress);
  append(out, sample.runq_latency_us);
  append(out, sample.runq_latency_p50_us);
  append(out, sample.llc_mpki);
  out += ']';
}

std::optional<double> figure_at(const json& sample, std::size_t index, double most) {
  const json& value = sample.at(index);
  if (value.is_null()) return std::nullopt;
  const double figure = value.get<double>();
  if (!(figure >= 0 && figure <= most)) return std::nullopt;
  return figure;
}

std::optional<model::UsageSample> read_sample(const json& element, const os::Clock& clock) {
  // The limits of a snapshot.
  constexpr double kMostCores = 8192;
  constexpr double kMostBytesUsed = 9007199254740992.0;
  constexpr double kMostWait = 1e15;
  constexpr double kMostMisses = 1e6;
  model::UsageSample sample;
  const auto time = figure_at(element, 0, model::kLastTime_s);
  const auto cores = figure_at(element, 1, kMostCores);
  if (!time || !cores) return std::nullopt;
  sample.time = clock.of_boot(*time);
  sample.cpu_cores = *cores;
  if (const auto bytes = figure_at(element, 2, kMostBytesUsed))
    sample.memory_bytes = static_cast<std::uint64_t>(*bytes);
  if (const auto progress = figure_at(element, 3, 1)) sample.progress = *progress;
  if (const auto wait = figure_at(element, 4, kMostWait)) sample.runq_latency_us = static_cast<float>(*wait);
  if (const auto wait = figure_at(element, 5, kMostWait))
    sample.runq_latency_p50_us = static_cast<float>(*wait);
  if (const auto misses = figure_at(element, 6, kMostMisses)) sample.llc_mpki = static_cast<float>(*misses);
  return sample;
}

PastUsage read_past(const json& element, const os::Clock& clock) {
  const double now = clock.now();
  PastUsage past{.cgroup_id = element.at("cgroup").get<std::uint64_t>(), .usage = {}};
  for (const json& given : element.at("usage")) {
    const auto sample = read_sample(given, clock);
    if (!sample || sample->time > now || now - sample->time > kOldestSample_s) continue;
    if (past.usage.empty() || past.usage.back().time < sample->time) past.usage.push_back(*sample);
  }
  return past;
}

}  // namespace

model::Result<void> save_usage(const std::filesystem::path& state_dir, const std::string& boot_id,
                               const os::Clock& clock, const model::Snapshot& snapshot, const RunOf& run_of) {
  std::string text = fmt::format("{{\"schema\":\"{}\",\"boot\":{},\"workloads\":{{", kUsageSchema,
                                 model::json_text(boot_id));
  bool first = true;
  for (const model::Workload& workload : snapshot.workloads) {
    const std::uint64_t run = run_of(workload.id);
    if (run == 0 || workload.usage.empty() || text.size() > kMostUsageBytes / 2) continue;
    text += fmt::format("{}{}:{{\"cgroup\":{},\"usage\":[", first ? "" : ",\n", model::json_text(workload.id),
                        run);
    first = false;
    for (auto sample = workload.usage.begin(); sample != workload.usage.end(); ++sample) {
      if (sample != workload.usage.begin()) text += ',';
      append_sample(text, *sample, clock);
    }
    text += "]}";
  }
  return os::replace_file(usage_file(state_dir), text + "}}\n");
}

std::map<std::string, PastUsage> take_usage(const std::filesystem::path& state_dir,
                                            const std::string& boot_id, const os::Clock& clock,
                                            std::optional<std::string>& warning) {
  const std::filesystem::path file = usage_file(state_dir);
  std::map<std::string, PastUsage> by_id;
  warning = os::read_document(file, kMostUsageBytes, [&](const json& document) -> std::optional<std::string> {
    if (document.at("schema") != kUsageSchema) return fmt::format("it is not a {} document", kUsageSchema);
    if (document.at("boot") != boot_id) return std::nullopt;
    for (const auto& [id, element] : document.at("workloads").items()) {
      PastUsage past = read_past(element, clock);
      if (!past.usage.empty()) by_id.emplace(id, std::move(past));
    }
    return std::nullopt;
  });
  if (warning) by_id.clear();
  std::error_code ignored;
  std::filesystem::remove(file, ignored);
  return by_id;
}

}  // namespace berth::daemon
