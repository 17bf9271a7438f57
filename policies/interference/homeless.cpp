// SPDX-License-Identifier: Apache-2.0
#include "policies/interference/homeless.h"

#include "policies/interference/warnings.h"

#include <optional>
#include <utility>

#include <fmt/core.h>

namespace berth::policies {

void keep_off_owned(const std::vector<Homeless>& homeless, const Node& node, const model::CpuSet& owned,
                    double now, InterferenceProposal& proposal) {
  model::CpuSet usable;
  for (int position = 0; position < node.size(); ++position) {
    if (node.usable(position)) usable.insert(node.cpu(position));
  }
  for (const auto& [workload, reason, fault] : homeless) {
    const auto& allowed = workload->allowed_cpus;
    const model::CpuSet may = allowed ? *allowed & usable : usable;
    const model::CpuSet rest = may - owned;
    const auto cores = measured_cores(*workload, now);
    const bool cut = !workload->force && cores && static_cast<double>(rest.size()) < *cores;
    model::Action action{.what = {}, .policy = "interference", .decision = {}, .reason = {}};
    const std::string before =
        fault.empty() ? std::string()
                      : fmt::format("pin {} is no longer valid: {}; ", workload->cpus.to_string(), fault);
    if (rest != may && !rest.empty() && !cut) {
      if (rest == workload->cpus) continue;
      action.what = model::PinAction{.workload = workload->id, .cpus = rest};
      action.reason = fmt::format("{}stays off the vCPUs that others own, as it gets none of its own: {}",
                                  before, reason);
    } else if (!workload->cpus.empty()) {
      action.what = model::UnpinAction{.workload = workload->id};
      action.reason = fmt::format("{}unplaceable: {}", before, reason);
    }
    if (!action.reason.empty()) proposal.actions.push_back(std::move(action));
    if (!cut || rest == may) continue;
    for (model::ServiceWarning& warning : proposal.findings.warnings) {
      if (warning.workload == workload->id && warning.cause != model::WarningCause::quota)
        warning.reason += fmt::format(
            "; it may run on vCPUs that others own, because the {} that none owns "
            "are fewer than it uses",
            rest.size());
    }
  }
}

}  // namespace berth::policies
