// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/daemon_client.h"
#include "cli/render.h"
#include "cli/render_plan.h"
#include "model/json.h"
#include "model/json_text.h"

#include <memory>
#include <ostream>

namespace berth::cli {

namespace {

Outcome<void> show_workloads(Session& session, DaemonClient& daemon) {
  return show_document(session, daemon.workloads(), "list of workloads", render_list);
}

// One id a line.
Outcome<void> show_ids(Session& session, DaemonClient& daemon) {
  const auto workloads = parse_document(daemon.workloads(), "list of workloads");
  if (!workloads) return tl::unexpected(workloads.error());
  for (const Document& workload : list_of(*workloads, "workloads")) {
    session.out << printable(text_of(workload, "id")) << "\n";
  }
  return {};
}

// The findings of the last tick's plan.
Outcome<void> show_spark(Session& session, DaemonClient& daemon) {
  const auto text = daemon.plan();
  if (!text) return tl::unexpected(text.error());
  const auto plan = model::parse_plan(*text);
  if (!plan) return problem(Exit::failed, "the daemon's plan: " + plan.error().message());
  if (session.json) {
    session.out << model::spark_json(*plan) << "\n";
  } else {
    render_spark_list(session.out, plan->findings.eviction.value_or(model::EvictionFindings()),
                      session.style);
  }
  return {};
}

// The models of the services that run here.
Outcome<void> show_models(Session& session, DaemonClient& daemon) {
  const auto workloads = parse_document(daemon.workloads(), "list of workloads");
  if (!workloads) return tl::unexpected(workloads.error());
  const auto models = parse_document(daemon.models(), "list of models");
  if (!models) return tl::unexpected(models.error());
  const auto status = parse_document(daemon.status(), "status");
  if (!status) return tl::unexpected(status.error());
  const bool learns = flag_of(member(*status, "interference"), "learn");
  const Document used = models_in_use(*workloads, *models, learns);
  return show_document(session, model::json_text(used), "list of models", render_models_in_use);
}

}  // namespace

Action declare_list(const Options& options) {
  const auto spark = std::make_shared<bool>(false);
  const auto ids = std::make_shared<bool>(false);
  const auto model = std::make_shared<bool>(false);
  const Option plain = options.flag("--ids", *ids, "The ids alone, one a line");
  const Option of_spark =
      options.flag("--spark", *spark, "Spark applications, the cost of their eviction, and its order");
  of_spark.excludes(plain);
  options.flag("--model", *model, "The interference model of each service, and why it is used")
      .excludes(of_spark)
      .excludes(plain);
  return [spark, ids, model](Session& session) -> Outcome<void> {
    auto daemon = DaemonClient::connect();
    if (!daemon) return tl::unexpected(daemon.error());
    if (*ids && !session.json) return show_ids(session, *daemon);
    if (*model) return show_models(session, *daemon);
    return *spark ? show_spark(session, *daemon) : show_workloads(session, *daemon);
  };
}

}  // namespace berth::cli
