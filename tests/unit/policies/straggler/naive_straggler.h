// SPDX-License-Identifier: Apache-2.0
// The straggler policy, written again after docs/decisions/stragglers.md and lending.md, with
// maps and loops and no care for time. It uses nothing of policies/ but the settings.
#pragma once

#include "model/snapshot.h"
#include "policies/settings.h"

#include <map>
#include <optional>
#include <set>
#include <string>

namespace berth::policies::naive {

enum class What { cpu, memory };

struct Judged {
  bool straggler = false;
  std::optional<double> v1;
  std::optional<double> v2;
  std::optional<double> finish;
  std::map<What, double> extension;
  std::map<What, double> granted;
};

struct Help {
  std::map<std::string, Judged> tasks;
  std::map<What, double> idle;
  std::map<What, double> needed;
  std::map<What, std::map<std::string, double>> reclaimable;  // above 0
  std::set<std::string> keeping;
  std::map<What, std::map<std::string, double>> room;  // of pending workloads
  // New limits by workload; nullopt: none.
  std::map<What, std::map<std::string, std::optional<double>>> limits;
  std::map<What, std::map<std::string, double>> lacks;
};

Help help(const model::Snapshot& snapshot, const PolicySettings& settings);

}  // namespace berth::policies::naive
