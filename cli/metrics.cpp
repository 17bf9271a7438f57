// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/daemon_client.h"
#include "cli/document.h"

#include <ostream>

namespace berth::cli {

namespace {

Outcome<void> show_metrics(Session& session) {
  auto daemon = DaemonClient::connect();
  if (!daemon) return tl::unexpected(daemon.error());
  const auto text = daemon->metrics();
  if (!text) return tl::unexpected(text.error());
  if (session.json) {
    session.out << Document{{"schema", "berth.metrics/1"}, {"text", *text}}.dump() << "\n";
  } else {
    session.out << *text;
  }
  return {};
}

}  // namespace

Action declare_metrics(CLI::App&) { return show_metrics; }

}  // namespace berth::cli
