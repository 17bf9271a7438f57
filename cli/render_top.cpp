// SPDX-License-Identifier: Apache-2.0
#include "cli/render_top.h"

#include "cli/render.h"
#include "cli/render_topology.h"
#include "cli/table.h"
#include "model/count_text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace berth::cli {

namespace {

struct SortColumn {
  TopSort sort;
  const char* name;    // for people
  const char* figure;  // member of a workload; text for the last two
};

constexpr std::array kSortColumns{
    SortColumn{TopSort::cpu, "CPU", "cpu_cores"},
    SortColumn{TopSort::pressure, "waiting", "cpu_pressure_some_avg10"},
    SortColumn{TopSort::runq, "run-queue delay", "runq_latency_us"},
    SortColumn{TopSort::llc, "LLC misses", "llc_mpki"},
    SortColumn{TopSort::score, "score", "score"},
    SortColumn{TopSort::quota, "quota", "cpu_quota"},
    SortColumn{TopSort::progress, "progress", "progress"},
    SortColumn{TopSort::vcpus, "vCPUs", "vcpus"},
    SortColumn{TopSort::service, "service", "service"},
    SortColumn{TopSort::workload, "workload", "id"},
};

const SortColumn& column_of(TopSort sort) {
  return *std::find_if(kSortColumns.begin(), kSortColumns.end(),
                       [&](const SortColumn& column) { return column.sort == sort; });
}

bool sorts_by_text(TopSort sort) { return sort == TopSort::service || sort == TopSort::workload; }

std::vector<const Document*> sorted_workloads(const TopFrame& frame, const TopView& view) {
  std::vector<const Document*> rows;
  for (const Document& workload : list_of(frame.workloads, "workloads")) rows.push_back(&workload);
  const char* name = column_of(view.sort).figure;
  // Names ascend, figures descend, unknown figures come last; equal ones stay in the daemon's order.
  std::stable_sort(rows.begin(), rows.end(), [&](const Document* a, const Document* b) {
    if (sorts_by_text(view.sort)) {
      const std::string first = text_of(*a, name);
      const std::string second = text_of(*b, name);
      return view.reversed ? second < first : first < second;
    }
    const auto first = number_of(*a, name);
    const auto second = number_of(*b, name);
    if (!first || !second) return first.has_value() && !second.has_value();
    return view.reversed ? *first < *second : *first > *second;
  });
  return rows;
}

// An unknown share counts as 0 here.
Colour share_colour(double share) {
  if (share < 0.6) return Colour::none;
  return share < 0.9 ? Colour::yellow : Colour::red;
}

// A tenth of the time with tasks waiting for a CPU is much.
Colour pressure_colour(double percent) {
  if (percent < 5) return Colour::none;
  return percent < 20 ? Colour::yellow : Colour::red;
}

std::string micros(const Document& workload, const char* name) {
  return format_number(number_of(workload, name), 0);
}

// A narrow terminal leaves out the columns that say least; the one that sorts stays.
Table table_of(const std::vector<const Document*>& rows, TopSort sort) {
  const auto figure = [sort](const char* title, int leaves, std::optional<TopSort> sorts = {}) {
    const bool stays = sorts == sort;
    return Column{title, Align::right, false, !stays, stays ? 0 : leaves};
  };
  Column service = Column::name("SERVICE");
  service.leaves = sort == TopSort::service ? 0 : 7;
  // Services without vCPUs of their own have one.
  const bool any_home = std::any_of(rows.begin(), rows.end(),
                                    [](const Document* row) { return !text_of(*row, "home").empty(); });
  std::vector<Column> columns(
      {Column::name("WORKLOAD"), Column::text("CLASS"), service, Column::figure("VCPUS"),
       Column::figure("CPU"), figure("QUOTA", 4, TopSort::quota), figure("PROGRESS", 5, TopSort::progress),
       figure("PRESSURE", 6), figure("WAIT %", 3, TopSort::pressure), figure("RUNQ P99", 2, TopSort::runq),
       figure("RUNQ P50", 9), figure("LLC MPKI", 8, TopSort::llc), figure("SCORE", 1, TopSort::score)});
  if (any_home) columns.push_back(Column::text("HOME"));
  Table table(columns);
  for (const Document* row : rows) {
    const Document& workload = *row;
    const bool managed = !member(workload, "managed").is_boolean() || flag_of(workload, "managed");
    const bool latency = text_of(workload, "class") == "latency-sensitive";
    const auto cpu = number_of(workload, "cpu_cores");
    const auto vcpus = number_of(workload, "vcpus");
    const double share = vcpus.value_or(0) > 0 ? cpu.value_or(0) / *vcpus : 0;
    const auto wait = number_of(workload, "cpu_pressure_some_avg10");
    const auto pressure = number_of(workload, "pressure");
    std::vector<Cell> cells(
        {Cell(or_dash(text_of(workload, "id")) + (managed ? "" : " *"), managed ? Colour::none : Colour::dim),
         Cell(or_dash(text_of(workload, "class")), latency ? Colour::yellow : Colour::none),
         or_dash(text_of(workload, "service")), format_number(vcpus, 0),
         Cell(format_number(cpu, 2), share_colour(share)), format_number(number_of(workload, "cpu_quota"), 2),
         format_share(number_of(workload, "progress")),
         Cell(format_number(pressure, 2), share_colour(pressure.value_or(0))),
         Cell(format_number(wait, 1), pressure_colour(wait.value_or(0))), micros(workload, "runq_latency_us"),
         micros(workload, "runq_latency_p50_us"), format_number(number_of(workload, "llc_mpki"), 2),
         format_number(number_of(workload, "score"), 3)});
    if (any_home) cells.emplace_back(or_dash(text_of(workload, "home")));
    table.add(std::move(cells));
  }
  return table;
}

using Lines = std::vector<std::string>;

Lines split(const std::string& text) {
  Lines lines;
  std::istringstream in(text);
  std::string line;
  while (std::getline(in, line)) lines.push_back(line);
  return lines;
}

// The parts on as few lines as the width permits.
void add_folded(Lines& lines, const std::vector<std::string>& parts, const char* gap, const Style& style) {
  std::string line;
  for (const std::string& part : parts) {
    const std::string longer = line.empty() ? part : fmt::format("{}{}{}", line, gap, part);
    if (!line.empty() && style.width > 0 && display_width(longer) > style.width) {
      lines.push_back(std::exchange(line, "  " + part));
    } else {
      line = longer;
    }
  }
  lines.push_back(std::move(line));
}

Lines node_lines(const TopFrame& frame, const Style& style) {
  const Document& status = frame.status;
  const Document& tick = member(status, "tick");
  const Document& counts = member(status, "workloads");
  const auto number = [](const Document& object, const char* name, int decimals = 0) {
    return format_number(number_of(object, name), decimals);
  };
  const bool enforcing = text_of(status, "mode") == "enforce";
  const std::string head =
      fmt::format("berth on {}, {}", printable(or_dash(text_of(status, "host"))), format_time(frame.now));
  const std::string mode = printable(or_dash(text_of(status, "mode")));
  Lines lines{paint(style, Colour::bold, head) + "   " +
              paint(style, enforcing ? Colour::green : Colour::yellow, mode)};
  const std::string pool = printable(or_dash(text_of(status, "best_effort_cpus")));
  add_folded(lines,
             {fmt::format("workloads: {} latency-sensitive, {} best-effort, {} left alone",
                          number(counts, "latency-sensitive"), number(counts, "best-effort"),
                          number(counts, "left_alone")),
              "score " + number(status, "score_node", 4), "best-effort vCPUs " + pool},
             "   ", style);
  std::vector<std::string> runs{
      fmt::format("ticks: {} of {} s", number(tick, "count"), number(tick, "interval_s", 1)),
      number(tick, "woken_by_pressure") + " brought by pressure",
      number(tick, "mean_cpu_ms", 2) + " ms of CPU each"};
  if (const Document& placement = member(status, "placement"); number_of(placement, "count").value_or(0) > 0)
    runs.push_back(fmt::format("placements between them: {} of {} ms", number(placement, "count"),
                               number(placement, "mean_cpu_ms", 2)));
  add_folded(lines, runs, ", ", style);
  if (const std::string error = text_of(member(status, "config"), "error"); !error.empty()) {
    lines.push_back(paint(style, Colour::red, "configuration rejected: " + printable(error)));
  }
  return lines;
}

// The owner of each vCPU: latency-sensitive workloads that are bound to some.
std::map<int, std::string> owners(const Document& workloads) {
  std::map<int, std::string> labels;
  for (const Document& workload : list_of(workloads, "workloads")) {
    if (text_of(workload, "class") != "latency-sensitive" || text_of(workload, "isolation") == "shared")
      continue;
    const auto cpus = model::CpuSet::parse(text_of(workload, "pinned_cpus"));
    if (!cpus) continue;
    for (const int cpu : *cpus) labels[cpu] = text_of(workload, "service");
  }
  return labels;
}

// The homes of each service, all of its instances together.
std::map<std::string, model::CpuSet> homes(const Document& workloads) {
  std::map<std::string, model::CpuSet> domains;
  for (const Document& workload : list_of(workloads, "workloads")) {
    const auto home = model::CpuSet::parse(text_of(workload, "home"));
    if (home && !home->empty()) domains[text_of(workload, "service")] |= *home;
  }
  return domains;
}

// The largest drawing in at most `room` lines.
Lines processor_lines(const TopFrame& frame, std::size_t room, const Style& style) {
  RenderOptions options;
  options.colour = style.colour;
  if (style.width > 0) options.width = static_cast<int>(style.width);
  options.use = frame.vcpu_use;
  options.labels = owners(frame.workloads);
  options.homes = homes(frame.workloads);
  options.home_kind = shared_domain_of(frame.status);
  Lines lines = split(render_topology(frame.topology, options));
  if (lines.size() <= room) return lines;
  options.homes.clear();
  lines = split(render_topology(frame.topology, options));
  if (lines.size() <= room) return lines;
  const auto labels = std::exchange(options.labels, {});
  lines = split(render_topology(frame.topology, options));
  if (lines.size() <= room) return lines;
  lines = split(render_vcpu_map(frame.topology, frame.vcpu_use, style, labels));
  if (lines.size() <= room) return lines;
  lines = split(render_vcpu_map(frame.topology, frame.vcpu_use, style));
  if (lines.size() <= room) return lines;
  const std::size_t shown = std::max<std::size_t>(room, 2) - 1;
  const std::size_t hidden = lines.size() - shown;
  lines.resize(shown);
  lines.push_back(fmt::format("  ... {} more lines of processors", hidden));
  return lines;
}

// The newest decisions below a title, in at most `room` lines.
Lines decision_lines(const TopFrame& frame, std::size_t room, const Style& style) {
  constexpr std::size_t kTitle = 2;  // with a blank line above it
  const auto& entries = list_of(frame.decisions, "entries");
  if (entries.empty() || room <= kTitle) return {};
  Lines lines{"", paint(style, Colour::bold, "DECISIONS")};
  for (const Document& entry : entries) {
    if (lines.size() == room) break;
    const std::string time = format_time(number_of(entry, "time").value_or(0));
    const std::string line = time.substr(time.find(' ') + 1) + "  " + printable(sentence_of(entry));
    lines.push_back(style.width > 0 ? keep_begin(line, style.width) : line);
  }
  return lines;
}

struct Layout {
  Lines above;           // of the workloads
  std::size_t rows = 0;  // of workloads
  bool footer = false;
};

Layout layout(const TopFrame& frame, const TopView& view, const Style& style) {
  Layout result;
  result.above = node_lines(frame, style);
  result.above.emplace_back();
  // A blank line below the processors, the table's titles, the keys, and the last decision with its title.
  const std::size_t below = 3 + (list_of(frame.decisions, "entries").empty() ? 0 : 3);
  const std::size_t least = result.above.size() + below + list_of(frame.workloads, "workloads").size();
  const std::size_t room =
      view.height == 0 ? SIZE_MAX : std::max(view.height / 2, view.height - std::min(view.height, least));
  for (std::string& line : processor_lines(frame, room, style)) result.above.push_back(std::move(line));
  result.above.emplace_back();
  result.rows = SIZE_MAX;
  if (view.height == 0) return result;
  result.footer = true;
  // The table's titles and the keys take a line each.
  const std::size_t used = result.above.size() + 2;
  result.rows = view.height > used ? view.height - used : 0;
  return result;
}

// Keys that have no room are left out, the most needed ones last.
std::string footer(const TopView& view, std::size_t first, std::size_t shown, std::size_t all,
                   const Style& style) {
  const std::string range = shown == all ? model::count_text(all, "workload")
                            : shown == 0
                                ? "no room for " + model::count_text(all, "workload")
                                : fmt::format("workloads {}-{} of {}", first + 1, first + shown, all);
  std::string text =
      fmt::format("{} by {}{} ", range, column_of(view.sort).name, view.reversed ? ", reversed" : "");
  for (const char* key : {"q quit", "s sort", "r reverse", "arrows scroll", "space refresh"}) {
    const std::string longer = fmt::format("{}  {}", text, key);
    if (style.width > 0 && display_width(longer) > style.width) break;
    text = longer;
  }
  return paint(style, Colour::dim, text);
}

}  // namespace

TopSort next_sort(TopSort sort) {
  const auto next = std::next(std::find_if(kSortColumns.begin(), kSortColumns.end(),
                                           [&](const SortColumn& column) { return column.sort == sort; }));
  return next == kSortColumns.end() ? kSortColumns.front().sort : next->sort;
}

TopPage render_top(const TopFrame& frame, const TopView& view, const Style& style) {
  Layout page = layout(frame, view, style);
  auto rows = sorted_workloads(frame, view);
  const std::size_t all = rows.size();
  const std::size_t shown = std::min(page.rows, all);
  const std::size_t first = std::min(view.first_row, all - shown);
  rows = {rows.begin() + static_cast<std::ptrdiff_t>(first),
          rows.begin() + static_cast<std::ptrdiff_t>(first + shown)};

  Lines lines = std::move(page.above);
  if (all == 0) {
    lines.emplace_back(kNoWorkloads);
  } else {
    std::ostringstream table;
    table_of(rows, view.sort).print(table, style);
    for (std::string& line : split(table.str())) lines.push_back(std::move(line));
  }
  if (page.footer) {
    const std::size_t room = std::max<std::size_t>(view.height, 1) - 1;
    const std::size_t free = room > lines.size() ? room - lines.size() : 0;
    for (std::string& line : decision_lines(frame, free, style)) lines.push_back(std::move(line));
    lines.resize(room);  // the keys stand on the last line
    lines.push_back(footer(view, first, shown, all, style));
  }
  TopPage result;
  result.rows = page.rows;
  for (const std::string& line : lines) result.text += line + '\n';
  return result;
}

}  // namespace berth::cli
