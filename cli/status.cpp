// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/daemon_client.h"
#include "cli/render.h"
#include "cli/show_document.h"
#include "cli/wall_clock.h"

#include <string>
#include <utility>

namespace berth::cli {

namespace {

// A document of the daemon, or null where it does not come.
Document or_nothing(const Outcome<std::string>& text, const char* what) {
  if (!text) return nullptr;
  auto document = parse_document(*text, what);
  return document ? std::move(*document) : Document(nullptr);
}

Outcome<void> show_status(Session& session) {
  auto daemon = DaemonClient::connect();
  if (!daemon) return tl::unexpected(daemon.error());
  const auto text = daemon->status();
  if (!text) return tl::unexpected(text.error());
  return show_document(session, *text, "status", [&](const Document& status) {
    const bool enforcing = text_of(status, "mode") == "enforce";
    const Document plan = enforcing ? Document(nullptr) : or_nothing(daemon->plan(), "plan");
    const Document topology = or_nothing(daemon->topology(), "topology");
    render_outlook(session.out, status, plan, list_of(topology, "cpus").size(), session.style);
    render_status(session.out, status, wall_s(), session.style);
  });
}

}  // namespace

Action declare_status(const Options&) { return show_status; }

}  // namespace berth::cli
