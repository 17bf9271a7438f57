// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/document.h"
#include "cli/input.h"
#include "config/config.h"
#include "model/json_text.h"

#include <filesystem>
#include <memory>
#include <ostream>
#include <string>
#include <system_error>

#include <fmt/core.h>

namespace berth::cli {

namespace {

Outcome<void> check_config(Session& session, const std::string& named) {
  const std::string file = named.empty() ? config::kDefaultFile : named;
  const auto settings = load_settings(named);
  if (session.json) {
    session.out << model::json_text(
                       {{"schema", "berth.check-config/1"},
                        {"file", file},
                        {"valid", settings.has_value()},
                        {"error", settings ? Document(nullptr) : Document(settings.error().message)}})
                << "\n";
  }
  if (!settings) return tl::unexpected(settings.error());
  if (session.json) return {};
  std::error_code ignored;
  const bool present = file == "-" || std::filesystem::exists(file, ignored);
  session.out << printable(input_name(file)) << ": "
              << (present ? "valid" : "there is no such file: the defaults hold, with any drop-ins") << "\n";
  session.out << fmt::format("mode {}, a tick every {} s, {} [[workload]] rule{}\n",
                             settings->mode == config::Mode::enforce ? "enforce" : "observe",
                             settings->tick_s, settings->rules.size(),
                             settings->rules.size() == 1 ? "" : "s");
  return {};
}

}  // namespace

Action declare_check_config(const Options& options) {
  const auto file = std::make_shared<std::string>();
  const auto named = options.option("file", *file, "Configuration file, - for standard input")
                         .type_name("FILE")
                         .show_default(config::kDefaultFile);
  return [file, named](Session& session) -> Outcome<void> {
    if (named.given() && file->empty()) return problem(Exit::wrong_use, "the file's name is empty");
    return check_config(session, *file);
  };
}

}  // namespace berth::cli
