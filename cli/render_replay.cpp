// SPDX-License-Identifier: Apache-2.0
#include "cli/render_replay.h"

#include "cli/render.h"
#include "cli/table.h"
#include "model/count_text.h"
#include "replay/page.h"

#include <ostream>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/core.h>

namespace berth::cli {

namespace {

// As an entry of berth.log/1 with the result "observed".
Document entry_of(const replay::Decision& decision) {
  const auto attribute = decision.action.attribute();
  Document entry{{"time", decision.time},
                 {"decision", decision.action.decision},
                 {"kind", decision.kind},
                 {"workload", decision.workload},
                 {"attribute", attribute ? control_file(*attribute) : ""},
                 {"old", decision.before},
                 {"new", decision.after},
                 {"policy", decision.action.policy},
                 {"reason", decision.action.reason},
                 {"result", "observed"}};
  if (decision.kind == "evict") {
    entry["attribute"] = decision.after;
    entry["new"] = "";
  }
  if (decision.kind == "advertise") {
    // "RESOURCE STATE FACTOR"
    const std::string_view text = decision.after;
    const std::size_t first = text.find(' ');
    const std::size_t last = text.rfind(' ');
    entry["attribute"] = text.substr(0, first);
    entry["new"] = text.substr(first + 1, last - first - 1);
  }
  return entry;
}

void render_head(std::ostream& out, const Replayed& replayed, const Style& style) {
  out << paint(style, Colour::bold, printable(fmt::format("Replay of {}", or_dash(replayed.host))))
      << fmt::format(", {} to {}, {} ticks\n", format_time(replayed.begun), format_time(replayed.ended),
                     replayed.ticks);
  constexpr std::string_view kLetters = "AB";
  for (std::size_t i = 0; i < replayed.sides.size(); ++i) {
    const std::string letter = replayed.sides.size() > 1 ? fmt::format("{}: ", kLetters[i]) : "";
    out << letter << printable(replayed.sides[i].name) << "\n";
  }
  if (replayed.cut)
    out << paint(style, Colour::yellow, printable("The trace ends early: " + *replayed.cut)) << "\n";
}

void render_decisions(std::ostream& out, const ReplayedSide& side, const Style& style) {
  out << "\n";
  Document::array_t entries;
  for (const replay::Decision& decision : side.decisions) entries.push_back(entry_of(decision));
  render_log(out, entries, style);
  if (side.decided == 0) out << "Nothing would be decided.\n";
  if (side.decided > entries.size())
    out << fmt::format("... and {} more decisions\n", side.decided - entries.size());
}

void render_differences(std::ostream& out, const Replayed& replayed, const Style& style) {
  const auto& differences = *replayed.differences;
  out << fmt::format("\n{} {}, in {}.\n", model::count_text(differences.all(), "decision"),
                     differences.all() == 1 ? "differs" : "differ",
                     model::count_text(differences.ticks(), "tick"));
  for (const replay::Difference& difference : differences.list()) {
    out << paint(style, difference.first ? Colour::green : Colour::yellow,
                 difference.first ? "only A  " : "only B  ");
    render_log(out, {entry_of(difference.decision)}, style);
  }
  if (differences.all() > differences.list().size())
    out << fmt::format("... and {} more\n", differences.all() - differences.list().size());
}

void render_figures(std::ostream& out, const Replayed& replayed, const Style& style) {
  std::vector<std::vector<replay::Figure>> figures;
  for (const ReplayedSide& side : replayed.sides)
    figures.push_back(replay::list_figures(side.side->figures()));
  const bool two = figures.size() > 1;
  std::vector<Column> columns{Column::text("FIGURE"), Column::figure(two ? "A" : "VALUE")};
  if (two) {
    columns.push_back(Column::figure("B"));
    columns.push_back(Column::figure("B - A"));
  }
  Table table(std::move(columns));
  for (std::size_t i = 0; i < figures.front().size(); ++i) {
    const replay::Figure& first = figures.front()[i];
    std::vector<Cell> row{first.title, replay::figure_text(first)};
    if (two) {
      const replay::Figure& second = figures[1][i];
      row.emplace_back(replay::figure_text(second));
      const std::string difference = replay::difference_text(first, second);
      const bool is_less = difference.starts_with("-");
      row.emplace_back(difference, difference.empty()                ? Colour::none
                                   : is_less == first.less_is_better ? Colour::green
                                                                     : Colour::yellow);
    }
    table.add(std::move(row));
  }
  out << "\n";
  table.print(out, style);
}

Document decision_document(const replay::Decision& decision) {
  return {{"time", decision.time},
          {"decision", decision.action.decision},
          {"kind", decision.kind},
          {"workload", decision.workload},
          {"before", decision.before},
          {"after", decision.after},
          {"policy", decision.action.policy},
          {"reason", decision.action.reason}};
}

Document figures_document(const replay::Figures& figures) {
  Document document{{"time_s", figures.time_s}};
  for (const replay::Figure& figure : replay::list_figures(figures))
    document[figure.name] = figure.value ? Document(*figure.value) : Document(nullptr);
  return document;
}

}  // namespace

bool is_told(const replay::Decision& decision) {
  if (decision.kind != "advertise") return true;
  return decision.before.substr(0, decision.before.rfind(' ')) !=
         decision.after.substr(0, decision.after.rfind(' '));
}

void render_replay(std::ostream& out, const Replayed& replayed, const Style& style) {
  render_head(out, replayed, style);
  if (replayed.ticks == 0) return;
  if (replayed.differences != nullptr) {
    render_differences(out, replayed, style);
  } else {
    render_decisions(out, replayed.sides.front(), style);
  }
  render_figures(out, replayed, style);
  out << paint(style, Colour::dim,
               "\nThe load is as recorded: it does not answer to these decisions (berthctl(1), replay).")
      << "\n";
}

Document replay_document(const Replayed& replayed) {
  Document sides = Document::array();
  for (const ReplayedSide& side : replayed.sides) {
    Document decisions = Document::array();
    for (const replay::Decision& decision : side.decisions) decisions.push_back(decision_document(decision));
    sides.push_back({{"settings", side.name},
                     {"figures", figures_document(side.side->figures())},
                     {"decided", side.decided},
                     {"decisions", std::move(decisions)}});
  }
  Document document{
      {"schema", "berth.replay/1"}, {"host", replayed.host},
      {"begun", replayed.begun},    {"ended", replayed.ended},
      {"ticks", replayed.ticks},    {"cut", replayed.cut ? Document(*replayed.cut) : Document(nullptr)},
      {"sides", std::move(sides)}};
  if (replayed.differences == nullptr) return document;
  Document list = Document::array();
  for (const replay::Difference& difference : replayed.differences->list()) {
    Document entry = decision_document(difference.decision);
    entry["side"] = difference.first ? 0 : 1;
    list.push_back(std::move(entry));
  }
  document["differences"] = {{"all", replayed.differences->all()},
                             {"ticks", replayed.differences->ticks()},
                             {"first", std::move(list)}};
  return document;
}

}  // namespace berth::cli
