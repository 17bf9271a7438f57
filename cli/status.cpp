// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/daemon_client.h"
#include "cli/render.h"
#include "os/clock.h"

#include <string>
#include <utility>

namespace berth::cli {

namespace {

// A document of the daemon, or null where it does not come.
Document or_nothing(const Outcome<std::string>& text, const char* what) {
  auto document = parse_document(text, what);
  return document ? std::move(*document) : Document(nullptr);
}

Outcome<void> show_status(Session& session) {
  auto daemon = DaemonClient::connect();
  if (!daemon) return tl::unexpected(daemon.error());
  return show_document(session, daemon->status(), "status",
                       [&](std::ostream& out, const Document& status, const Style& style) {
                         const bool enforcing = text_of(status, "mode") == "enforce";
                         const Document plan =
                             enforcing ? Document(nullptr) : or_nothing(daemon->plan(), "plan");
                         const Document topology = or_nothing(daemon->topology(), "topology");
                         render_outlook(out, status, plan, list_of(topology, "cpus").size(), style);
                         render_status(out, status, os::epoch_s(), style);
                       });
}

}  // namespace

Action declare_status(const Options&) { return show_status; }

}  // namespace berth::cli
