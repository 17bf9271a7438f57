// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/cpu_set.h"
#include "model/snapshot.h"
#include "model/topology.h"

namespace berth::policies {

// How a neighbour's pressure is counted: by requests, as published, or by the vCPUs really shared.
enum class Weighting { request, overlap };

// How a placement is searched for.
enum class Search { window, optimal };

// The priority of best-effort work while any service runs (docs/decisions/priority.md).
enum class BestEffortPriority { idle, weight, leave };

// Whether interrupts are kept off the vCPUs that instances own.
enum class InterruptPlaces { leave, move };

// Whether best-effort work is kept off `reserved_cpus` as well.
enum class Reserved { strict, shared };

// Whether work beside all workloads is kept off vCPUs that instances own (docs/decisions/pinning.md).
enum class Others { confine, leave };

// The [interference] table; defaults and meaning in berth.toml(5), docs/decisions/pinning.md and
// docs/decisions/interference.md.
struct InterferenceSettings {
  Weighting weighting = Weighting::overlap;
  Search search = Search::window;
  model::DomainKind shared_domain = model::DomainKind::llc;
  int window_step = 2;
  model::Isolation isolation = model::Isolation::shared;  // of services whose rule says nothing
  bool allow_cross_socket = false;
  model::CpuSet reserved_cpus{};
  Reserved reserved = Reserved::strict;
  InterruptPlaces interrupts = InterruptPlaces::leave;
  Others others = Others::leave;
  int be_min_cpus = 1;
  bool be_avoid_siblings = false;
  model::InterferenceModel default_model{.b0 = 0, .k1 = 0.3, .k2 = 0.1};
  // docs/decisions/learning.md
  bool learn = true;
  double half_life_s = 21600;
  int min_samples = 300;
  // Of the search "optimal" alone.
  double budget_s = 0.020;  // becomes an amount of work, so that no decision depends on a clock
  double min_gain = 0.05;   // share by which moves of pinned instances must lower score_node
  int max_moves = 2;        // pinned instances that move in one round
  // docs/decisions/waiting.md: the most that the 99th percentile of an instance's waits for a vCPU may be; 0:
  // any.
  double max_runq_latency_s = 0;
  BestEffortPriority best_effort_priority = BestEffortPriority::idle;
  // No key: set by decide_places(). Best-effort work takes no core back, and homes do not become wider,
  // because both go by one step a tick.
  bool between_ticks = false;
};

}  // namespace berth::policies
