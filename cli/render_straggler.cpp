// SPDX-License-Identifier: Apache-2.0
#include "cli/render_plan.h"
#include "cli/table.h"

#include <cmath>
#include <ostream>
#include <string>

#include <fmt/core.h>

namespace berth::cli {

namespace {

// "1.00 cores, 2.0 GiB"; "-" for nothing.
std::string amounts(const model::Resources& resources) {
  std::string text;
  if (resources.cpu_cores > 0) text = fmt::format("{:.2f} cores", resources.cpu_cores);
  if (resources.memory_bytes > 0) text += (text.empty() ? "" : ", ") + format_bytes(resources.memory_bytes);
  return text.empty() ? "-" : text;
}

// "in 45 s", "45 s ago".
std::string when(const std::optional<double>& time, double now, const char* unknown) {
  if (!time) return unknown;
  const std::string distance = format_duration(std::abs(*time - now));
  return *time >= now ? "in " + distance : distance + " ago";
}

// Percent of the work in a minute.
std::string speed(const std::optional<double>& per_second) {
  return per_second ? fmt::format("{:.2f}", *per_second * 60 * 100) : "-";
}

const char* kind_text(model::LimitMove::Kind kind) {
  switch (kind) {
    case model::LimitMove::Kind::reclaim:
      return "lends";
    case model::LimitMove::Kind::preempt:
      return "gives up";
    case model::LimitMove::Kind::recall:
      return "wants back";
    case model::LimitMove::Kind::restore:
      return "gets back";
    case model::LimitMove::Kind::release:
      break;
  }
  return "returns";
}

void list_tasks(std::ostream& out, const model::StragglerFindings& findings, double now, const Style& style) {
  Table table({Column::name("TASK"), Column::figure("BEFORE %/MIN"), Column::figure("NOW %/MIN"),
               Column::figure("FINISHES"), Column::figure("DEADLINE"), Column::figure("LACKS").spared(),
               Column::figure("GETS").spared()},
              "  ");
  for (const auto& [id, task] : findings.tasks) {
    table.add({Cell(id, task.straggler ? Colour::yellow : Colour::none), speed(task.v1), speed(task.v2),
               when(task.finish, now, task.v2 ? "never" : "-"), when(task.deadline, now, "-"),
               amounts(task.extension), amounts(task.granted)});
  }
  table.print(out, style);
  for (const auto& [id, task] : findings.tasks) {
    out << "  " << paint(style, task.straggler ? Colour::yellow : Colour::none, printable(id)) << ": "
        << paint(style, Colour::dim, printable(task.reason)) << "\n";
  }
}

}  // namespace

void render_stragglers(std::ostream& out, const model::StragglerFindings& findings, double now,
                       const Style& style) {
  if (findings.tasks.empty() && findings.moves.empty()) return;
  heading(out, style, "Tasks with deadlines");
  if (findings.tasks.empty()) out << "  none\n";
  if (!findings.tasks.empty()) list_tasks(out, findings, now, style);
  if (findings.needed.cpu_cores > 0) {
    out << fmt::format("  {:.2f} cores are needed, {:.2f} are idle\n", findings.needed.cpu_cores,
                       findings.idle.cpu_cores);
  }
  if (findings.needed.memory_bytes > 0) {
    out << "  " << format_bytes(findings.needed.memory_bytes) << " of memory are needed, "
        << format_bytes(findings.idle.memory_bytes) << " are idle\n";
  }
  for (const model::LimitMove& move : findings.moves) {
    out << "  " << printable(move.workload) << " " << kind_text(move.kind) << " " << amounts(move.amount)
        << "\n";
  }
  for (const model::Relocation& relocation : findings.relocate) {
    out << "  " << paint(style, Colour::red, printable(relocation.workload)) << " still lacks "
        << amounts(relocation.lacks) << ", which this node does not have; another node may have it\n";
  }
}

}  // namespace berth::cli
