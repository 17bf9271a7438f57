// SPDX-License-Identifier: Apache-2.0
#include "cli/command_line.h"

#include <CLI/CLI.hpp>

namespace berth::cli {

Option Option::required() const {
  option_->required();
  return *this;
}

Option Option::type_name(const char* name) const {
  option_->type_name(name);
  return *this;
}

Option Option::show_default(const char* text) const {
  option_->default_str(text);
  return *this;
}

Option Option::show_default() const {
  option_->capture_default_str();
  return *this;
}

Option Option::one_value() const {
  option_->allow_extra_args(false);
  return *this;
}

Option Option::from_to(std::uint32_t lowest, std::uint32_t highest) const {
  option_->check(CLI::Range(lowest, highest));
  return *this;
}

Option Option::check(std::string (*problem)(const std::string& value)) const {
  option_->check(CLI::Validator(problem, ""));
  return *this;
}

Option Option::needs(Option other) const {
  option_->needs(other.option_);
  return *this;
}

Option Option::excludes(Option other) const {
  option_->excludes(other.option_);
  return *this;
}

bool Option::given() const { return option_->count() > 0; }

Option Options::flag(const char* name, bool& value, const char* help) const {
  return Option(app_->add_flag(name, value, help));
}

Option Options::option(const char* name, std::string& value, const char* help) const {
  return Option(app_->add_option(name, value, help));
}

Option Options::option(const char* name, std::optional<std::string>& value, const char* help) const {
  return Option(app_->add_option(name, value, help));
}

Option Options::option(const char* name, std::vector<std::string>& values, const char* help) const {
  return Option(app_->add_option(name, values, help));
}

Option Options::option(const char* name, std::uint32_t& value, const char* help) const {
  return Option(app_->add_option(name, value, help));
}

void Options::footer(const char* text) const { app_->footer(text); }

CommandLine::CommandLine(const char* program, const char* summary, const char* version)
    : app_(std::make_unique<CLI::App>(summary, program)) {
  app_->set_version_flag("--version", version, "Print the version and exit");
  app_->fallthrough();
  app_->require_subcommand(1);
}

CommandLine::~CommandLine() = default;

Options CommandLine::options() const { return Options(app_.get()); }

Options CommandLine::add_command(const char* name, const char* summary) {
  CLI::App* command = app_->add_subcommand(name, summary);
  command->group("Subcommands");
  commands_.push_back(command);
  return Options(command);
}

Outcome<std::optional<std::size_t>> CommandLine::parse(int argc, const char* const* argv, std::ostream& out,
                                                       std::ostream& err) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::Success& wanted) {  // --help, --version
    app_->exit(wanted, out, err);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    return problem(Exit::wrong_use, error.what());
  }
  for (std::size_t i = 0; i < commands_.size(); ++i) {
    if (commands_[i]->parsed()) return i;
  }
  return problem(Exit::wrong_use, "A subcommand is required");
}

}  // namespace berth::cli
