// SPDX-License-Identifier: Apache-2.0
// A berth.state/1 document as its readers on the same host need it (docs/contract/documents.md).
#pragma once

#include "model/error.h"
#include "model/oversell.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::model {

// Amounts are cores, or bytes.
struct NodeResource {
  SchedulingState state = SchedulingState::schedule;
  double advertised = 0;
  double requested_latency_sensitive = 0;
  std::optional<double> best_effort = std::nullopt;  // nullopt of an earlier berthd
  double utilisation = 0;                            // 0..1; more where memory is overcommitted
  friend bool operator==(const NodeResource&, const NodeResource&) = default;

  // The amount that best-effort work may ask for together, at least 0. Of an earlier berthd it is the
  // advertised amount less what latency-sensitive work asked for.
  double for_best_effort() const;
};

// A workload that berth ends, or that should run on another host.
struct Departure {
  enum class Kind { evict, relocate };
  Kind kind = Kind::evict;
  double time = 0;  // epoch seconds: when it began
  std::string workload;
  std::string decision;  // empty for a relocation of which nothing else follows on this host
  std::string reason;    // one line
  // Of a relocation: berth enforces, and the workload still needs another host.
  bool wanted = false;
  friend bool operator==(const Departure&, const Departure&) = default;
};

const char* to_string(Departure::Kind kind);

// A reader takes no more departures of one document.
inline constexpr std::size_t kMaxDepartures = 32;

struct NodeState {
  double time = 0;        // epoch seconds
  double interval_s = 0;  // between ticks
  double score = 0;       // 0..1, lower is better
  NodeResource cpu = {};
  NodeResource memory = {};
  std::vector<Departure> departures = {};  // newest first
  friend bool operator==(const NodeState&, const NodeState&) = default;
};

// A longer document is refused: berthd writes about 1 KiB, and up to kMaxDeparturesBytes of departures.
inline constexpr std::size_t kMaxStateBytes = std::size_t{64} << 10;
inline constexpr std::size_t kMaxDeparturesBytes = std::size_t{48} << 10;

// Reads a berth.state/1 document. Unknown members are ignored, and so are departures of an unknown kind.
// Error invalid_input with the JSON path.
Result<NodeState> parse_node_state(std::string_view text);

// Why the document must not be believed at the time `now`, in epoch seconds: its berthd hangs, or the clocks
// disagree. nullopt for a fresh one. It is stale if it is older than `max_age_s` and than two ticks, or as
// far in the future.
std::optional<std::string> why_stale(const NodeState& state, double now, double max_age_s);

}  // namespace berth::model
