// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/daemon_client.h"

#include <ostream>

namespace berth::cli {

namespace {

Outcome<void> reload(Session& session) {
  if (auto done = ask_daemon(&DaemonClient::reload); !done) return done;
  session.out << (session.json ? R"({"schema":"berth.reload/1","reloaded":true})"
                               : "berthd has taken over its configuration")
              << "\n";
  return {};
}

}  // namespace

Action declare_reload(const Options&) { return reload; }

}  // namespace berth::cli
