// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/daemon_client.h"

#include <memory>
#include <ostream>
#include <string>

namespace berth::cli {

namespace {

Outcome<void> switch_mode(Session& session, const std::string& mode) {
  if (mode != "observe" && mode != "enforce") {
    return problem(Exit::wrong_use, "there is no mode \"" + mode + "\"; there are observe and enforce");
  }
  if (auto done = ask_daemon(&DaemonClient::set_mode, mode); !done) return done;
  return tell(session, {{"schema", "berth.mode/1"}, {"mode", mode}},
              mode == "enforce"
                  ? "berthd enforces: it carries out what it decides (berthctl log)"
                  : "berthd observes: it changes nothing, and has put back what it had changed");
}

}  // namespace

Action declare_mode(const Options& options) {
  const auto mode = std::make_shared<std::string>();
  options.option("mode", *mode, "observe or enforce").required().type_name("observe|enforce");
  return [mode](Session& session) { return switch_mode(session, *mode); };
}

}  // namespace berth::cli
