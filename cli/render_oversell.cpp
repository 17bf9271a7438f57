// SPDX-License-Identifier: Apache-2.0
#include "cli/render_plan.h"
#include "cli/table.h"
#include "model/json.h"

#include <algorithm>
#include <cstdint>
#include <ostream>
#include <string>

#include <fmt/core.h>

namespace berth::cli {

namespace {

std::string amount(bool cpu, double value) {
  return cpu ? fmt::format("{:.2f} cores", value)
             : format_bytes(static_cast<std::uint64_t>(std::max(0.0, value)));
}

Colour colour_of(model::SchedulingState state) {
  switch (state) {
    case model::SchedulingState::schedule:
      return Colour::green;
    case model::SchedulingState::no_schedule:
      return Colour::yellow;
    case model::SchedulingState::evict:
      break;
  }
  return Colour::red;
}

void list_candidates(std::ostream& out, const model::OversellFindings& findings, const Style& style) {
  Table table({Column::figure(""), Column::text("NEXT"), Column::name("WORKLOAD"), Column::figure("STAGE"),
               Column::figure("PRIORITY"), Column::figure("CPU SECONDS LOST"), Column::figure("MEMORY")},
              "  ");
  int place = 0;
  for (const std::string& id : findings.order) {
    const bool goes = std::find(findings.chosen.begin(), findings.chosen.end(), id) != findings.chosen.end();
    const auto found = findings.candidates.find(id);
    const model::OversellCandidate candidate =
        found == findings.candidates.end() ? model::OversellCandidate() : found->second;
    table.add({fmt::format("{}", ++place), goes ? "*" : "", Cell(id, goes ? Colour::red : Colour::none),
               fmt::format("{}", candidate.stage), fmt::format("{}", candidate.priority),
               format_number(candidate.cost, 0), format_bytes(candidate.memory_bytes)});
  }
  table.print(out, style);
}

}  // namespace

void render_oversell(std::ostream& out, const model::OversellFindings& findings, const Style& style) {
  heading(out, style, "Capacity of the node");
  Table table(
      {Column::text("RESOURCE"), Column::text("STATE"), Column::figure("IN USE"), Column::figure("ASKED FOR"),
       Column::figure("PEAK"), Column::figure("FACTOR"), Column::figure("ADVERTISED")},
      "  ");
  for (const bool cpu : {true, false}) {
    const model::OversoldResource& resource = cpu ? findings.cpu : findings.memory;
    table.add({cpu ? "CPU" : "memory", Cell(model::to_string(resource.state), colour_of(resource.state)),
               format_share(resource.utilisation), amount(cpu, resource.request), amount(cpu, resource.peak),
               fmt::format("x{:.2f}", resource.factor), amount(cpu, resource.factor * resource.capacity)});
  }
  table.print(out, style);
  for (const model::OversoldResource* resource : {&findings.cpu, &findings.memory})
    out << "  " << paint(style, Colour::dim, printable(resource->reason)) << "\n";
  if (findings.memory.state != model::SchedulingState::evict) return;
  heading(out, style, "Workloads that would have to end");
  if (findings.warning) {
    out << "  " << paint(style, Colour::red, printable("warning: " + *findings.warning)) << "\n";
  }
  if (findings.order.empty()) {
    if (!findings.warning) out << "  no workload may be evicted\n";
    return;
  }
  list_candidates(out, findings, style);
  if (findings.chosen.empty()) return;
  out << paint(style, Colour::dim,
               "  With oversell.evict = true berth evicts those marked * next. It passes over those that it "
               "cannot end, that free too little, or that a later one makes needless.")
      << "\n";
}

}  // namespace berth::cli
