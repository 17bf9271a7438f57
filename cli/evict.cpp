// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/document.h"
#include "cli/workload_name.h"
#include "model/json_text.h"

#include <iostream>
#include <memory>
#include <ostream>
#include <string>

#include <fmt/core.h>
#include <unistd.h>

namespace berth::cli {

namespace {

struct EvictArguments {
  std::string workload;
  bool yes = false;
};

// Without a terminal to ask on, the command line must have the confirmation.
Outcome<void> can_ask(const EvictArguments& arguments) {
  if (arguments.yes || (isatty(STDIN_FILENO) != 0 && isatty(STDERR_FILENO) != 0)) return {};
  return problem(Exit::wrong_use, "there is no terminal to ask on: --yes evicts without asking");
}

Outcome<void> confirm(const Session& session, const EvictArguments& arguments, const std::string& id) {
  if (arguments.yes) return {};
  session.err << fmt::format("Evict {}? It loses all work that it has not stored. [y/N] ", printable(id))
              << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  if (answer == "y" || answer == "Y" || answer == "yes") return {};
  return problem(Exit::refused, "not confirmed: nothing was done");
}

Outcome<void> evict(Session& session, const EvictArguments& arguments) {
  if (auto asked = can_ask(arguments); !asked) return asked;
  auto addressed = address(arguments.workload);
  if (!addressed) return tl::unexpected(addressed.error());
  const std::string& id = addressed->id;
  if (auto confirmed = confirm(session, arguments, id); !confirmed) return confirmed;
  const auto decision = addressed->daemon.evict(id);
  if (!decision) return tl::unexpected(addressed->hinted(decision.error()));
  return tell(session, {{"schema", "berth.evict/1"}, {"workload", id}, {"decision", *decision}},
              fmt::format("{}: asked to end ({}); berthctl explain {} shows what happens next", printable(id),
                          printable(*decision), printable(*decision)));
}

}  // namespace

Action declare_evict(const Options& options) {
  const auto arguments = std::make_shared<EvictArguments>();
  options.footer("Asks first. Refused in observe mode, and for workloads that are not best-effort.");
  options.option("workload", arguments->workload, "Its id, as `berthctl list` has it, or its last component")
      .required()
      .type_name("");
  options.flag("--yes", arguments->yes, "Do not ask");
  return [arguments](Session& session) { return evict(session, *arguments); };
}

}  // namespace berth::cli
