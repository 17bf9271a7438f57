// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/trial_json.h"

namespace berth::daemon {

using nlohmann::json;

json trial_json(const std::optional<TrialReport>& report) {
  if (!report) return nullptr;
  return {{"kept", report->kept},   {"pid", report->pid > 0 ? json(report->pid) : json(nullptr)},
          {"user", report->uid},    {"side", report->side.empty() ? json(nullptr) : json(report->side)},
          {"begun", report->begun}, {"until", report->until ? json(*report->until) : json(nullptr)}};
}

}  // namespace berth::daemon
