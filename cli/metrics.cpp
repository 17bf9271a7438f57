// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/daemon_client.h"
#include "cli/document.h"
#include "model/json_text.h"

#include <ostream>

namespace berth::cli {

namespace {

Outcome<void> show_metrics(Session& session) {
  auto daemon = DaemonClient::connect();
  if (!daemon) return tl::unexpected(daemon.error());
  const auto text = daemon->metrics();
  if (!text) return tl::unexpected(text.error());
  if (session.json) {
    session.out << model::json_text({{"schema", "berth.metrics/1"}, {"text", *text}}) << "\n";
  } else {
    session.out << *text;
  }
  return {};
}

}  // namespace

Action declare_metrics(const Options&) { return show_metrics; }

}  // namespace berth::cli
