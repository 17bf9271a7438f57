// SPDX-License-Identifier: Apache-2.0
#include "cli/render_plan.h"
#include "cli/table.h"
#include "model/count_text.h"
#include "model/json.h"
#include "model/name.h"

#include <algorithm>
#include <ostream>
#include <string>
#include <utility>

#include <fmt/core.h>

namespace berth::cli {

namespace {

std::string bin_name(const model::RejectedBin& bin) {
  return fmt::format("{} {}", bin.host.empty() ? "this host" : bin.host,
                     model::nodes_text(model::nodes_of(bin)));
}

// "NUMA node 1, vCPUs 16-23"
std::string place_name(const model::FittingBin& bin) {
  return fmt::format("{}, vCPUs {}", model::nodes_text(model::nodes_of(bin)), bin.cpus.to_string());
}

std::string request_text(const model::PendingWorkload& request) {
  std::string text = fmt::format("{}, {}", model::to_string(request.workload_class),
                                 model::count_text(request.vcpus.value_or(0), "vCPU"));
  if (request.memory_request_bytes > 0) text += ", " + format_bytes(request.memory_request_bytes);
  if (request.gpus == 0) return text;
  text += ", " + model::count_text(request.gpus, "GPU");
  if (request.gpu_model) text += " like " + *request.gpu_model;
  if (request.gpu_memory_bytes > 0) text += " with " + format_bytes(request.gpu_memory_bytes) + " free";
  return text + (request.gpu_exclusive ? "" : ", shared");
}

void list_bins(std::ostream& out, const model::BinRanking& bins, const Style& style) {
  if (!bins.fitting.empty()) {
    const bool any_gpus = std::any_of(bins.fitting.begin(), bins.fitting.end(),
                                      [](const auto& bin) { return bin.gpus_total > 0; });
    Table table(
        {Column::figure(""), Column::name("HOST"), Column::figure("NUMA"), Column::name("VCPUS"),
         Column::name("GPUS").spared(), Column::figure("CPU LEFT"), Column::figure("MEMORY LEFT"),
         Column::figure("FREE"), Column::figure("SCORE RISE").spared(), Column::figure("GPUS LEFT").spared()},
        "  ");
    int place = 0;
    for (const model::FittingBin& bin : bins.fitting) {
      table.add({fmt::format("{}", ++place), bin.host.empty() ? "-" : bin.host,
                 model::nodes_of(bin).to_string(), bin.cpus.to_string(),
                 bin.gpus.empty() ? "-" : model::joined(bin.gpus, " "), format_number(bin.cpu_left_cores, 1),
                 format_bytes(bin.memory_left_bytes), format_share(bin.free_share),
                 bin.rise ? fmt::format("{:.4f}", *bin.rise) : "-",
                 any_gpus ? fmt::format("{} of {}", bin.gpus_left, bin.gpus_total) : "-"});
    }
    table.print(out, style);
  }
  for (const model::RejectedBin& bin : bins.rejected) {
    out << "  " << paint(style, Colour::yellow, printable(bin_name(bin))) << ": "
        << paint(style, Colour::dim, printable(bin.reason)) << "\n";
  }
}

}  // namespace

void render_ranking(std::ostream& out, const model::Ranking& ranking, const Style& style) {
  const model::PendingWorkload& request = ranking.request;
  out << paint(style, Colour::bold, printable(request.id)) << ": " << printable(request_text(request))
      << "\n";
  list_bins(out, ranking.bins, style);
  if (ranking.bins.fitting.empty()) return;
  out << paint(style, Colour::dim, "  Best: " + printable(ranking.bins.fitting.front().reason)) << "\n";
}

void render_admission(std::ostream& out, const model::Admission& admission, const Style& style) {
  const model::PendingWorkload& request = admission.request;
  out << paint(style, Colour::bold, printable(request.id)) << ": " << printable(request_text(request))
      << "\n";
  if (admission.admitted) {
    std::string place = "admitted";
    if (admission.until) place += ", its place is held until " + format_time(*admission.until);
    if (!admission.bins.fitting.empty()) {
      const model::FittingBin& best = admission.bins.fitting.front();
      place += ": " + place_name(best);
      if (!best.gpus.empty()) place += fmt::format(", GPUs {}", model::joined(best.gpus, " "));
    }
    out << "  " << paint(style, Colour::green, printable(place)) << "\n";
    out << "      " << paint(style, Colour::dim, printable(admission.reason)) << "\n";
    return;
  }
  list_bins(out, admission.bins, style);
  if (admission.change.empty()) return;
  out << "  Any one of these changes would help:\n";
  for (const std::string& change : admission.change) out << "    - " << printable(change) << "\n";
}

void render_reservations(std::ostream& out, const Document& reservations, const Style& style) {
  Table table({Column::name("REQUEST"), Column::text("CLASS"), Column::figure("VCPUS"),
               Column::figure("MEMORY"), Column::figure("GPUS").spared(), Column::figure("NUMA"),
               Column::name("ON"), Column::text("UNTIL"), Column::text("DECISION")});
  for (const Document& held : list_of(reservations, "reservations")) {
    const Document& request = member(held, "request");
    const Document& place = member(held, "place");
    const std::string nodes = text_of(place, "numa_nodes");
    const auto until = number_of(held, "until");
    const auto bytes = static_cast<std::uint64_t>(number_of(request, "memory_request_bytes").value_or(0));
    table.add({or_dash(text_of(request, "id")), or_dash(text_of(request, "class")),
               format_number(number_of(request, "vcpus"), 0), bytes > 0 ? format_bytes(bytes) : "-",
               format_number(number_of(request, "gpus"), 0),
               nodes.empty() ? format_number(number_of(place, "numa"), 0) : nodes,
               or_dash(text_of(place, "cpus")), until ? format_time(*until) : "-",
               or_dash(text_of(held, "decision"))});
  }
  if (table.empty()) {
    out << "There are no reservations.\n";
    return;
  }
  table.print(out, style);
}

void render_placement(std::ostream& out, const model::PlacementFindings& findings, const Style& style) {
  if (findings.pending.empty()) return;
  heading(out, style, "Places for pending work");
  for (const auto& [id, bins] : findings.pending) {
    out << "  " << paint(style, bins.fitting.empty() ? Colour::red : Colour::none, printable(id)) << ": ";
    if (bins.fitting.empty()) {
      out << "nowhere\n";
    } else {
      const model::FittingBin& best = bins.fitting.front();
      out << place_name(best);
      if (!best.gpus.empty()) out << printable(fmt::format(", GPUs {}", model::joined(best.gpus, " ")));
      out << "\n      " << paint(style, Colour::dim, printable(best.reason)) << "\n";
    }
    for (const model::RejectedBin& bin : bins.rejected) {
      out << "      "
          << paint(style, Colour::dim,
                   printable(fmt::format("not {}: {}", model::nodes_text(model::nodes_of(bin)), bin.reason)))
          << "\n";
    }
  }
}

}  // namespace berth::cli
