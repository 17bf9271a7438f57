// SPDX-License-Identifier: Apache-2.0
#include "replay/page.h"

#include "model/bytes_text.h"
#include "replay/chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/core.h>

namespace berth::replay {

namespace {

constexpr std::size_t kMostRows = 200;       // of a table
constexpr std::size_t kMostQuotas = 12;      // plots of single workloads
constexpr std::size_t kMostStragglers = 40;  // tasks
constexpr std::size_t kMostServices = 24;    // of the legend
constexpr std::size_t kMostBoxes = 20'000;   // of a map; a pin may have one for every second vCPU
constexpr double kPlotHeight = 110;
constexpr double kMapHeight = 320;

// Of the two sides.
constexpr std::array<const char*, 2> kLineOf{"a", "b"};

constexpr const char* kStyle = R"(
:root{color-scheme:light dark;--fg:#1b1f24;--bg:#fff;--mut:#67707b;--grid:#d9dde2;--a:#1864ab;--b:#c2410c}
@media(prefers-color-scheme:dark){:root{--fg:#e6e8eb;--bg:#15181c;--mut:#9aa3ad;--grid:#30363d;--a:#74b3f0;--b:#f29c68}}
body{font:14px/1.45 system-ui,sans-serif;color:var(--fg);background:var(--bg);max-width:980px;margin:2em auto;padding:0 1em;overflow-wrap:anywhere}
h1{font-size:1.5em;margin:0}h2{font-size:1.1em;margin:1.8em 0 .3em}p{margin:.3em 0}.m{color:var(--mut)}
.w{border-left:4px solid var(--b);padding-left:.7em}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:.15em .8em .15em 0;border-bottom:1px solid var(--grid);vertical-align:top}
td.n,th.n{text-align:right}td.n{white-space:nowrap}svg{width:100%;height:auto;display:block}
.t{font-size:10px;fill:var(--mut)}.g{stroke:var(--grid);stroke-width:1}
polyline{fill:none;stroke-width:1.4}.a{stroke:var(--a)}.b{stroke:var(--b)}.c{stroke:var(--mut)}
path.a{fill:var(--a)}path.b{fill:var(--b)}.ka{color:var(--a)}.kb{color:var(--b)}
.s{width:20%}.s i{display:block;height:.8em;margin-top:.3em;background:var(--a)}
.k i{display:inline-block;width:.8em;height:.8em;margin-right:.3em}.k span{margin-right:1em;white-space:nowrap}
)";

std::string seconds_text(double seconds) {
  if (std::abs(seconds) < 120) return fmt::format("{:.1f} s", seconds);
  if (std::abs(seconds) < 7200) return fmt::format("{:.1f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

std::string value_text(double value, Figure::Unit unit) {
  switch (unit) {
    case Figure::Unit::seconds:
      return seconds_text(value);
    case Figure::Unit::cores:
      return fmt::format("{:.2f} cores", value);
    case Figure::Unit::bytes:
      return model::bytes_with_one_decimal(value);
    case Figure::Unit::core_seconds:
      return fmt::format("{:.1f} core s", value);
    case Figure::Unit::score:
      return fmt::format("{:.4f}", value);
    case Figure::Unit::number:
      break;
  }
  return fmt::format("{:.0f}", value);
}

// A number a little above `most` that makes a good upper end of an axis.
double round_up(double most) {
  if (!(most > 0)) return 1;
  const double scale = std::pow(10, std::floor(std::log10(most)));
  for (const double step : {1.0, 2.0, 2.5, 5.0, 10.0}) {
    if (most <= step * scale) return step * scale;
  }
  return 10 * scale;
}

std::vector<std::pair<double, std::string>> axis_of(double high, const char* unit) {
  return {{0, fmt::format("0{}", unit)},
          {high / 2, fmt::format("{:.3g}{}", high / 2, unit)},
          {high, fmt::format("{:.3g}{}", high, unit)}};
}

template <typename Value>
Chart::Points points_of(const Series& series, Value value) {
  Chart::Points points;
  for (const Series::Point& point : series.points()) points.emplace_back(point.time, value(point));
  return points;
}

double highest(const Chart::Points& points) {
  double most = 0;
  for (const auto& [time, value] : points) most = std::max(most, value);
  return most;
}

// One figure of the host over time; with `both`, of both sides.
template <typename Value>
std::string plot(const Page& page, const char* title, const char* unit, bool both, Value value) {
  double most = 0;
  for (const PageSide& side : page.sides)
    most = std::max(most, highest(points_of(side.history->series(), value)));
  const double high = round_up(most);
  Chart chart(page.begun, page.ended, 0, high, kPlotHeight);
  chart.axes(axis_of(high, unit));
  for (std::size_t i = 0; i < (both ? page.sides.size() : 1); ++i)
    chart.line(points_of(page.sides[i].history->series(), value), both ? kLineOf[i] : "c");
  return fmt::format("<h2>{}</h2>{}", title, chart.svg(title));
}

std::string key_of_sides(const Page& page) {
  if (page.sides.size() < 2) return "";
  return fmt::format(
      R"(<p class="k"><span class="ka">&#9632; A: {}</span><span class="kb">&#9632; B: {}</span></p>)",
      html_text(page.sides[0].name), html_text(page.sides[1].name));
}

std::string figures_table(const Page& page) {
  std::vector<std::vector<Figure>> figures;
  for (const PageSide& side : page.sides) figures.push_back(list_figures(*side.figures));
  const bool two = figures.size() > 1;
  std::string text = two ? R"(<table><tr><th>Figure<th class="n ka">A<th class="n kb">B<th class="n">B - A)"
                         : R"(<table><tr><th>Figure<th class="n">Value)";
  for (std::size_t i = 0; i < figures.front().size(); ++i) {
    text += fmt::format("<tr><td>{}", figures.front()[i].title);
    for (const auto& side : figures) text += fmt::format(R"(<td class="n">{})", figure_text(side[i]));
    if (two) text += fmt::format(R"(<td class="n">{})", difference_text(figures[0][i], figures[1][i]));
  }
  return text + "</table>";
}

// The vCPUs from the top of the map to its bottom: by socket, LLC and core.
std::vector<const model::Cpu*> rows_of(const model::Topology& topology) {
  std::vector<const model::Cpu*> rows;
  for (const model::Cpu& cpu : topology.cpus()) rows.push_back(&cpu);
  std::stable_sort(rows.begin(), rows.end(), [](const model::Cpu* a, const model::Cpu* b) {
    return std::tuple(a->socket, a->llc.value_or(-1), a->core, a->cpu) <
           std::tuple(b->socket, b->llc.value_or(-1), b->core, b->cpu);
  });
  return rows;
}

std::string group_name(const model::Cpu& cpu) {
  return cpu.llc ? fmt::format("socket {}, LLC {}", cpu.socket, *cpu.llc)
                 : fmt::format("socket {}", cpu.socket);
}

// Labels and lines between the groups of rows.
void draw_groups(Chart& chart, const std::vector<const model::Cpu*>& rows) {
  std::size_t first = 0;
  for (std::size_t i = 1; i <= rows.size(); ++i) {
    if (i < rows.size() && group_name(*rows[i]) == group_name(*rows[first])) continue;
    const auto top = static_cast<double>(rows.size() - first);
    const auto bottom = static_cast<double>(rows.size() - i);
    chart.label((top + bottom) / 2, group_name(*rows[first]));
    chart.rule(bottom);
    first = i;
  }
}

std::string pins_map(const Page& page, const PageSide& side) {
  const auto rows = rows_of(*page.topology);
  const auto count = static_cast<double>(rows.size());
  Chart chart(page.begun, page.ended, 0, count, std::clamp(count * 10, 60.0, kMapHeight));
  chart.axes({});
  draw_groups(chart, rows);
  std::size_t boxes = 0;
  std::size_t left_out = 0;  // pins
  for (const PinSpan& span : side.history->pins()) {
    if (boxes >= kMostBoxes) {
      ++left_out;
      continue;
    }
    const std::string title =
        fmt::format("{} ({}) on vCPUs {}, {} to {}", span.workload, span.service, span.cpus.to_string(),
                    clock_text(span.from, false), clock_text(span.to, false));
    // Rows that follow each other are one box.
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (!span.cpus.contains(rows[i]->cpu)) continue;
      const std::size_t first = i;
      while (i + 1 < rows.size() && span.cpus.contains(rows[i + 1]->cpu)) ++i;
      chart.box(span.from, span.to, count - static_cast<double>(i) - 1, count - static_cast<double>(first),
                colour_of(span.service), title);
      ++boxes;
    }
  }
  std::string text = chart.svg("pins over time on the topology");
  if (left_out > 0)
    text += fmt::format(R"(<p class="w">{} later pins are left out of this plot.</p>)", left_out);
  return text;
}

std::string services_key(const Page& page) {
  std::set<std::string> services;
  for (const PageSide& side : page.sides) {
    for (const PinSpan& span : side.history->pins()) services.insert(span.service);
  }
  std::string text = R"(<p class="k m">)";
  std::size_t shown = 0;
  for (const std::string& service : services) {
    if (shown++ == kMostServices) break;
    text += fmt::format(R"(<span><i style="background:{}"></i>{}</span>)", colour_of(service),
                        html_text(service));
  }
  if (services.size() > kMostServices) text += fmt::format("and {} more", services.size() - kMostServices);
  return text + "</p>";
}

std::string pins_section(const Page& page) {
  std::string text = "<h2>Pins over time on the topology</h2>" + services_key(page);
  for (std::size_t i = 0; i < page.sides.size(); ++i) {
    const PageSide& side = page.sides[i];
    if (page.sides.size() > 1)
      text += fmt::format(R"(<p class="k{0}">{1}</p>)", kLineOf[i], i == 0 ? "A" : "B");
    text += side.history->pins().empty() ? R"(<p class="m">Nothing was pinned.</p>)" : pins_map(page, side);
  }
  return text;
}

// The workloads whose quotas changed the most often.
std::vector<std::string> changed_quotas(const Page& page) {
  std::map<std::string, std::size_t> changes;
  for (const PageSide& side : page.sides) {
    for (const auto& [workload, spans] : side.history->quotas()) changes[workload] += spans.size();
  }
  std::vector<std::string> order;
  order.reserve(changes.size());
  for (const auto& [workload, number] : changes) order.push_back(workload);
  std::stable_sort(order.begin(), order.end(),
                   [&](const std::string& a, const std::string& b) { return changes.at(a) > changes.at(b); });
  return order;
}

std::string quota_plot(const Page& page, const std::string& workload) {
  std::array<std::vector<Chart::Points>, 2> lines;  // of each side
  double most = 0;
  for (std::size_t i = 0; i < page.sides.size(); ++i) {
    const auto found = page.sides[i].history->quotas().find(workload);
    if (found == page.sides[i].history->quotas().end()) continue;
    for (const QuotaSpan& span : found->second) {
      // No limit is drawn as no line, and neither is the time in which the workload does not run.
      if (!span.cores) continue;
      if (lines[i].empty() || lines[i].back().back().first != span.from) lines[i].emplace_back();
      lines[i].back().emplace_back(span.from, *span.cores);
      lines[i].back().emplace_back(span.to, *span.cores);
      most = std::max(most, *span.cores);
    }
  }
  const double high = round_up(most);
  Chart chart(page.begun, page.ended, 0, high, 50);
  chart.axes({{0, "0"}, {high, fmt::format("{:.3g} cores", high)}});
  for (std::size_t i = 0; i < page.sides.size(); ++i) {
    for (const Chart::Points& line : lines[i]) chart.line(line, kLineOf[i]);
  }
  return fmt::format(R"(<p class="m">{}</p>{})", html_text(workload), chart.svg(workload));
}

std::string quotas_section(const Page& page) {
  std::string text = "<h2>CPU quotas that berth would hold</h2>";
  const auto order = changed_quotas(page);
  if (order.empty()) return text + R"(<p class="m">None.</p>)";
  for (std::size_t i = 0; i < std::min(order.size(), kMostQuotas); ++i) text += quota_plot(page, order[i]);
  if (order.size() > kMostQuotas)
    text += fmt::format(R"(<p class="m">{} more workloads, whose quotas changed less often.</p>)",
                        order.size() - kMostQuotas);
  return text;
}

std::string evictions_section(const Page& page) {
  std::string text = "<h2>Evictions</h2>";
  std::vector<std::pair<const Eviction*, std::size_t>> all;  // and the side
  for (std::size_t i = 0; i < page.sides.size(); ++i) {
    for (const Eviction& eviction : page.sides[i].history->evictions()) all.emplace_back(&eviction, i);
  }
  if (all.empty()) return text + R"(<p class="m">None.</p>)";
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.first->time < b.first->time; });
  Chart chart(page.begun, page.ended, 0, 1, 24);
  chart.axes({});
  for (const auto& [eviction, side] : all)
    chart.mark(eviction->time, kLineOf[side], clock_text(eviction->time, false) + " " + eviction->workload);
  text +=
      chart.svg("evictions over time") + "<table><tr><th>Time (UTC)<th>Side<th>Workload<th>Policy<th>Reason";
  for (std::size_t i = 0; i < std::min(all.size(), kMostRows); ++i) {
    const auto& [eviction, side] = all[i];
    text += fmt::format(R"(<tr><td>{}<td class="k{}">{}<td>{}<td>{}<td>{})", clock_text(eviction->time, true),
                        kLineOf[side], side == 0 ? "A" : "B", html_text(eviction->workload),
                        html_text(eviction->policy), html_text(eviction->reason));
  }
  text += "</table>";
  if (all.size() > kMostRows) text += fmt::format(R"(<p class="m">{} more.</p>)", all.size() - kMostRows);
  return text;
}

std::string stragglers_section(const Page& page) {
  std::string text = "<h2>Stragglers</h2>";
  std::set<std::string> tasks;
  for (const PageSide& side : page.sides) {
    for (const auto& [task, spans] : side.history->stragglers()) tasks.insert(task);
  }
  if (tasks.empty()) return text + R"(<p class="m">None.</p>)";
  const auto rows = static_cast<double>(std::min(tasks.size(), kMostStragglers));
  Chart chart(page.begun, page.ended, 0, rows, rows * 16);
  chart.axes({});
  double row = rows;
  for (const std::string& task : tasks) {
    if (row <= 0) break;
    constexpr std::size_t kLetters = 24;
    chart.label(row - 0.5, task.size() > kLetters ? "..." + task.substr(task.size() - kLetters) : task);
    const double height = 0.8 / static_cast<double>(page.sides.size());
    for (std::size_t i = 0; i < page.sides.size(); ++i) {
      const auto found = page.sides[i].history->stragglers().find(task);
      if (found == page.sides[i].history->stragglers().end()) continue;
      const double top = row - 0.1 - height * static_cast<double>(i);
      for (const Span& span : found->second)
        chart.box(
            span.from, span.to, top - height, top, i == 0 ? "var(--a)" : "var(--b)",
            fmt::format("{}: {} to {}", task, clock_text(span.from, false), clock_text(span.to, false)));
    }
    row -= 1;
  }
  text += chart.svg("stragglers over time");
  if (tasks.size() > kMostStragglers)
    text += fmt::format(R"(<p class="m">{} more tasks.</p>)", tasks.size() - kMostStragglers);
  return text;
}

std::string measured_section(const PageTable& table) {
  std::string text = fmt::format("<h2>{}</h2>", html_text(table.title));
  for (const std::string& note : table.notes) text += fmt::format("<p>{}</p>", html_text(note));
  if (table.rows.empty()) return text;
  text += "<table><tr>";
  for (const auto& column : table.columns)
    text += fmt::format("<th{}>{}", column.figure ? R"( class="n")" : "", html_text(column.name));
  const bool bars = table.bars.size() == table.rows.size();
  if (bars) text += "<th>";
  for (std::size_t row = 0; row < std::min(table.rows.size(), kMostRows); ++row) {
    text += "<tr>";
    for (std::size_t at = 0; at < std::min(table.columns.size(), table.rows[row].size()); ++at) {
      text += fmt::format("<td{}>{}", table.columns[at].figure ? R"( class="n")" : "",
                          html_text(table.rows[row][at]));
    }
    if (bars) {
      text += fmt::format(R"(<td class="s"><i style="width:{:.1f}%"></i>)",
                          100 * std::clamp(table.bars[row], 0.0, 1.0));
    }
  }
  text += "</table>";
  if (table.rows.size() > kMostRows)
    text += fmt::format(R"(<p class="m">{} more.</p>)", table.rows.size() - kMostRows);
  return text;
}

std::string differences_section(const Page& page) {
  if (page.differences == nullptr) return "";
  const Differences& differences = *page.differences;
  std::string text = fmt::format("<h2>Decisions that differ</h2><p>Number: {}, in {} of {} ticks.</p>",
                                 differences.all(), differences.ticks(), page.ticks);
  if (differences.list().empty()) return text;
  text += "<table><tr><th>Time (UTC)<th>Only<th>Decision<th>Workload<th>Value<th>Reason";
  const std::size_t shown = std::min(differences.list().size(), kMostRows);
  for (std::size_t i = 0; i < shown; ++i) {
    const Difference& difference = differences.list()[i];
    const Decision& decision = difference.decision;
    text += fmt::format(R"(<tr><td>{}<td class="k{}">{}<td>{}<td>{}<td>{}<td>{})",
                        clock_text(decision.time, true), difference.first ? "a" : "b",
                        difference.first ? "A" : "B", html_text(decision.kind), html_text(decision.workload),
                        html_text(decision.after), html_text(decision.action.reason));
  }
  text += "</table>";
  if (differences.all() > shown)
    text += fmt::format(R"(<p class="m">{} more.</p>)", differences.all() - shown);
  return text;
}

std::string head(const Page& page) {
  std::string text = fmt::format("<h1>Replay of {}</h1><p>{} to {} UTC, {} ticks. ", html_text(page.host),
                                 clock_text(page.begun, true), clock_text(page.ended, true), page.ticks);
  for (std::size_t i = 0; i < page.sides.size(); ++i) {
    if (page.sides.size() > 1) text += i == 0 ? "A: " : "B: ";
    text += html_text(page.sides[i].name) + ". ";
  }
  text += "</p>";
  if (page.cut) text += fmt::format(R"(<p class="w">The trace ends early: {}.</p>)", html_text(*page.cut));
  std::size_t dropped = 0;
  for (const PageSide& side : page.sides) dropped += side.history->dropped();
  if (dropped > 0)
    text += fmt::format(R"(<p class="w">{} later changes are left out of the plots.</p>)", dropped);
  return text +
         R"(<p class="m">The load is as it was recorded. It does not answer to the decisions: a pinned service
gets no faster, a task with more CPU makes no more progress, and nothing starts in place of what is evicted.</p>)";
}

}  // namespace

std::string figure_text(const Figure& figure) {
  return figure.value ? value_text(*figure.value, figure.unit) : "-";
}

std::string difference_text(const Figure& first, const Figure& second) {
  if (!first.value || !second.value || *first.value == *second.value) return "";
  const double difference = *second.value - *first.value;
  const std::string text = value_text(std::abs(difference), first.unit);
  return (difference < 0 ? "-" : "+") + text;
}

std::string page_html(const Page& page) {
  std::string text =
      R"(<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">)"
      R"(<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">)"
      R"(<meta name="viewport" content="width=device-width,initial-scale=1">)";
  text +=
      fmt::format("<title>Replay of {}</title><style>{}</style></head><body>", html_text(page.host), kStyle);
  text += head(page) + figures_table(page) + key_of_sides(page);
  for (const PageTable& table : page.measured) text += measured_section(table);
  if (page.ticks > 0 && page.topology != nullptr) {
    using Point = Series::Point;
    text += plot(page, "Memory pressure: time in which all tasks stalled", " %", false,
                 [](const Point& point) { return point.psi_full; });
    text +=
        plot(page, "Memory in use", " %", true, [](const Point& point) { return 100 * point.memory_share; });
    text += plot(page, "CPU in use by workloads", " cores", true,
                 [](const Point& point) { return point.cpu_cores; });
    text += plot(page, "Interference score of the host", "", true,
                 [](const Point& point) { return point.score; });
    text +=
        plot(page, "Advertised factor of CPU", "", true, [](const Point& point) { return point.cpu_factor; });
    text += plot(page, "Advertised factor of memory", "", true,
                 [](const Point& point) { return point.memory_factor; });
    text += pins_section(page) + quotas_section(page) + evictions_section(page) + stragglers_section(page);
  }
  return text + differences_section(page) + "</body></html>\n";
}

}  // namespace berth::replay
