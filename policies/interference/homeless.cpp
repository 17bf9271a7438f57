// SPDX-License-Identifier: Apache-2.0
#include "policies/interference/homeless.h"

#include "policies/interference/warnings.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/core.h>

namespace berth::policies {

namespace {

using model::CpuSet;

// Cores that no service without a place uses yet, by vCPU that none owns.
class Room {
 public:
  explicit Room(const CpuSet& cpus) {
    for (const int cpu : cpus) free_.emplace(cpu, 1);
  }

  bool fits(const CpuSet& cpus, double cores) const {
    double sum = 0;
    for (const int cpu : cpus) sum += free_.at(cpu);
    return cores <= sum + kRounding;
  }
  // As far as there is room.
  void take(const CpuSet& cpus, double cores) {
    for (const int cpu : cpus) {
      double& free = free_.at(cpu);
      const double part = std::min(free, cores);
      free -= part;
      cores -= part;
    }
  }

 private:
  // Sums of quotients differ in the last bit.
  static constexpr double kRounding = 1e-9;

  std::map<int, double> free_;
};

// Where a service without a place may run.
struct Rest {
  CpuSet may;
  CpuSet cpus;  // of `may`, those that none owns
  bool open() const { return cpus != may; }
};

enum class Outcome { free, kept, cut };  // left as it is, kept to the rest, not kept because that would cut

// The use that the service may have: a new one is not measured yet, and may use all that it asks for. The
// mean since its creation counts for a pinned one too, so that the pin does not undo itself.
double claim(const Homeless& service, const CpuSet& cpus, double now) {
  const model::Workload& workload = *service.workload;
  if (const auto cores = measured_cores(workload, now)) return *cores;
  if (const auto cores = mean_cores_of_life(workload, now)) return *cores;
  return std::min(static_cast<double>(cpus.size()), std::max(0.0, static_cast<double>(*workload.vcpus)));
}

// Services that share a rest must fit into it together. Those that run there in any case come first, and
// then their order counts.
std::vector<Outcome> keep_together(const std::vector<Homeless>& homeless, const std::vector<Rest>& rests,
                                   Room room, double now) {
  std::vector<Outcome> outcomes(homeless.size(), Outcome::free);
  for (const bool in_any_case : {true, false}) {
    for (std::size_t i = 0; i < homeless.size(); ++i) {
      const Rest& rest = rests[i];
      const bool stays = !rest.open() || homeless[i].workload->force;
      if (stays != in_any_case) continue;
      const double cores = claim(homeless[i], rest.cpus, now);
      if (!stays && (rest.cpus.empty() || !room.fits(rest.cpus, cores))) {
        outcomes[i] = Outcome::cut;
        continue;
      }
      if (rest.open() && !rest.cpus.empty()) outcomes[i] = Outcome::kept;
      room.take(rest.cpus, cores);
    }
  }
  return outcomes;
}

std::string warning_of(Outcome outcome, const Rest& rest, bool alone) {
  if (outcome == Outcome::kept)
    return fmt::format("; berth keeps it to vCPUs {}, which none owns", rest.cpus.to_string());
  return fmt::format("; it may run on vCPUs that others own, because the {} that none owns are fewer than {}",
                     rest.cpus.size(), alone ? "it uses" : "the services without a place need");
}

}  // namespace

bool is_older(const model::Workload& a, const model::Workload& b) {
  return std::tie(a.created, a.id) < std::tie(b.created, b.id);
}

void keep_off_owned(std::vector<Homeless> homeless, const Node& node, const CpuSet& owned, double now,
                    InterferenceProposal& proposal) {
  std::sort(homeless.begin(), homeless.end(),
            [](const Homeless& a, const Homeless& b) { return is_older(*a.workload, *b.workload); });
  CpuSet usable = node.reserved();
  for (int position = 0; position < node.size(); ++position) {
    if (node.usable(position)) usable.insert(node.cpu(position));
  }
  std::vector<Rest> rests;
  rests.reserve(homeless.size());
  for (const Homeless& service : homeless) {
    const auto& allowed = service.workload->allowed_cpus;
    CpuSet may = allowed ? *allowed & usable : usable;
    CpuSet rest = may - owned;
    rests.push_back({std::move(may), std::move(rest)});
  }
  const auto outcomes = keep_together(homeless, rests, Room(usable - owned), now);
  for (std::size_t i = 0; i < homeless.size(); ++i) {
    const auto& [workload, reason, fault] = homeless[i];
    const Rest& rest = rests[i];
    model::Action action{.what = {}, .policy = "interference", .decision = {}, .reason = {}};
    const std::string before =
        fault.empty() ? std::string()
                      : fmt::format("pin {} is no longer valid: {}; ", workload->cpus.to_string(), fault);
    if (outcomes[i] == Outcome::kept && rest.cpus != workload->cpus) {
      action.what = model::Set{.workload = workload->id, .value = rest.cpus};
      action.reason = fmt::format("{}stays off the vCPUs that others own, as it gets none of its own: {}",
                                  before, reason);
    } else if (outcomes[i] != Outcome::kept && !workload->cpus.empty()) {
      action.what = model::GiveBack{.workload = workload->id, .attribute = model::Attribute::cpus};
      action.reason = fmt::format("{}unplaceable: {}", before, reason);
    }
    if (!action.reason.empty()) proposal.actions.push_back(std::move(action));
    if (outcomes[i] == Outcome::free) continue;
    const bool alone =
        rest.cpus.empty() || claim(homeless[i], rest.cpus, now) > static_cast<double>(rest.cpus.size());
    for (model::ServiceWarning& warning : proposal.findings.warnings) {
      if (warning.workload == workload->id && warning.cause != model::WarningCause::quota)
        warning.reason += warning_of(outcomes[i], rest, alone);
    }
  }
}

}  // namespace berth::policies
