// SPDX-License-Identifier: Apache-2.0
#include "cli/render.h"
#include "cli/table.h"

#include <algorithm>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace berth::cli {

namespace {

std::string bytes_text(const Document& object, const char* name) {
  const auto bytes = number_of(object, name);
  return bytes && *bytes >= 0 ? format_bytes(static_cast<std::uint64_t>(*bytes)) : "-";
}

std::string gpus_of(const Document& workload) {
  std::string text;
  for (const Document& gpu : list_of(workload, "gpus")) {
    if (!gpu.is_string()) continue;
    if (!text.empty()) text += ' ';
    text += gpu.get_ref<const std::string&>();
  }
  return text;
}

// What can harm a service, below the table.
void render_warnings(std::ostream& out, const Document::array_t& workloads) {
  bool headed = false;
  for (const Document& workload : workloads) {
    for (const Document& warning : list_of(workload, "warnings")) {
      if (!std::exchange(headed, true)) out << "\nwarnings:\n";
      out << "  " << printable(text_of(workload, "id")) << ": " << printable(text_of(warning, "reason"))
          << "\n";
    }
  }
}

}  // namespace

void render_list(std::ostream& out, const Document& workloads, const Style& style) {
  const auto& list = list_of(workloads, "workloads");
  const bool any_gpus = std::any_of(list.begin(), list.end(),
                                    [](const Document& workload) { return !gpus_of(workload).empty(); });
  std::vector<Column> columns{Column::name("WORKLOAD"),
                              Column::text("CLASS"),
                              Column::name("SERVICE"),
                              Column::figure("VCPUS"),
                              Column::name("PINNED"),
                              Column::figure("CPU"),
                              Column::figure("MEMORY"),
                              Column::figure("PRESSURE"),
                              Column::figure("SCORE"),
                              Column::figure("QUOTA").spared(),
                              Column::figure("PROGRESS").spared()};
  if (any_gpus) columns.push_back(Column::name("GPUS"));
  const bool any_low = std::any_of(list.begin(), list.end(), [](const Document& workload) {
    return !text_of(workload, "cpu_priority").empty();
  });
  if (any_low) columns.push_back(Column::text("PRIORITY"));
  const bool any_level = std::any_of(list.begin(), list.end(), [](const Document& workload) {
    const std::string level = text_of(workload, "isolation");
    return !level.empty() && level != "vcpus";
  });
  if (any_level) {
    columns.push_back(Column::text("ISOLATION"));
    columns.push_back(Column::name("HOME"));
  }
  Table table(columns);
  bool left_alone = false;
  for (const Document& workload : list) {
    const bool managed = !member(workload, "managed").is_boolean() || flag_of(workload, "managed");
    left_alone = left_alone || !managed;
    const bool latency = text_of(workload, "class") == "latency-sensitive";
    std::vector<Cell> row{
        Cell(or_dash(text_of(workload, "id")) + (managed ? "" : " *"), managed ? Colour::none : Colour::dim),
        Cell(or_dash(text_of(workload, "class")), latency ? Colour::yellow : Colour::none),
        or_dash(text_of(workload, "service")),
        format_number(number_of(workload, "vcpus"), 0),
        or_dash(text_of(workload, "pinned_cpus")),
        format_number(number_of(workload, "cpu_cores"), 2),
        bytes_text(workload, "memory_bytes"),
        format_number(number_of(workload, "pressure"), 2),
        format_number(number_of(workload, "score"), 3),
        format_number(number_of(workload, "cpu_quota"), 2),
        format_share(number_of(workload, "progress"))};
    if (any_gpus) row.emplace_back(or_dash(gpus_of(workload)));
    if (any_low) row.emplace_back(or_dash(text_of(workload, "cpu_priority")));
    if (any_level) {
      row.emplace_back(or_dash(text_of(workload, "isolation")));
      row.emplace_back(or_dash(text_of(workload, "home")));
    }
    table.add(std::move(row));
  }
  if (table.empty()) {
    out << kNoWorkloads << "\n";
    return;
  }
  table.print(out, style);
  render_warnings(out, list);
  if (!left_alone) return;
  out << "\n* left alone:\n";
  for (const Document& workload : list_of(workloads, "workloads")) {
    if (!member(workload, "managed").is_boolean() || flag_of(workload, "managed")) continue;
    out << "  " << printable(text_of(workload, "id")) << ": "
        << printable(or_dash(text_of(workload, "left_alone_reason"))) << "\n";
  }
}

}  // namespace berth::cli
