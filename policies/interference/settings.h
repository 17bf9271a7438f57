// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/cpu_set.h"
#include "model/snapshot.h"
#include "model/topology.h"

namespace berth::policies {

// How a neighbour's pressure is counted: by requests, as published, or by the vCPUs really shared.
enum class Weighting { request, overlap };

// How a placement is searched for.
enum class Search { window };

// The [interference] table; defaults and meaning in berth.toml(5), docs/decisions/pinning.md and
// docs/decisions/interference.md.
struct InterferenceSettings {
  Weighting weighting = Weighting::overlap;
  Search search = Search::window;
  model::DomainKind shared_domain = model::DomainKind::llc;
  int window_step = 2;
  bool allow_cross_socket = false;
  model::CpuSet reserved_cpus{};
  int be_min_cpus = 1;
  bool be_avoid_siblings = false;
  model::InterferenceModel default_model{.b0 = 0, .k1 = 0.3, .k2 = 0.1};
};

}  // namespace berth::policies
