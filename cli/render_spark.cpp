// SPDX-License-Identifier: Apache-2.0
#include "cli/render_plan.h"
#include "cli/table.h"
#include "model/json.h"

#include <algorithm>
#include <ostream>
#include <string>

#include <fmt/core.h>

namespace berth::cli {

namespace {

// The candidates after the victims show how close they are; all of them are in the JSON.
constexpr std::size_t kShownBeyondVictims = 5;

// Rounded where it is long: "12 s", "3 h 4 min"; costs may be below 0.
std::string seconds(double value) {
  if (value < 0) return "-" + seconds(-value);
  return value < 120 ? fmt::format("{:.1f} s", value) : format_duration(value);
}

std::string per_gib(const std::optional<double>& per_byte) {
  return per_byte ? fmt::format("{:.2f} s", *per_byte * (1U << 30)) : "-";
}

void list_apps(std::ostream& out, const model::EvictionFindings& findings, const Style& style) {
  heading(out, style, "Spark applications");
  Table table({Column::name("APPLICATION"), Column::figure("STAGES DONE"), Column::figure("TO COMPUTE AGAIN"),
               Column::figure("TO MOVE AGAIN"), Column::figure("REMAINING"), Column::figure("COST"),
               Column::figure("FREES"), Column::figure("COST/GIB")},
              "  ");
  for (const auto& [id, app] : findings.apps) {
    table.add({id, fmt::format("{:.1f} of {}", app.stages_done, app.stages), seconds(app.computation_s),
               format_bytes(static_cast<std::uint64_t>(app.transmission_bytes)),
               app.remaining_s ? seconds(*app.remaining_s) : "-", seconds(app.cost_s),
               app.frees_bytes > 0 ? format_bytes(app.frees_bytes) : "-", per_gib(app.cost_per_byte)});
  }
  table.print(out, style);
}

// The key of the order, as `rank` names it.
std::string rank_heading(const std::string& rank) {
  if (rank == "cost") return "RANK";
  return rank == "cost-per-byte" ? "RANK/GIB" : "LOSS/GIB";
}
std::string rank_text(const std::string& rank, const std::optional<double>& key) {
  if (rank == "cost") return key ? seconds(*key) : "-";
  return per_gib(key);
}

void list_order(std::ostream& out, const model::EvictionFindings& findings, const Style& style) {
  Table table({Column::name("WORKLOAD"), Column::text("KIND"), Column::name("APPLICATION").spared(),
               Column::figure("COST"), Column::figure("FREES"), Column::figure(rank_heading(findings.rank)),
               Column::text("")},
              "  ");
  const std::size_t most = findings.victims.size() + kShownBeyondVictims;
  for (std::size_t i = 0; i < std::min(most, findings.order.size()); ++i) {
    const std::string& id = findings.order[i];
    const auto candidate = findings.candidates.find(id);
    if (candidate == findings.candidates.end()) continue;
    const bool victim = std::any_of(findings.victims.begin(), findings.victims.end(),
                                    [&](const model::MemoryTaken& taken) { return taken.workload == id; });
    table.add({Cell(id, victim ? Colour::yellow : Colour::none), model::to_string(candidate->second.kind),
               candidate->second.app.value_or("-"), seconds(candidate->second.cost_s),
               candidate->second.frees_bytes > 0 ? format_bytes(candidate->second.frees_bytes) : "-",
               rank_text(findings.rank, candidate->second.rank_key), victim ? "would be evicted" : ""});
  }
  table.print(out, style);
  if (findings.order.size() > most) {
    out << paint(style, Colour::dim, fmt::format("  and {} more", findings.order.size() - most)) << "\n";
  }
}

void list_spared(std::ostream& out, const model::EvictionFindings& findings, const Style& style) {
  std::size_t shown = 0;
  for (const auto& [id, reason] : findings.spared) {
    if (shown++ == kShownBeyondVictims) {
      out << paint(style, Colour::dim,
                   fmt::format("  and {} more that are spared", findings.spared.size() - kShownBeyondVictims))
          << "\n";
      return;
    }
    out << "  " << printable(id) << " is spared: " << printable(reason) << "\n";
  }
}

void list_held(std::ostream& out, const model::EvictionFindings& findings) {
  std::size_t shown = 0;
  for (const auto& [id, reason] : findings.held) {
    if (shown++ == kShownBeyondVictims) return;
    out << "  " << printable(id) << " is held: " << printable(reason) << "\n";
  }
}

}  // namespace

void render_spark(std::ostream& out, const model::EvictionFindings& findings, const Style& style) {
  if (!findings.apps.empty()) list_apps(out, findings, style);
  if (findings.candidates.empty() && findings.spared.empty() &&
      findings.trigger == model::EvictionTrigger::none)
    return;
  const bool wanted = findings.trigger != model::EvictionTrigger::none;
  // While no memory is wanted, other workloads have no price.
  heading(out, style,
          wanted ? "Memory, and the order of eviction"
                 : "Memory, and the order of eviction of Spark's workloads");
  out << "  " << paint(style, wanted ? Colour::yellow : Colour::none, printable(findings.reason)) << "\n";
  for (const model::MemoryTaken& taken : findings.reclaim) {
    out << "  " << printable(taken.workload) << " gives up " << printable(taken.reason) << "\n";
  }
  if (findings.candidates.empty()) {
    out << "  there is no best-effort workload to evict\n";
  } else {
    list_order(out, findings, style);
  }
  list_spared(out, findings, style);
  list_held(out, findings);
  if (!findings.victims.empty()) {
    out << paint(style, Colour::dim,
                 "  With eviction.evict = true berth evicts them, one at a time, while memory is short.")
        << "\n";
  }
}

void render_spark_list(std::ostream& out, const model::EvictionFindings& findings, const Style& style) {
  if (findings.apps.empty()) out << "No Spark applications: no driver on this host reports one.\n";
  render_spark(out, findings, style);
}

}  // namespace berth::cli
