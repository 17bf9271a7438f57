// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/daemon_client.h"
#include "cli/document.h"
#include "cli/input.h"
#include "cli/render_plan.h"
#include "model/json.h"
#include "model/name.h"
#include "policies/decide.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include <fmt/core.h>

namespace berth::cli {

namespace {

struct PlanArguments {
  std::optional<std::string> snapshot;
  std::vector<std::string> policies;
  PolicyArguments settings;

  // Whether the daemon's own plan is not the wanted one.
  bool recompute() const {
    return snapshot || settings.config || !policies.empty() || !settings.overrides.empty();
  }
};

Outcome<void> check_policies(const std::vector<std::string>& names) {
  const auto& known = policies::policy_names();
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return problem(Exit::wrong_use, fmt::format("there is no policy \"{}\"; there are {}", name,
                                                  model::joined(known, ", ")));
    }
  }
  return {};
}

void show(Session& session, const model::Plan& plan, const model::Snapshot& snapshot,
          model::DomainKind homes) {
  if (session.json) {
    session.out << model::to_json(plan) << "\n";
  } else {
    render_plan(session.out, plan, snapshot, session.style, homes);
  }
}

// The plan of the daemon's last tick.
Outcome<void> show_daemons_plan(Session& session, DaemonClient& daemon, const model::Snapshot& snapshot) {
  const auto text = daemon.plan();
  if (!text) return tl::unexpected(text.error());
  if (session.json) {
    session.out << *text << "\n";
    return {};
  }
  const auto plan = model::parse_plan(*text);
  if (!plan) return problem(Exit::failed, "the daemon's plan: " + plan.error().message());
  const auto status = parse_document(daemon.status(), "status");
  show(session, *plan, snapshot, shared_domain_of(status ? *status : Document()));
  return {};
}

Outcome<void> plan(Session& session, const PlanArguments& arguments) {
  // PlanArguments first: they are checked with or without a daemon.
  if (const auto checked = check_policies(arguments.policies); !checked)
    return tl::unexpected(checked.error());
  if (arguments.snapshot == "-" && arguments.settings.config == "-") {
    return problem(Exit::wrong_use, "standard input cannot be both the snapshot and the configuration");
  }
  const auto settings = policy_settings(session.err, arguments.settings);
  if (!settings) return tl::unexpected(settings.error());

  std::optional<DaemonClient> daemon;
  Outcome<std::string> text;
  std::string name = "the daemon's snapshot";
  if (arguments.snapshot) {
    text = read_input(*arguments.snapshot);
    name = input_name(*arguments.snapshot);
  } else {
    auto connected = DaemonClient::connect();
    if (!connected) {
      return problem(connected.error().exit,
                     connected.error().message + "; or give a file: berthctl plan --snapshot FILE");
    }
    daemon.emplace(std::move(*connected));
    text = daemon->snapshot();
  }
  if (!text) return tl::unexpected(text.error());
  const auto snapshot = parse_snapshot(session.err, *text, name);
  if (!snapshot) return tl::unexpected(snapshot.error());

  if (daemon && !arguments.recompute()) return show_daemons_plan(session, *daemon, *snapshot);
  show(session, policies::decide(*snapshot, *settings, arguments.policies), *snapshot,
       settings->interference.shared_domain);
  return {};
}

}  // namespace

Action declare_plan(const Options& options) {
  const auto arguments = std::make_shared<PlanArguments>();
  options.option("--snapshot", arguments->snapshot, "Plan for this snapshot, - for standard input")
      .type_name("FILE");
  options.option("--policy", arguments->policies, "Run this policy only; may be repeated")
      .type_name("NAME")
      .one_value();
  declare_policy_options(options, arguments->settings);
  return [arguments](Session& session) { return plan(session, *arguments); };
}

}  // namespace berth::cli
