// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/daemon_client.h"
#include "cli/document.h"
#include "model/name.h"

#include <iostream>
#include <memory>
#include <ostream>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

namespace berth::cli {

namespace {

struct Arguments {
  std::string workload;
  bool yes = false;
};

// Whoever is not there to be asked has to have said so beforehand.
Outcome<void> confirm(const Session& session, const Arguments& arguments) {
  if (arguments.yes) return {};
  if (isatty(STDIN_FILENO) == 0 || isatty(STDERR_FILENO) == 0) {
    return problem(Exit::wrong_use, "there is no terminal to ask on: --yes evicts without asking");
  }
  session.err << fmt::format("Evict {}? What it has not stored is lost. [y/N] ",
                             printable(arguments.workload))
              << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  if (answer == "y" || answer == "Y" || answer == "yes") return {};
  return problem(Exit::refused, "not confirmed: nothing was done");
}

Outcome<void> evict(Session& session, const Arguments& arguments) {
  if (!model::is_name(arguments.workload)) {
    return problem(Exit::wrong_use,
                   fmt::format("\"{}\" is no workload's id; `berthctl list` shows them", arguments.workload));
  }
  if (auto confirmed = confirm(session, arguments); !confirmed) return confirmed;
  auto daemon = DaemonClient::connect();
  if (!daemon) return tl::unexpected(daemon.error());
  const auto decision = daemon->evict(arguments.workload);
  if (!decision) return tl::unexpected(decision.error());
  if (session.json) {
    session.out << Document{{"schema", "berth.evict/1"},
                            {"workload", arguments.workload},
                            {"decision", *decision}}
                       .dump()
                << "\n";
  } else {
    session.out << fmt::format("{}: asked to end ({}); berthctl explain {} tells what becomes of it\n",
                               printable(arguments.workload), printable(*decision), printable(*decision));
  }
  return {};
}

}  // namespace

Action declare_evict(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  app.footer("Asks first. Refused in observe mode, and for workloads that are not best-effort.");
  app.add_option("workload", arguments->workload, "Its id, as `berthctl list` has it")
      ->required()
      ->type_name("");
  app.add_flag("--yes", arguments->yes, "Do not ask");
  return [arguments](Session& session) { return evict(session, *arguments); };
}

}  // namespace berth::cli
