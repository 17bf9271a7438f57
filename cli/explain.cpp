// SPDX-License-Identifier: Apache-2.0
#include "policies/explain.h"

#include "cli/command.h"
#include "cli/daemon_client.h"
#include "cli/input.h"
#include "cli/log_options.h"
#include "cli/render.h"
#include "cli/workload_name.h"
#include "model/explanation.h"
#include "model/json_text.h"
#include "policies/decide.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace berth::cli {

namespace {

struct ExplainArguments {
  std::string subject;
  std::optional<std::string> snapshot;
  std::optional<std::string> config;
  LogOptions log;
};

// Explains from a snapshot in a file, with the compiled-in settings or those of a file.
Outcome<std::string> explain_file(Session& session, const ExplainArguments& arguments) {
  if (arguments.snapshot == "-" && arguments.config == "-") {
    return problem(Exit::wrong_use, "standard input cannot be both the snapshot and the configuration");
  }
  config::Settings settings;
  if (arguments.config) {
    auto loaded = load_named_settings(*arguments.config);
    if (!loaded) return tl::unexpected(loaded.error());
    settings = std::move(*loaded);
  }
  const auto text = read_input(*arguments.snapshot);
  if (!text) return tl::unexpected(text.error());
  const auto snapshot = parse_snapshot(session.err, *text, input_name(*arguments.snapshot));
  if (!snapshot) return tl::unexpected(snapshot.error());
  std::vector<std::string> ids;
  for (const model::Workload& workload : snapshot->workloads) ids.push_back(workload.id);
  const auto subject = meant_by(arguments.subject, ids);
  if (!subject) return tl::unexpected(subject.error());
  const auto plan = policies::decide(*snapshot, settings.policies);
  const auto explanation = policies::explain(*snapshot, plan, settings.policies, *subject);
  if (!explanation.workload && !explanation.decision && !explanation.application && !explanation.other) {
    return problem(
        Exit::failed,
        fmt::format("\"{}\" is neither a workload of {} nor a decision that it leads to{}", arguments.subject,
                    input_name(*arguments.snapshot), meant_perhaps(arguments.subject, ids)));
  }
  return model::to_json(explanation);
}

// The explanation with the entries of the log as a member `entries`.
Outcome<std::string> with_log(DaemonClient& daemon, const Outcome<std::string>& explanation,
                              const std::string& id, const LogOptions& log) {
  auto filter = log.filter();
  if (!filter) return tl::unexpected(filter.error());
  (*filter)["workload"] = id;
  auto found =
      parse_document(daemon.find_log(*filter, log.since ? kMostLogEntries : kUsualLogEntries), "log");
  if (!found) return tl::unexpected(found.error());
  Document document{{"schema", "berth.explain/1"}, {"ended", id}};
  if (explanation) {
    auto parsed = parse_document(*explanation, "explanation");
    if (!parsed) return tl::unexpected(parsed.error());
    document = std::move(*parsed);
  } else if (list_of(*found, "entries").empty()) {
    return explanation;
  }
  document["entries"] = member(*found, "entries");
  return model::json_text(document);
}

Outcome<std::string> explain_now(const ExplainArguments& arguments) {
  auto addressed = address(arguments.subject);
  if (!addressed && addressed.error().exit == Exit::unreachable) {
    return problem(Exit::unreachable,
                   addressed.error().message + "; or give a file: berthctl explain --snapshot FILE");
  }
  if (!addressed) return tl::unexpected(addressed.error());
  auto explanation = addressed->daemon.explain(addressed->id);
  // The log knows workloads that have ended.
  const bool unknown = !explanation && explanation.error().exit == Exit::failed;
  if (arguments.log.given() ? !explanation && !unknown : !unknown) return explanation;
  auto logged = with_log(addressed->daemon, explanation, addressed->id, arguments.log);
  if (!logged) return tl::unexpected(addressed->hinted(logged.error()));
  return logged;
}

Outcome<void> explain(Session& session, const ExplainArguments& arguments) {
  if (arguments.config && !arguments.snapshot) {
    return problem(Exit::wrong_use, "--config needs --snapshot: the daemon explains with its own settings");
  }
  if (arguments.snapshot && arguments.log.given()) {
    return problem(Exit::wrong_use, "--snapshot excludes --since, --policy and --kind: a file has no log");
  }
  return show_document(session,
                       arguments.snapshot ? explain_file(session, arguments) : explain_now(arguments),
                       "explanation", render_explanation);
}

}  // namespace

Action declare_explain(const Options& options) {
  const auto arguments = std::make_shared<ExplainArguments>();
  options
      .option("subject", arguments->subject,
              "Id of a workload (or its last component), of a Spark application, or of a decision (d-...)")
      .required()
      .type_name("WORKLOAD|APPLICATION|DECISION");
  options.option("--snapshot", arguments->snapshot, "Explain this snapshot, - for standard input")
      .type_name("FILE");
  options.option("--config", arguments->config, "Settings of this file in place of the defaults")
      .type_name("FILE");
  declare_log_options(options, arguments->log, true, false);
  return [arguments](Session& session) { return explain(session, *arguments); };
}

}  // namespace berth::cli
