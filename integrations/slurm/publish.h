// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "integrations/slurm/decide.h"
#include "integrations/slurm/options.h"
#include "model/error.h"

#include <optional>
#include <string>
#include <vector>

namespace berth::slurm {

// One run: what it changed, or would change with --dry-run. Both are empty where nothing is to change.
struct Published {
  std::string text;                // in words
  std::vector<std::string> words;  // the call of scontrol
  std::string warning;             // about slurm.conf
};

// Compares the node's record in Slurm with `berth`, and changes it where they differ: one call of scontrol,
// or two, and a third where the record gets its first amount of the resource. `environment`: of scontrol.
// Error: scontrol could not be run or refused, or Slurm ignored the amount; the message says which.
model::Result<Published> publish(const std::string& node, const Berth& berth, const Options& options,
                                 const std::vector<std::string>& environment);

}  // namespace berth::slurm
