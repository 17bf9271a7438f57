// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/daemon_client.h"
#include "cli/document.h"
#include "cli/text.h"
#include "model/json_text.h"

#include <ostream>
#include <sstream>
#include <string>

#include <unistd.h>

namespace berth::cli {

namespace {

// The page names workloads as they are called. A file or a pipe gets it unchanged, a terminal line by line.
void print(std::ostream& out, const std::string& text) {
  if (isatty(STDOUT_FILENO) == 0) {
    out << text;
    return;
  }
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) out << printable(line) << "\n";
}

Outcome<void> show_metrics(Session& session) {
  auto daemon = DaemonClient::connect();
  if (!daemon) return tl::unexpected(daemon.error());
  const auto text = daemon->metrics();
  if (!text) return tl::unexpected(text.error());
  if (session.json) {
    session.out << model::json_text({{"schema", "berth.metrics/1"}, {"text", *text}}) << "\n";
  } else {
    print(session.out, *text);
  }
  return {};
}

}  // namespace

Action declare_metrics(const Options&) { return show_metrics; }

}  // namespace berth::cli
