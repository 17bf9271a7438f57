// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/daemon_client.h"
#include "cli/input.h"
#include "cli/render_plan.h"
#include "config/units.h"
#include "model/json.h"
#include "model/json_text.h"
#include "model/name.h"

#include <memory>
#include <ostream>
#include <string>

#include <fmt/core.h>

namespace berth::cli {

namespace {

struct AdmitArguments {
  std::string request;
  std::string hold;
  std::string cancel;
  bool list = false;
};

Outcome<double> hold_seconds(const AdmitArguments& arguments) {
  if (arguments.hold.empty()) return 0.0;
  const auto seconds = config::parse_duration_s(arguments.hold);
  if (!seconds || *seconds <= 0) {
    return problem(Exit::wrong_use,
                   fmt::format("--hold \"{}\": must be a duration, as in \"5min\"", arguments.hold));
  }
  return *seconds;
}

Outcome<void> admit(Session& session, const AdmitArguments& arguments) {
  const auto hold_s = hold_seconds(arguments);
  if (!hold_s) return tl::unexpected(hold_s.error());
  const auto text = read_input(arguments.request);
  if (!text) return tl::unexpected(text.error());
  // It is parsed here too, as the file has a name here.
  const auto parsed = model::parse_request(*text);
  if (!parsed) return problem(parsed.error().context(input_name(arguments.request)));
  warn(session.err, parsed->warnings, input_name(arguments.request));
  const auto answered = ask_daemon(&DaemonClient::admit, *text, *hold_s);
  if (!answered) return tl::unexpected(answered.error());
  const auto admission = model::parse_admission(*answered);
  if (!admission) return problem(admission.error().context("berthd's answer"));
  if (session.json) {
    session.out << *answered << "\n";
  } else {
    render_admission(session.out, *admission, session.style);
    const auto document = parse_document(*answered, "answer");
    if (!document) return tl::unexpected(document.error());
    if (const std::string decision = text_of(*document, "decision"); !decision.empty())
      session.out << "  " << paint(session.style, Colour::dim, printable("Decision " + decision)) << "\n";
  }
  if (admission->admitted) return {};
  return problem(Exit::refused,
                 fmt::format("\"{}\" is refused: {}", admission->request.id, admission->reason));
}

Outcome<void> list(Session& session) {
  return show_document(session, ask_daemon(&DaemonClient::reservations), "list of reservations",
                       render_reservations);
}

Outcome<void> cancel(Session& session, const std::string& id) {
  if (!model::is_name(id)) {
    return problem(Exit::wrong_use,
                   fmt::format("\"{}\" is not a request's id; `berthctl admit --list` shows all", id));
  }
  const auto decision = ask_daemon(&DaemonClient::cancel_reservation, id);
  if (!decision) return tl::unexpected(decision.error());
  return tell(session, {{"schema", "berth.cancel/1"}, {"id", id}, {"decision", *decision}},
              printable(fmt::format("{}: its place is free again ({})", id, *decision)));
}

}  // namespace

Action declare_admit(const Options& options) {
  const auto arguments = std::make_shared<AdmitArguments>();
  const auto request =
      options.option("--request", arguments->request, "The request to admit, - for standard input")
          .type_name("FILE");
  options.option("--hold", arguments->hold, "How long its place is kept")
      .type_name("DURATION")
      .needs(request);
  const auto list_all =
      options.flag("--list", arguments->list, "Show all reservations, and until when they hold");
  list_all.excludes(request);
  const auto cancelled =
      options.option("--cancel", arguments->cancel, "Give up the reservation of this request, by its id");
  cancelled.type_name("ID").excludes(request).excludes(list_all);
  return [arguments, cancelled](Session& session) -> Outcome<void> {
    if (arguments->list) return list(session);
    if (cancelled.given()) return cancel(session, arguments->cancel);
    if (!arguments->request.empty()) return admit(session, *arguments);
    return problem(Exit::wrong_use, "--request, --list or --cancel is needed (see berthctl admit --help)");
  };
}

}  // namespace berth::cli
