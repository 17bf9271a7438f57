// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/daemon_client.h"
#include "cli/render.h"

#include <chrono>
#include <ostream>

namespace berth::cli {

namespace {

Outcome<void> show_status(Session& session) {
  auto daemon = DaemonClient::connect();
  if (!daemon) return tl::unexpected(daemon.error());
  const auto text = daemon->status();
  if (!text) return tl::unexpected(text.error());
  if (session.json) {
    session.out << *text << "\n";
    return {};
  }
  const auto status = parse_document(*text, "status");
  if (!status) return tl::unexpected(status.error());
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  render_status(session.out, *status, now.count(), session.style);
  return {};
}

}  // namespace

Action declare_status(CLI::App&) { return show_status; }

}  // namespace berth::cli
