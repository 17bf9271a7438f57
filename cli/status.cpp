// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/daemon_client.h"
#include "cli/render.h"
#include "cli/show_document.h"

#include <chrono>

namespace berth::cli {

namespace {

Outcome<void> show_status(Session& session) {
  auto daemon = DaemonClient::connect();
  if (!daemon) return tl::unexpected(daemon.error());
  const auto text = daemon->status();
  if (!text) return tl::unexpected(text.error());
  return show_document(session, *text, "status", [&session](const Document& status) {
    const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
    render_status(session.out, status, now.count(), session.style);
  });
}

}  // namespace

Action declare_status(const Options&) { return show_status; }

}  // namespace berth::cli
