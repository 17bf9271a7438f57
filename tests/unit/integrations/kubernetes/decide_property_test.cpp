// SPDX-License-Identifier: Apache-2.0
// The members of a node against the sentences of berth-kube(8), said again one by one.
#include "integrations/kubernetes/decide.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::kubernetes {
namespace {

using model::SchedulingState;

model::NodeResource any_resource(double unit) {
  model::NodeResource resource;
  resource.state = *rc::gen::element(SchedulingState::schedule, SchedulingState::schedule,
                                     SchedulingState::no_schedule, SchedulingState::evict);
  resource.advertised = *rc::gen::inRange(0, 4000) * unit;
  resource.requested_latency_sensitive = *rc::gen::inRange(0, 4000) * unit;
  return resource;
}

RC_GTEST_PROP(KubernetesDecideProperty, IsWhatThePageSays, ()) {
  constexpr double kMiB = 1 << 20;
  Berth berth;
  if (*rc::gen::inRange(0, 5) > 0) {
    berth.state = model::NodeState{.cpu = any_resource(0.0625), .memory = any_resource(kMiB / 4)};
  } else {
    berth.silence = "silent";
  }
  const bool taint = *rc::gen::arbitrary<bool>();
  const Wanted wanted = wanted_of(berth, taint);

  // A silent berthd has nothing for best-effort work, and no taint.
  if (!berth.state) {
    RC_ASSERT(wanted == Wanted());
    return;
  }
  const auto& cpu = berth.state->cpu;
  const auto& memory = berth.state->memory;
  const bool takes_work = cpu.state == SchedulingState::schedule && memory.state == SchedulingState::schedule;
  RC_CLASSIFY(!takes_work, "takes no work");
  // The taint is there while the host takes no work, and its value is a resource that is closed.
  RC_ASSERT(wanted.closed.empty() == (takes_work || !taint));
  if (wanted.closed == "cpu") RC_ASSERT(cpu.state != SchedulingState::schedule);
  if (wanted.closed == "memory") RC_ASSERT(memory.state != SchedulingState::schedule);
  RC_ASSERT(wanted.closed.empty() || wanted.closed == "cpu" || wanted.closed == "memory");
  // Without a taint a host that takes no work has nothing.
  if (!taint && !takes_work) {
    RC_ASSERT(wanted == Wanted());
    return;
  }
  // The amounts are advertised less asked for, at least 0, rounded down to 1/1000 core and MiB.
  const double cores = cpu.advertised - cpu.requested_latency_sensitive;
  const double bytes = memory.advertised - memory.requested_latency_sensitive;
  // Cores are sixteenths here, so a thousand times as many are exact.
  const auto wanted_millis = static_cast<double>(wanted.cpu_millis);
  const auto wanted_bytes = static_cast<double>(wanted.memory_bytes);
  RC_ASSERT(wanted_millis <= (cores > 0 ? 1000 * cores : 0));
  RC_ASSERT(wanted_millis > 1000 * cores - 1);
  RC_ASSERT(wanted_bytes <= (bytes > 0 ? bytes : 0));
  RC_ASSERT(wanted_bytes > bytes - kMiB);
  RC_ASSERT(wanted.memory_bytes % (1 << 20) == 0U);
}

}  // namespace
}  // namespace berth::kubernetes
