// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/document.h"
#include "cli/workload_name.h"
#include "config/workload_settings.h"
#include "model/json_text.h"
#include "model/name.h"

#include <algorithm>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <fmt/core.h>

namespace berth::cli {

namespace {

// This checks the keys. The daemon checks the values, as it is the one to use them.
Outcome<std::map<std::string, std::string>> parse_settings(const std::vector<std::string>& assignments) {
  std::map<std::string, std::string> settings;
  for (const std::string& assignment : assignments) {
    const std::size_t equals = assignment.find('=');
    if (equals == std::string::npos || equals == 0) {
      return problem(Exit::wrong_use, fmt::format("\"{}\" is not KEY=VALUE", assignment));
    }
    const std::string key = assignment.substr(0, equals);
    if (!config::is_workload_key(key)) {
      return problem(Exit::wrong_use, fmt::format("there is no setting \"{}\"; there are {}", key,
                                                  model::joined(config::kWorkloadKeys, ", ")));
    }
    if (equals + 1 == assignment.size()) {
      return problem(Exit::wrong_use,
                     fmt::format("\"{}\" has no value; --reset takes settings back", assignment));
    }
    // The bus would refuse it without naming the assignment.
    const std::string value = assignment.substr(equals + 1);
    if (!model::is_name(value)) {
      return problem(Exit::wrong_use,
                     fmt::format("{}=\"{}\": must be text without control characters", key, value));
    }
    if (!settings.emplace(key, assignment.substr(equals + 1)).second) {
      return problem(Exit::wrong_use, fmt::format("\"{}\" is given twice", key));
    }
  }
  return settings;
}

struct SetArguments {
  std::string workload;
  std::vector<std::string> assignments;
  bool reset = false;
};

Outcome<void> set(Session& session, const SetArguments& arguments) {
  const auto& [workload, assignments, reset] = arguments;
  if (assignments.empty() && !reset) {
    return problem(Exit::wrong_use, "there is nothing to set; KEY=VALUE sets, --reset takes settings back");
  }
  auto settings = parse_settings(assignments);
  if (!settings) return tl::unexpected(settings.error());
  // An empty value removes a setting.
  for (const std::string_view key : config::kWorkloadKeys) {
    if (reset) settings->emplace(key, "");
  }
  auto addressed = address(workload);
  if (!addressed) return tl::unexpected(addressed.error());
  const std::string& id = addressed->id;
  const auto done = addressed->daemon.set_workload(id, *settings);
  if (!done) return tl::unexpected(addressed->hinted(done.error()));
  std::string said = reset ? "as configured" : "";
  if (!assignments.empty())
    said += fmt::format("{}{}, until it ends", reset ? " except " : "", model::joined(assignments, " "));
  return tell(session, {{"schema", "berth.set/1"}, {"workload", id}, {"settings", *settings}},
              printable(id) + ": " + printable(said));
}

}  // namespace

Action declare_set(const Options& options) {
  const auto arguments = std::make_shared<SetArguments>();
  options.option("workload", arguments->workload, "Its id, as `berthctl list` has it, or its last component")
      .required()
      .type_name("");
  options
      .option("settings", arguments->assignments,
              "class, service, vcpus, isolation, deadline, priority, evictable, force")
      .type_name("KEY=VALUE");
  options.flag("--reset", arguments->reset, "Take back all earlier settings");
  return [arguments](Session& session) { return set(session, *arguments); };
}

}  // namespace berth::cli
