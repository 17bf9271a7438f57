// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/daemon_client.h"
#include "cli/render.h"
#include "cli/show_document.h"

namespace berth::cli {

namespace {

Outcome<void> show_list(Session& session) {
  auto daemon = DaemonClient::connect();
  if (!daemon) return tl::unexpected(daemon.error());
  const auto text = daemon->workloads();
  if (!text) return tl::unexpected(text.error());
  return show_document(session, *text, "list of workloads", [&session](const Document& workloads) {
    render_list(session.out, workloads, session.style);
  });
}

}  // namespace

Action declare_list(CLI::App&) { return show_list; }

}  // namespace berth::cli
