// SPDX-License-Identifier: Apache-2.0
#include "cli/render_observed.h"

#include "cli/document.h"
#include "cli/table.h"
#include "model/count_text.h"
#include "model/json_text.h"

#include <cstdint>
#include <ostream>
#include <utility>

#include <fmt/core.h>

namespace berth::cli {

namespace {

Document document_of(const replay::Observed& observed, const std::string& file,
                     const std::optional<std::string>& cut) {
  Document services = Document::array();
  for (const auto& [key, count] : observed.counts()) {
    services.push_back({{"service", key.service},
                        {"response", to_string(key.response)},
                        {"at_once", count.at_once},
                        {"observations", count.observations},
                        {"with_llc", count.with_llc}});
  }
  return {{"schema", "berth.observed/1"},
          {"host", observed.host()},
          {"begun", observed.begun()},
          {"ended", observed.ended()},
          {"ticks", observed.ticks()},
          {"missing", observed.missing()},
          {"cut", cut ? Document(*cut) : Document(nullptr)},
          {"file", file},
          {"observations", observed.observations()},
          {"services", std::move(services)},
          {"lacks", observed.lacks()}};
}

void render(std::ostream& out, const replay::Observed& observed, const std::string& file,
            const std::optional<std::string>& cut, const Style& style) {
  out << paint(style, Colour::bold, printable("Observations of " + or_dash(observed.host())))
      << fmt::format(", {} to {}, {}\n", format_time(observed.begun()), format_time(observed.ended()),
                     model::count_text(observed.ticks(), "tick"));
  if (cut) out << paint(style, Colour::yellow, printable("The trace ends early: " + *cut)) << "\n";
  if (!observed.counts().empty()) {
    Table table({Column::name("SERVICE"), Column::text("RESPONSE"), Column::figure("AT ONCE"),
                 Column::figure("OBSERVATIONS"), Column::figure("WITH LLC")});
    for (const auto& [key, count] : observed.counts()) {
      table.add({printable(key.service), to_string(key.response), std::to_string(count.at_once),
                 std::to_string(count.observations), std::to_string(count.with_llc)});
    }
    out << "\n";
    table.print(out, style);
    out << "\n";
  }
  for (const std::string& lack : observed.lacks()) out << printable("- " + lack) << "\n";
  out << printable(fmt::format("{} in {}", model::count_text(observed.observations(), "observation"),
                               file == "-" ? "standard output" : file))
      << "\n";
}

}  // namespace

std::string observation_lines(const std::vector<model::Observation>& seen) {
  std::string lines;
  for (const model::Observation& one : seen) lines += model::to_json(one) + "\n";
  return lines;
}

void tell_observed(Session& session, const replay::Observed& observed, const std::string& file,
                   const std::optional<std::string>& cut) {
  if (file == "-") {
    render(session.err, observed, file, cut, {});
  } else if (session.json) {
    session.out << model::json_text(document_of(observed, file, cut)) << "\n";
  } else {
    render(session.out, observed, file, cut, session.style);
  }
}

}  // namespace berth::cli
