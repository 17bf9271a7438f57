// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/daemon_client.h"
#include "cli/render.h"
#include "cli/render_spark.h"
#include "cli/show_document.h"
#include "model/json.h"

#include <memory>
#include <ostream>

namespace berth::cli {

namespace {

Outcome<void> show_workloads(Session& session, DaemonClient& daemon) {
  const auto text = daemon.workloads();
  if (!text) return tl::unexpected(text.error());
  return show_document(session, *text, "list of workloads", [&session](const Document& workloads) {
    render_list(session.out, workloads, session.style);
  });
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
    render_spark_list(session.out, plan->findings.spark.value_or(model::SparkFindings()), session.style);
  }
  return {};
}

}  // namespace

Action declare_list(const Options& options) {
  const auto spark = std::make_shared<bool>(false);
  options.flag("--spark", *spark, "Spark applications, the cost of their eviction, and its order");
  return [spark](Session& session) -> Outcome<void> {
    auto daemon = DaemonClient::connect();
    if (!daemon) return tl::unexpected(daemon.error());
    return *spark ? show_spark(session, *daemon) : show_workloads(session, *daemon);
  };
}

}  // namespace berth::cli
