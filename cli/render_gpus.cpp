// SPDX-License-Identifier: Apache-2.0
#include "cli/render_topology.h"
#include "cli/table.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace berth::cli {

namespace {

std::string memory_text(const model::Gpu& gpu) {
  if (!gpu.memory_bytes) return "memory not known";
  if (!gpu.memory_used_bytes) return format_bytes(*gpu.memory_bytes);
  return fmt::format("{} of {} in use", format_bytes(*gpu.memory_used_bytes),
                     format_bytes(*gpu.memory_bytes));
}

// "NVIDIA H100, NUMA node 0, 12.0 GiB of 80.0 GiB in use, 43 % busy"
std::string figures_text(const model::Gpu& gpu) {
  std::string text = gpu.model.empty() ? gpu.vendor : gpu.model;
  if (gpu.numa) text += fmt::format(", NUMA node {}", *gpu.numa);
  text += ", " + memory_text(gpu);
  if (gpu.utilisation) text += fmt::format(", {} busy", format_share(gpu.utilisation));
  return text;
}

void render_gpu(std::ostream& out, const model::Gpu& gpu, const std::string& users, const Style& style) {
  out << "  " << paint(style, gpu.healthy ? Colour::green : Colour::red, printable(gpu.id)) << "  "
      << printable(figures_text(gpu)) << "\n";
  if (!gpu.healthy) {
    const std::string why = gpu.problem.value_or("");
    out << "      " << paint(style, Colour::red, printable("unhealthy" + (why.empty() ? why : ": " + why)))
        << "\n";
  }
  if (!users.empty()) out << "      " << printable(users) << "\n";
}

// A table of the GPUs' links, like `nvidia-smi topo -m`; nothing without links. The columns have the numbers
// of the rows.
void render_links(std::ostream& out, const std::vector<model::Gpu>& gpus, const Style& style) {
  std::vector<const model::Gpu*> linked;
  for (const model::Gpu& gpu : gpus) {
    const bool has_link = std::any_of(gpus.begin(), gpus.end(), [&gpu](const model::Gpu& other) {
      return &other != &gpu && model::link_between(gpu, other);
    });
    if (has_link) linked.push_back(&gpu);
  }
  if (linked.empty()) return;
  std::vector<Column> columns{Column::figure(""), Column::text("LINKS")};
  for (std::size_t column = 0; column < linked.size(); ++column)
    columns.push_back(Column::figure(fmt::format("{}", column)));
  Table table(std::move(columns), "  ");
  for (std::size_t row = 0; row < linked.size(); ++row) {
    std::vector<Cell> cells{fmt::format("{}", row), linked[row]->id};
    for (std::size_t column = 0; column < linked.size(); ++column) {
      const auto link = model::link_between(*linked[row], *linked[column]);
      cells.emplace_back(row == column ? "X" : link ? model::to_string(*link) : "-");
    }
    table.add(std::move(cells));
  }
  out << "\n";
  table.print(out, style);
}

std::optional<std::uint64_t> bytes_of(const Document& object, const char* name) {
  const auto number = number_of(object, name);
  return number && *number >= 0 ? std::optional(static_cast<std::uint64_t>(*number)) : std::nullopt;
}

model::Gpu gpu_of(const Document& document) {
  model::Gpu gpu;
  gpu.id = text_of(document, "id");
  gpu.vendor = text_of(document, "vendor");
  gpu.model = text_of(document, "model");
  if (const auto numa = number_of(document, "numa")) gpu.numa = static_cast<int>(*numa);
  gpu.memory_bytes = bytes_of(document, "memory_bytes");
  gpu.memory_used_bytes = bytes_of(document, "memory_used_bytes");
  gpu.utilisation = number_of(document, "utilisation");
  gpu.healthy = flag_of(document, "healthy");
  gpu.problem = text_of(document, "problem");
  for (const auto& [peer, name] : member(document, "links").items()) {
    for (const model::GpuLink link : model::kGpuLinks) {
      if (name.is_string() && name.get<std::string>() == model::to_string(link))
        gpu.links.push_back({.id = peer, .link = link});
    }
  }
  return gpu;
}

// "held by a", "shared by a, b and 2 other processes"; "" without a known user.
std::string users_of(const Document& document) {
  std::string users;
  std::size_t count = 0;
  for (const Document& workload : list_of(document, "workloads")) {
    if (!workload.is_string()) continue;
    users += (count++ > 0 ? ", " : "") + workload.get<std::string>();
  }
  const double others = number_of(document, "other_processes").value_or(0);
  if (others > 0)
    users += fmt::format("{}{:.0f} process{} of no workload", count > 0 ? " and " : "", others,
                         others > 1 ? "es" : "");
  if (users.empty()) return users;
  const bool held = !text_of(document, "holder").empty();
  return (held ? "held by " : count > 1 ? "shared by " : "used by ") + users;
}

}  // namespace

void render_gpus(std::ostream& out, const std::vector<model::Gpu>& gpus, const Style& style) {
  if (gpus.empty()) return;
  heading(out, style, "GPUs");
  for (const model::Gpu& gpu : gpus) render_gpu(out, gpu, "", style);
  render_links(out, gpus, style);
}

void render_gpus(std::ostream& out, const Document& status, const Style& style) {
  const auto& documents = list_of(status, "gpus");
  if (documents.empty()) return;
  heading(out, style, "GPUs");
  std::vector<model::Gpu> gpus;
  for (const Document& document : documents) {
    gpus.push_back(gpu_of(document));
    render_gpu(out, gpus.back(), users_of(document), style);
  }
  render_links(out, gpus, style);
}

}  // namespace berth::cli
