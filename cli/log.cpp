// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/daemon_client.h"
#include "cli/log_options.h"
#include "cli/render.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>

#include <fmt/core.h>

namespace berth::cli {

namespace {

struct LogArguments {
  LogOptions log;
  std::uint32_t limit = kUsualLogEntries;
};

Outcome<void> show_log(Session& session, const LogArguments& arguments, std::uint32_t limit) {
  const auto filter = arguments.log.filter();
  if (!filter) return tl::unexpected(filter.error());
  auto daemon = DaemonClient::connect();
  if (!daemon) return tl::unexpected(daemon.error());
  return show_document(
      session, filter->empty() ? daemon->log(limit) : daemon->find_log(*filter, limit), "log",
      [&](std::ostream& out, const Document& log, const Style& style) {
        const auto& entries = list_of(log, "entries");
        if (entries.empty()) {
          out << (filter->empty() ? "Nothing was decided yet.\n" : "No entry of the log matches.\n");
        }
        render_log(out, entries, style);
        if (entries.size() == kMostLogEntries) {
          out << fmt::format("These are the newest {}; older ones match, too.\n", kMostLogEntries);
        }
      });
}

}  // namespace

Action declare_log(const Options& options) {
  const auto arguments = std::make_shared<LogArguments>();
  const auto limit = options.option("-n", arguments->limit, "How many, newest first; with --since, all")
                         .type_name("NUMBER")
                         .from_to(1, kMostLogEntries)
                         .show_default();
  declare_log_options(options, arguments->log, true, true);
  return [arguments, limit](Session& session) {
    const bool all = arguments->log.since && !limit.given();
    return show_log(session, *arguments, all ? kMostLogEntries : arguments->limit);
  };
}

}  // namespace berth::cli
