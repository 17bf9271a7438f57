// SPDX-License-Identifier: Apache-2.0
#include "policies/straggler/task.h"

#include "policies/straggler/progress.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

namespace berth::policies {

namespace {

// memory.high holds a task back only once its use comes this near to it.
constexpr double kMemoryLimits = 0.90;

}  // namespace

int vcpus_for(double cores) {
  // A rest that comes from rounding does not count.
  return static_cast<int>(std::ceil(cores - 1e-9));
}

bool has_evidence(const model::Workload& workload, const model::StragglerTask& task, double now) {
  if (task.samples.size() < 4) return false;
  const double third = task.samples[2].time;
  // A change in the future comes from a clock that went backwards.
  const auto before = [&](double change) { return change > now || third >= change; };
  if (is_growth(workload.held_cpu) && !before(workload.held_cpu->changed_at)) return false;
  if (is_growth(workload.held_memory) && !before(workload.held_memory->changed_at)) return false;
  return !workload.pinned_at || before(*workload.pinned_at);
}

Extension extension_of(const Share& share, model::Resource resource, double growth, double most,
                       double min_change) {
  const bool cpu = resource == model::Resource::cpu;
  Extension result;
  if (!share.allocation) {
    if (cpu) result.note = "its CPU allocation is not known, so berth cannot give it more";
    return result;
  }
  if (!cpu) {
    const bool limited = share.limit && share.last_use.value_or(0) >= kMemoryLimits * *share.limit;
    if (!limited) return result;
  }
  // If vCPUs of best-effort tasks were taken for it now, the next tick could not see that it was helped.
  if (cpu && !share.limit && !share.whole) {
    result.note = "it has neither a quota nor vCPUs of its own that could grow";
    return result;
  }
  // The vCPUs that it owns can grow all the same.
  if (share.fixed && !share.whole) {
    result.note = fmt::format("berth cannot change its {}", cpu ? "CPU quota" : "memory.high");
    return result;
  }
  result.wish = *share.allocation * (growth - 1);
  if (share.whole) result.wish = vcpus_for(result.wish);
  if (!cpu) result.wish = std::floor(result.wish);
  if (share.limit) result.least = min_change * *share.limit;
  if (result.wish < result.least) {
    if (cpu && result.wish > 0) {
      result.note = fmt::format("what it lacks is less than {:.3g} of its quota (min_change)", min_change);
    }
    result.wish = 0;
    return result;
  }
  result.amount = std::clamp(most - *share.allocation, 0.0, result.wish);
  if (result.amount < result.least) result.amount = 0;
  if (result.amount < result.wish) {
    result.note = fmt::format("of the {} that it lacks, {} allows {}", amount_text(resource, result.wish),
                              cpu ? "its domain" : "the node's memory", amount_text(resource, result.amount));
  }
  return result;
}

bool is_over(const std::optional<double>& since, double now, double hold_s) {
  if (!since) return true;
  const double age = now - *since;
  return age < 0 || age >= hold_s;
}

bool growth_ends(const model::Workload& workload, const model::StragglerTask* task, double now,
                 double hold_s) {
  if (task && task->straggler) return false;
  if (!workload.deadline || last_progress(workload).value_or(1) >= 1) return true;
  return is_over(workload.straggled_at, now, hold_s);
}

std::optional<int> vcpus_while_grown(const model::Workload& workload, const Share& cpu, double granted,
                                     bool ends) {
  if (ends || !workload.vcpus || workload.cpus.empty() || !cpu.allocation) return std::nullopt;
  const bool owns_more = !cpu.limit && static_cast<int>(workload.cpus.size()) > *workload.vcpus;
  if (!is_growth(cpu.held) && !owns_more && granted <= 0) return std::nullopt;
  const int wanted = vcpus_for(*cpu.allocation + granted);
  if (wanted <= *workload.vcpus) return std::nullopt;
  return wanted;
}

}  // namespace berth::policies
