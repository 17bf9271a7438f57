// SPDX-License-Identifier: Apache-2.0
#include "cli/page_table.h"

#include "cli/document.h"
#include "cli/input.h"
#include "cli/render.h"
#include "cli/render_trial.h"
#include "cli/text.h"
#include "model/count_text.h"
#include "replay/chart.h"

#include <cmath>
#include <cstddef>
#include <utility>

#include <fmt/core.h>

namespace berth::cli {

namespace {

constexpr std::size_t kMostBytes = std::size_t{16} << 20;

replay::PageTable trial_table(const Document& trial) {
  replay::PageTable table;
  table.title = fmt::format("Measured: trial of a ({}) and b ({})", text_of(trial, "a"), text_of(trial, "b"));
  table.notes.push_back(
      fmt::format("{:g} of {} windows of {:g} s. Chance alone makes a difference in 2 of 100 trials at most.",
                  number_of(trial, "windows").value_or(0), list_of(trial, "order").size(),
                  number_of(trial, "window_s").value_or(0)));
  if (const auto ended = text_of(trial, "ended"); !ended.empty())
    table.notes.push_back("It ended early: " + ended);
  for (const Document& differs : list_of(trial, "differs")) {
    table.notes.push_back(
        fmt::format("{}: a {}, b {}", text_of(differs, "key"), text_of(differs, "a"), text_of(differs, "b")));
  }
  table.columns = {{"Service"},           {"Figure"},        {"a", true}, {"b", true},
                   {"b against a", true}, {"95 % interval"}, {"Verdict"}};
  for (const Document& figure : list_of(trial, "figures")) {
    const FigureTexts texts = texts_of(figure);
    table.rows.push_back(
        {texts.service, texts.figure, texts.a, texts.b, texts.change, texts.interval, texts.verdict});
  }
  return table;
}

// As the page has times. The file may hold any number.
std::string utc_time(double epoch_s) {
  return std::abs(epoch_s) <= 1e11 ? replay::clock_text(epoch_s, true) : "-";
}

replay::PageTable blame_table(const Document& blame) {
  const double waited_ms = number_of(blame, "waited_ms").value_or(0);
  replay::PageTable table;
  table.title = fmt::format("Measured: waits of {} for a vCPU", text_of(blame, "service"));
  table.notes.push_back(
      fmt::format("{} to {} UTC: threads of {} waited {:.1f} ms.",
                  utc_time(number_of(blame, "time").value_or(0) - number_of(blame, "seconds").value_or(0)),
                  utc_time(number_of(blame, "time").value_or(0)),
                  model::count_text(list_of(blame, "workloads").size(), "workload"), waited_ms));
  table.columns = {{"Culprit"}, {"Kind"}, {"ms", true}, {"Share", true}};
  for (const Document& culprit : list_of(blame, "culprits")) {
    const double ms = number_of(culprit, "ms").value_or(0);
    const double share = waited_ms > 0 ? ms / waited_ms : 0;
    table.rows.push_back(
        {culprit_text(culprit), text_of(culprit, "kind"), format_number(ms, 1), format_share(share)});
    table.bars.push_back(share);
  }
  return table;
}

}  // namespace

Outcome<replay::PageTable> read_page_table(const std::string& file) {
  const auto text = read_input(file, kMostBytes);
  if (!text) return tl::unexpected(text.error());
  const Document document = Document::parse(*text, nullptr, false);
  const std::string schema = text_of(document, "schema");
  if (schema == "berth.trial/1") return trial_table(document);
  if (schema == "berth.blame/1") return blame_table(document);
  return problem(Exit::wrong_use,
                 input_name(file) + ": is no output of berthctl trial --json, or of berthctl blame --json");
}

}  // namespace berth::cli
