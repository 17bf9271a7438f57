// SPDX-License-Identifier: Apache-2.0
#include "cgroup/sampler_parse.h"

#include "model/json.h"
#include "model/number.h"
#include "model/text.h"

namespace berth::cgroup {

namespace {

// The word behind `key` and a blank at the start of a line; empty where there is none.
std::string_view value_of(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    std::string_view line = model::take_line(text);
    if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == ' ') {
      line.remove_prefix(key.size() + 1);
      return line;
    }
  }
  return {};
}

std::string_view without_end(std::string_view text) {
  return model::trimmed_end(text, model::kEndOfControlFile);
}

}  // namespace

std::optional<std::uint64_t> parse_cpu_usage_usec(std::string_view cpu_stat) {
  return model::to_number<std::uint64_t>(without_end(value_of(cpu_stat, "usage_usec")));
}

std::optional<std::uint64_t> parse_throttled_ns(std::string_view cpu_stat) {
  constexpr std::uint64_t kMost_us = UINT64_MAX / 1000;
  const auto us = model::to_number<std::uint64_t>(without_end(value_of(cpu_stat, "throttled_usec")));
  return us && *us <= kMost_us ? std::optional(*us * 1000) : std::nullopt;
}

std::optional<std::uint64_t> parse_nr_throttled(std::string_view cpu_stat) {
  return model::to_number<std::uint64_t>(without_end(value_of(cpu_stat, "nr_throttled")));
}

std::optional<std::uint64_t> parse_inactive_file(std::string_view memory_stat) {
  return parse_bytes(value_of(memory_stat, "inactive_file"));
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  const auto bytes = model::to_number<std::uint64_t>(without_end(text));
  return bytes && *bytes <= model::kMaxBytes ? bytes : std::nullopt;
}

std::optional<double> parse_some_avg10(std::string_view pressure) {
  std::string_view some = value_of(pressure, "some");
  constexpr std::string_view key = "avg10=";
  if (!some.starts_with(key)) return std::nullopt;
  some.remove_prefix(key.size());
  const auto percent = model::to_number<double>(without_end(some.substr(0, some.find(' '))));
  if (!percent || !(*percent >= 0 && *percent <= 100)) return std::nullopt;
  return percent;
}

std::optional<bool> parse_populated(std::string_view events) {
  const std::string_view value = without_end(value_of(events, "populated"));
  if (value == "1") return true;
  if (value == "0") return false;
  return std::nullopt;
}

}  // namespace berth::cgroup
