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
  auto daemon = DaemonClient::connect();
  if (!daemon) return tl::unexpected(daemon.error());
  const auto done = daemon->set_mode(mode);
  if (!done) return tl::unexpected(done.error());
  if (session.json) {
    session.out << R"({"schema":"berth.mode/1","mode":")" << mode << "\"}\n";
  } else if (mode == "enforce") {
    session.out << "berthd enforces: it carries out what it decides (berthctl log)\n";
  } else {
    session.out << "berthd observes: it changes nothing, and has put back what it had changed\n";
  }
  return {};
}

}  // namespace

Action declare_mode(const Options& options) {
  const auto mode = std::make_shared<std::string>();
  options.option("mode", *mode, "observe or enforce").required().type_name("observe|enforce");
  return [mode](Session& session) { return switch_mode(session, *mode); };
}

}  // namespace berth::cli
