// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/daemon_client.h"
#include "cli/render.h"

#include <ostream>

namespace berth::cli {

namespace {

Outcome<void> show_list(Session& session) {
  auto daemon = DaemonClient::connect();
  if (!daemon) return tl::unexpected(daemon.error());
  const auto text = daemon->workloads();
  if (!text) return tl::unexpected(text.error());
  if (session.json) {
    session.out << *text << "\n";
    return {};
  }
  const auto workloads = parse_document(*text, "list of workloads");
  if (!workloads) return tl::unexpected(workloads.error());
  render_list(session.out, *workloads, session.style);
  return {};
}

}  // namespace

Action declare_list(CLI::App&) { return show_list; }

}  // namespace berth::cli
