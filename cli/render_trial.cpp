// SPDX-License-Identifier: Apache-2.0
#include "cli/render_trial.h"

#include "cli/table.h"
#include "model/count_text.h"

#include <ostream>

#include <fmt/core.h>

namespace berth::cli {

namespace {

using trial::Row;
using trial::Side;

std::size_t planned(const trial::Measured& measured) { return 2 * measured.order.size(); }
std::size_t done(const trial::Measured& measured) { return 2 * measured.blocks.size(); }
bool is_complete(const trial::Measured& measured) {
  return !measured.interrupted && !measured.failure && done(measured) == planned(measured);
}

// Why it ended early; nullopt where it did not.
std::optional<std::string> why_ended(const trial::Measured& measured) {
  if (measured.failure) return measured.failure->message();
  if (measured.interrupted) return "a signal ended it";
  return std::nullopt;
}

std::string change_text(bool relative, double value) {
  return relative ? fmt::format("{:+.1f} %", value * 100) : fmt::format("{:+.3g}", value);
}

void render_head(std::ostream& out, const ShownTrial& shown, const Style& style) {
  const trial::Measured& measured = *shown.measured;
  out << paint(style, Colour::bold,
               printable(fmt::format("Trial of a ({}) and b ({})", shown.files[0], shown.files[1])))
      << fmt::format("\n{} of {} windows of {:g} s, of which {:g} s count; seed {}\n", done(measured),
                     planned(measured), measured.pace.window_s, measured.pace.counted_s(), shown.seed);
  for (const Document& difference : shown.differs) {
    out << printable(fmt::format("  {}: a {}, b {}", text_of(difference, "key"), text_of(difference, "a"),
                                 text_of(difference, "b")))
        << "\n";
  }
  if (const auto why = why_ended(measured))
    out << paint(style, Colour::yellow, printable("It ended early: " + *why)) << "\n";
}

void render_end(std::ostream& out, const ShownTrial& shown, const Style& style) {
  const trial::Measured& measured = *shown.measured;
  if (measured.metric_failures > 0 && measured.metric_problem) {
    out << printable(fmt::format("In {}, the command gave no number: {}",
                                 model::count_text(measured.metric_failures, "window"),
                                 *measured.metric_problem))
        << "\n";
  }
  if (shown.result->left_out > 0)
    out << fmt::format("{} more services count for the host alone.\n", shown.result->left_out);
  if (shown.not_kept) out << printable("Nothing is kept: " + *shown.not_kept) << "\n";
  if (shown.not_undone) {
    out << paint(style, Colour::red, printable(*shown.not_undone)) << "\n";
  } else if (shown.kept) {
    const auto& file = shown.files[static_cast<std::size_t>(*shown.kept)];
    out << printable(fmt::format("The settings of {} stay in force until berthctl reload, or a restart of "
                                 "berthd. To keep them for good, copy {} into the directory of drop-ins "
                                 "(berth.toml(5)).",
                                 trial::to_string(*shown.kept), file))
        << "\n";
  } else {
    out << "The settings are as before.\n";
  }
}

template <typename Optional>
Document nullable(const Optional& value) {
  return value ? Document(*value) : Document(nullptr);
}

Document row_document(const Row& row) {
  const trial::Change& change = row.change;
  const auto better = trial::better_side(row);
  return {{"service", row.key.service.empty() ? Document(nullptr) : Document(row.key.service)},
          {"figure", trial::to_string(row.key.figure)},
          {"unit", trial::unit_of(row.key.figure)},
          {"pairs", change.blocks},
          {"a", change.a},
          {"b", change.b},
          {"relative", change.relative},
          {"change", change.change},
          {"low", nullable(change.low)},
          {"high", nullable(change.high)},
          {"p", change.p},
          {"difference", change.shown},
          {"better", better ? Document(trial::to_string(*better)) : Document(nullptr)}};
}

}  // namespace

FigureTexts texts_of(const Document& figure) {
  const auto number = [&](const char* name) {
    const auto value = number_of(figure, name);
    return value ? fmt::format("{:.4g}", *value) : std::string("-");
  };
  const bool relative = flag_of(figure, "relative");
  const auto change = [&](const char* name) {
    const auto value = number_of(figure, name);
    return value ? change_text(relative, *value) : std::string("-");
  };
  const std::string service = text_of(figure, "service");
  const std::string better = text_of(figure, "better");
  const bool few = number_of(figure, "pairs").value_or(0) < static_cast<double>(trial::kFewestBlocks);
  const bool bounded = number_of(figure, "low") && number_of(figure, "high");
  return {.service = service.empty() ? "(host)" : service,
          .figure = text_of(figure, "figure") + (text_of(figure, "unit") == "us" ? " (us)" : ""),
          .a = number("a"),
          .b = number("b"),
          .change = change("change"),
          .interval = bounded ? change("low") + " to " + change("high") : "-",
          .verdict = few              ? "too few windows"
                     : better.empty() ? "no difference shown"
                                      : "a difference: " + better + " is better",
          .difference = !few && !better.empty()};
}

void render_trial(std::ostream& out, const ShownTrial& shown, const Style& style) {
  render_head(out, shown, style);
  out << "\n";
  if (shown.result->rows.empty()) {
    out << "Nothing was measured in two windows of a pair.\n";
  } else {
    Table table({Column::name("SERVICE"), Column::text("FIGURE"), Column::figure("A"), Column::figure("B"),
                 Column::figure("B AGAINST A"), Column::text("95 % INTERVAL"), Column::text("VERDICT")});
    for (const Row& row : shown.result->rows) {
      const FigureTexts texts = texts_of(row_document(row));
      table.add({printable(texts.service), texts.figure, texts.a, texts.b, texts.change, texts.interval,
                 Cell(texts.verdict, texts.difference ? Colour::green : Colour::dim)});
    }
    table.print(out, style);
  }
  out << "\n";
  render_end(out, shown, style);
}

Document trial_document(const ShownTrial& shown) {
  const trial::Measured& measured = *shown.measured;
  Document figures = Document::array();
  for (const Row& row : shown.result->rows) figures.push_back(row_document(row));
  Document order = Document::array();
  for (const auto& block : measured.order) {
    for (const Side side : block) order.push_back(trial::to_string(side));
  }
  return {{"schema", "berth.trial/1"},
          {"a", shown.files[0]},
          {"b", shown.files[1]},
          {"differs", shown.differs},
          {"seed", shown.seed},
          {"window_s", measured.pace.window_s},
          {"warm_up_s", measured.pace.warm_up_s},
          {"order", order},
          {"windows", done(measured)},
          {"complete", is_complete(measured)},
          {"ended", nullable(why_ended(measured))},
          {"figures", figures},
          {"left_out", shown.result->left_out},
          {"metric_failures", measured.metric_failures},
          {"metric_problem", nullable(measured.metric_problem)},
          {"kept", shown.kept ? Document(trial::to_string(*shown.kept)) : Document(nullptr)},
          {"not_kept", nullable(shown.not_kept)},
          {"not_undone", nullable(shown.not_undone)}};
}

}  // namespace berth::cli
