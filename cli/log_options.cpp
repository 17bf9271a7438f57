// SPDX-License-Identifier: Apache-2.0
#include "cli/log_options.h"

#include "cli/similar.h"
#include "config/units.h"
#include "model/attribute.h"
#include "model/name.h"
#include "model/number.h"
#include "model/path.h"
#include "os/clock.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/core.h>

namespace berth::cli {

namespace {

// docs/contract/log.md; those of attributes come first.
std::vector<std::string> kinds() {
  std::vector<std::string> list;
  for (std::size_t i = 0; i < model::kAttributes.size(); ++i) {
    const auto& row = row_of(static_cast<model::Attribute>(i));
    list.emplace_back(row.set);
    if (list.back() != row.give_back) list.emplace_back(row.give_back);
  }
  for (const char* other : {"evict", "advertise", "admit", "restore", "leaf", "foreign", "interrupts"})
    list.emplace_back(other);
  return list;
}
// "foreign-writer" and "operator" stand where no policy decided.
const std::vector<std::string> kPolicies{"interference", "straggler", "eviction", "oversell",
                                         "placement",    "quota",     "operator", "foreign-writer"};

std::string check(const std::vector<std::string>& known, const char* what, const std::string& value) {
  if (std::find(known.begin(), known.end(), value) != known.end()) return "";
  std::string list;
  for (const std::string& word : known) list += (list.empty() ? "" : ", ") + word;
  return fmt::format("there is no {} \"{}\"{}; there are {}", what, value, did_you_mean(value, known), list);
}

std::string check_kind(const std::string& value) { return check(kinds(), "kind", value); }
std::string check_policy(const std::string& value) { return check(kPolicies, "policy", value); }

std::tm local(double epoch_s) {
  const auto seconds = static_cast<std::time_t>(epoch_s);
  std::tm parts{};
  localtime_r(&seconds, &parts);
  return parts;
}

// The begin of the day that is so many days after that of `now`.
double midnight(double now, int days) {
  std::tm day = local(now);
  day.tm_hour = day.tm_min = day.tm_sec = 0;
  day.tm_mday += days;
  day.tm_isdst = -1;
  return static_cast<double>(std::mktime(&day));
}

// A time of the day, or a date with or without one; nullopt for other text.
std::optional<double> calendar(const std::string& text, double now) {
  for (const char* format : {"%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d", "%H:%M:%S", "%H:%M"}) {
    std::tm parts = local(now);
    parts.tm_hour = parts.tm_min = parts.tm_sec = 0;
    parts.tm_isdst = -1;
    const char* end = strptime(text.c_str(), format, &parts);
    if (end == nullptr || *end != '\0') continue;
    const std::tm asked = parts;
    const std::time_t time = std::mktime(&parts);
    // mktime(3) would make March of the 31st of February.
    if (parts.tm_mday != asked.tm_mday || parts.tm_mon != asked.tm_mon) return std::nullopt;
    return static_cast<double>(time);
  }
  return std::nullopt;
}

std::optional<double> number(std::string_view text) {
  const auto value = model::to_number<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

}  // namespace

Outcome<std::map<std::string, std::string>> LogOptions::filter() const {
  std::map<std::string, std::string> filter;
  if (since) {
    const auto time = parse_since(*since, os::epoch_s());
    if (!time) return tl::unexpected(time.error());
    filter["since"] = fmt::format("{:.3f}", *time);
  }
  if (workload) {
    // The bus would refuse it without naming the fault.
    if (!model::is_name(*workload)) {
      return problem(Exit::wrong_use, fmt::format("--workload: \"{}\" is not a workload's id", *workload));
    }
    filter["workload"] = *workload;
  }
  if (policy) filter["policy"] = *policy;
  if (kind) filter["kind"] = *kind;
  return filter;
}

bool LogOptions::accept(const Document& entry) const {
  return (!workload || model::names(*workload, text_of(entry, "workload"))) &&
         (!policy || text_of(entry, "policy") == *policy) && (!kind || text_of(entry, "kind") == *kind);
}

void declare_log_options(const Options& options, LogOptions& log, bool since, bool workload) {
  if (since) {
    options.option("--since", log.since, "Not older than 2h, yesterday, 10:30, 2026-11-21").type_name("TIME");
  }
  if (workload) options.option("--workload", log.workload, "Of this workload").type_name("WORKLOAD");
  options.option("--policy", log.policy, "Of this policy").type_name("NAME").check(check_policy);
  options.option("--kind", log.kind, "Of this kind: pin, evict, ...").type_name("KIND").check(check_kind);
}

Outcome<double> parse_since(const std::string& text, double now) {
  if (text == "today") return midnight(now, 0);
  if (text == "yesterday") return midnight(now, -1);
  if (text.starts_with("@")) {
    if (const auto time = number(std::string_view(text).substr(1))) return *time;
  }
  if (const auto time = calendar(text, now)) return *time;
  std::string_view age = text;
  if (age.starts_with("-")) age.remove_prefix(1);
  if (age.ends_with(" ago")) age.remove_suffix(4);
  if (const auto seconds = config::parse_duration_s(age)) return now - *seconds;
  return problem(Exit::wrong_use,
                 fmt::format("--since: \"{}\" is no time, such as 2h, yesterday, 10:30 or 2026-11-21", text));
}

}  // namespace berth::cli
