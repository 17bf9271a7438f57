// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/daemon_client.h"

#include <ostream>

namespace berth::cli {

namespace {

// JSON with and without --json: a snapshot is for `berthctl plan --snapshot -` and other programs.
Outcome<void> show_snapshot(Session& session) {
  const auto text = ask_daemon(&DaemonClient::snapshot);
  if (!text) return tl::unexpected(text.error());
  session.out << *text << "\n";
  return {};
}

}  // namespace

Action declare_snapshot(const Options&) { return show_snapshot; }

}  // namespace berth::cli
