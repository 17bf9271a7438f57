// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/document.h"
#include "cli/input.h"
#include "config/config.h"
#include "config/unit_limits.h"
#include "config/without_effect.h"
#include "model/count_text.h"
#include "model/json_text.h"

#include <filesystem>
#include <memory>
#include <ostream>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/core.h>

namespace berth::cli {

namespace {

// The settings of a file, as long as the unit permits all of them.
Outcome<config::Settings> checked(const std::string& named, const std::string& file, bool no_unit) {
  auto settings = load_settings(named);
  if (!settings || no_unit) return settings;
  const auto forbidden = config::forbidden_by_unit(*settings);
  if (forbidden.empty()) return settings;
  // A rule names its file itself.
  const std::string place = forbidden.front().starts_with("metrics.") ? input_name(file) + ": " : "";
  const std::string more =
      forbidden.size() > 1 ? fmt::format("; {} more of this kind", forbidden.size() - 1) : "";
  return problem(Exit::wrong_use, fmt::format("{}{}{} (--no-unit: for a berthd outside its unit)", place,
                                              forbidden.front(), more));
}

Outcome<void> check_config(Session& session, const std::string& named, bool no_unit) {
  const std::string file = named.empty() ? config::kDefaultFile : named;
  const auto settings = checked(named, file, no_unit);
  const auto remarks = settings ? config::remarks(*settings) : std::vector<std::string>();
  if (session.json) {
    session.out << model::json_text(
                       {{"schema", "berth.check-config/1"},
                        {"file", file},
                        {"valid", settings.has_value()},
                        {"error", settings ? Document(nullptr) : Document(settings.error().message)},
                        {"warnings", remarks}})
                << "\n";
  }
  if (!settings) return tl::unexpected(settings.error());
  if (session.json) return {};
  warn(session.err, remarks);
  std::error_code ignored;
  const bool present = file == "-" || std::filesystem::exists(file, ignored);
  session.out << printable(input_name(file)) << ": "
              << (present ? "valid" : "there is no such file: the defaults hold, with any drop-ins") << "\n";
  session.out << fmt::format(
      "mode {}, a tick every {} s, {}\n", settings->mode == config::Mode::enforce ? "enforce" : "observe",
      settings->tick_s, model::count_text(settings->rules.size(), "[[workload]] rule"));
  return {};
}

}  // namespace

Action declare_check_config(const Options& options) {
  const auto file = std::make_shared<std::string>();
  const auto no_unit = std::make_shared<bool>(false);
  options.flag("--no-unit", *no_unit, "Also take settings that the sandbox of berthd.service forbids");
  const auto named = options.option("file", *file, "Configuration file, - for standard input")
                         .type_name("FILE")
                         .show_default(config::kDefaultFile);
  return [file, named, no_unit](Session& session) -> Outcome<void> {
    if (named.given() && file->empty()) return problem(Exit::wrong_use, "the file's name is empty");
    return check_config(session, *file, *no_unit);
  };
}

}  // namespace berth::cli
