// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/daemon_client.h"
#include "cli/render.h"
#include "cli/show_document.h"

#include <cstdint>
#include <memory>
#include <ostream>

namespace berth::cli {

namespace {

constexpr std::uint32_t kMostEntries = 10'000;  // as many as the daemon hands out at once

Outcome<void> show_log(Session& session, std::uint32_t limit) {
  auto daemon = DaemonClient::connect();
  if (!daemon) return tl::unexpected(daemon.error());
  const auto text = daemon->log(limit);
  if (!text) return tl::unexpected(text.error());
  return show_document(session, *text, "log", [&session](const Document& log) {
    const auto& entries = list_of(log, "entries");
    if (entries.empty()) session.out << "Nothing was decided yet.\n";
    render_log(session.out, entries, session.style);
  });
}

}  // namespace

Action declare_log(const Options& options) {
  const auto limit = std::make_shared<std::uint32_t>(20);
  options.option("-n", *limit, "How many, newest first")
      .type_name("NUMBER")
      .from_to(1, kMostEntries)
      .show_default();
  return [limit](Session& session) { return show_log(session, *limit); };
}

}  // namespace berth::cli
