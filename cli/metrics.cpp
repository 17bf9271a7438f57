// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/daemon_client.h"
#include "cli/document.h"
#include "cli/text.h"
#include "model/json_text.h"
#include "model/openmetrics.h"

#include <memory>
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

Outcome<void> show_metrics(Session& session, bool openmetrics) {
  auto text = ask_daemon(&DaemonClient::metrics);
  if (!text) return tl::unexpected(text.error());
  if (openmetrics) text = model::openmetrics_text(*text);
  if (session.json) {
    session.out << model::json_text({{"schema", "berth.metrics/1"}, {"text", *text}}) << "\n";
  } else {
    print(session.out, *text);
  }
  return {};
}

}  // namespace

Action declare_metrics(const Options& options) {
  const auto openmetrics = std::make_shared<bool>(false);
  options.flag("--openmetrics", *openmetrics, "In the format OpenMetrics 1.0");
  return [openmetrics](Session& session) { return show_metrics(session, *openmetrics); };
}

}  // namespace berth::cli
