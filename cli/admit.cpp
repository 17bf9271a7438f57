// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/daemon_client.h"
#include "cli/input.h"
#include "cli/render_placement.h"
#include "config/units.h"
#include "model/json.h"

#include <memory>
#include <ostream>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace berth::cli {

namespace {

struct Arguments {
  std::string request;
  std::string hold;
};

Outcome<double> hold_seconds(const Arguments& arguments) {
  if (arguments.hold.empty()) return 0.0;
  const auto seconds = config::parse_duration_s(arguments.hold);
  if (!seconds || *seconds <= 0) {
    return problem(Exit::wrong_use,
                   fmt::format("--hold \"{}\": must be a duration, as in \"5min\"", arguments.hold));
  }
  return *seconds;
}

Outcome<void> admit(Session& session, const Arguments& arguments) {
  const auto hold_s = hold_seconds(arguments);
  if (!hold_s) return tl::unexpected(hold_s.error());
  const auto text = read_input(arguments.request);
  if (!text) return tl::unexpected(text.error());
  // Read here too, where the file has a name.
  const auto parsed = model::parse_request(*text);
  if (!parsed) return problem(parsed.error().context(input_name(arguments.request)));
  for (const std::string& warning : parsed->warnings) {
    session.err << "berthctl: warning: " << printable(input_name(arguments.request)) << ": "
                << printable(warning) << "\n";
  }
  auto daemon = DaemonClient::connect();
  if (!daemon) return tl::unexpected(daemon.error());
  const auto answered = daemon->admit(*text, *hold_s);
  if (!answered) return tl::unexpected(answered.error());
  const auto admission = model::parse_admission(*answered);
  if (!admission) return problem(admission.error().context("berthd's answer"));
  if (session.json) {
    session.out << *answered << "\n";
  } else {
    render_admission(session.out, *admission, session.style);
  }
  if (admission->admitted) return {};
  return problem(Exit::refused,
                 fmt::format("\"{}\" is refused: {}", admission->request.id, admission->reason));
}

}  // namespace

Action declare_admit(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  app.add_option("--request", arguments->request, "What is to start, - for standard input")
      ->required()
      ->type_name("FILE");
  app.add_option("--hold", arguments->hold, "How long its place is kept for it")->type_name("DURATION");
  return [arguments](Session& session) { return admit(session, *arguments); };
}

}  // namespace berth::cli
