// SPDX-License-Identifier: Apache-2.0
#include "daemon/ledger/log_filter.h"

#include "model/number.h"
#include "model/path.h"

#include <cmath>

#include <fmt/core.h>

namespace berth::daemon {

namespace {

model::Result<double> parse_time(const std::string& text) {
  const auto time = model::to_number<double>(text);
  if (!time || !std::isfinite(*time)) {
    return model::fail(model::ErrorKind::invalid_input,
                       fmt::format("since: \"{}\" is no number of seconds since 1970", text));
  }
  return *time;
}

}  // namespace

bool accepts(const LogFilter& filter, const LogEntry& entry) {
  return (!filter.since || entry.time >= *filter.since) &&
         (filter.workload.empty() || model::names(filter.workload, entry.workload)) &&
         (filter.policy.empty() || entry.policy == filter.policy) &&
         (filter.kind.empty() || entry.kind == filter.kind);
}

model::Result<LogFilter> parse_filter(const std::map<std::string, std::string>& values) {
  LogFilter filter;
  for (const auto& [key, value] : values) {
    if (value.empty()) return model::fail(model::ErrorKind::invalid_input, key + ": is empty");
    if (key == "since") {
      const auto time = parse_time(value);
      if (!time) return model::fail(time.error());
      filter.since = *time;
    } else if (key == "workload") {
      filter.workload = value;
    } else if (key == "policy") {
      filter.policy = value;
    } else if (key == "kind") {
      filter.kind = value;
    } else {
      return model::fail(model::ErrorKind::invalid_input,
                         fmt::format("\"{}\": there are since, workload, policy and kind", key));
    }
  }
  return filter;
}

}  // namespace berth::daemon
