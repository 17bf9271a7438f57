// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/daemon_client.h"
#include "cli/document.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace berth::cli {

namespace {

constexpr std::array<const char*, 6> kKeys{"class", "service", "vcpus", "deadline", "priority", "evictable"};

// Keys are judged here, values by the daemon, which is the one to use them.
Outcome<std::map<std::string, std::string>> parse_settings(const std::vector<std::string>& assignments) {
  std::map<std::string, std::string> settings;
  for (const std::string& assignment : assignments) {
    const std::size_t equals = assignment.find('=');
    if (equals == std::string::npos || equals == 0) {
      return problem(Exit::wrong_use, fmt::format("\"{}\" is not KEY=VALUE", assignment));
    }
    const std::string key = assignment.substr(0, equals);
    if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end()) {
      return problem(Exit::wrong_use,
                     fmt::format("there is no setting \"{}\"; there are {}", key, fmt::join(kKeys, ", ")));
    }
    if (!settings.emplace(key, assignment.substr(equals + 1)).second) {
      return problem(Exit::wrong_use, fmt::format("\"{}\" is given twice", key));
    }
  }
  return settings;
}

Outcome<void> set(Session& session, const std::string& workload,
                  const std::vector<std::string>& assignments) {
  const auto settings = parse_settings(assignments);
  if (!settings) return tl::unexpected(settings.error());
  auto daemon = DaemonClient::connect();
  if (!daemon) return tl::unexpected(daemon.error());
  const auto done = daemon->set_workload(workload, *settings);
  if (!done) return tl::unexpected(done.error());
  if (session.json) {
    session.out << Document{{"schema", "berth.set/1"}, {"workload", workload}, {"settings", *settings}}.dump()
                << "\n";
  } else {
    session.out << printable(workload) << ": " << printable(fmt::format("{}", fmt::join(assignments, " ")))
                << ", until it ends\n";
  }
  return {};
}

struct Arguments {
  std::string workload;
  std::vector<std::string> assignments;
};

}  // namespace

Action declare_set(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  app.add_option("workload", arguments->workload, "Its id, as `berthctl list` has it")
      ->required()
      ->type_name("");
  app.add_option("settings", arguments->assignments, "class, service, vcpus, deadline, priority, evictable")
      ->required()
      ->type_name("KEY=VALUE");
  return [arguments](Session& session) { return set(session, arguments->workload, arguments->assignments); };
}

}  // namespace berth::cli
