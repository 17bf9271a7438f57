// SPDX-License-Identifier: Apache-2.0
// Renders a replay as text and as the document berth.replay/1.
#pragma once

#include "cli/document.h"
#include "cli/text.h"
#include "replay/difference.h"
#include "replay/figures.h"
#include "replay/side.h"

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace berth::cli {

// The settings of one side, and its decisions.
struct ReplayedSide {
  std::string name;
  const replay::Side* side = nullptr;
  std::vector<replay::Decision> decisions;  // the first ones
  std::uint64_t decided = 0;                // all of them
};

struct Replayed {
  std::string host;
  double begun = 0;  // of the first tick, epoch seconds
  double ended = 0;  // of the last one
  std::uint64_t ticks = 0;
  std::optional<std::string> cut;                    // why the trace ends early
  std::vector<ReplayedSide> sides;                   // one or two
  const replay::Differences* differences = nullptr;  // with two sides
};

void render_replay(std::ostream& out, const Replayed& replayed, const Style& style);
Document replay_document(const Replayed& replayed);

// Whether a decision is one that a person wants to read: not the creeping of an advertised factor.
bool is_told(const replay::Decision& decision);

}  // namespace berth::cli
