// SPDX-License-Identifier: Apache-2.0
#include "cli/log_options.h"

#include "cli/similar.h"
#include "cli/since.h"
#include "cli/wall_clock.h"
#include "model/name.h"
#include "model/path.h"

#include <algorithm>
#include <vector>

#include <fmt/core.h>

namespace berth::cli {

namespace {

// docs/contract/log.md; "foreign-writer" and "operator" stand where no policy decided.
const std::vector<std::string> kKinds{
    "pin",          "unpin",  "set-cpu-quota", "set-memory-high", "set-memory-nodes",
    "set-cpu-idle", "evict",  "advertise",     "admit",           "restore",
    "leaf",         "foreign"};
const std::vector<std::string> kPolicies{"interference", "straggler", "eviction",      "oversell",
                                         "placement",    "operator",  "foreign-writer"};

std::string check(const std::vector<std::string>& known, const char* what, const std::string& value) {
  if (std::find(known.begin(), known.end(), value) != known.end()) return "";
  std::string list;
  for (const std::string& word : known) list += (list.empty() ? "" : ", ") + word;
  return fmt::format("there is no {} \"{}\"{}; there are {}", what, value, did_you_mean(value, known), list);
}

std::string check_kind(const std::string& value) { return check(kKinds, "kind", value); }
std::string check_policy(const std::string& value) { return check(kPolicies, "policy", value); }

}  // namespace

Outcome<std::map<std::string, std::string>> LogOptions::filter() const {
  std::map<std::string, std::string> filter;
  if (since) {
    const auto time = parse_since(*since, wall_s());
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

}  // namespace berth::cli
