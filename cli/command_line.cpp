// SPDX-License-Identifier: Apache-2.0
#include "cli/command_line.h"

#include "cli/similar.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include <CLI/CLI.hpp>

namespace berth::cli {

namespace {

constexpr std::size_t kHelpColumns = 80;
constexpr std::size_t kOptionColumns = 28;

// CLI11 does not break the lines of a help.
std::string wrapped(const std::string& text, std::size_t indent) {
  std::string out;
  std::size_t column = indent;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (column > indent && column + 1 + word.size() > kHelpColumns) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out;
}

class NarrowHelp : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    const std::string name = "  " + make_option_name(option, is_positional) + make_option_opts(option);
    const bool fits = name.size() < kOptionColumns;
    return name +
           (fits ? std::string(kOptionColumns - name.size(), ' ') : "\n" + std::string(kOptionColumns, ' ')) +
           wrapped(make_option_desc(option), kOptionColumns) + "\n";
  }
};

// Every name of the options that may stand after a command.
std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

}  // namespace

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
  app_->formatter(std::make_shared<NarrowHelp>());
}

CommandLine::~CommandLine() = default;

Options CommandLine::options() const { return Options(app_.get()); }

Options CommandLine::add_command(const char* name, const char* summary) {
  CLI::App* command = app_->add_subcommand(name, summary);
  command->group("Subcommands");
  commands_.push_back(command);
  return Options(command);
}

void CommandLine::set_help(std::string text) {
  app_->formatter_fn(
      [text = std::move(text)](const CLI::App*, const std::string&, CLI::AppFormatMode) { return text; });
}

Outcome<std::optional<std::size_t>> CommandLine::parse(int argc, const char* const* argv, std::ostream& out,
                                                       std::ostream& err) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::Success& wanted) {  // --help, --version
    app_->exit(wanted, out, err);
    return std::nullopt;
  } catch (const CLI::ExtrasError& error) {
    const auto extras = app_->remaining(true);
    const auto option =
        std::find_if(extras.begin(), extras.end(), [](const auto& extra) { return extra.starts_with("--"); });
    std::string meant;
    for (const CLI::App* command : app_->get_subcommands()) {
      if (option != extras.end()) meant = did_you_mean(*option, option_names(*command));
    }
    return problem(Exit::wrong_use, error.what() + meant);
  } catch (const CLI::ParseError& error) {
    return problem(Exit::wrong_use, error.what());
  }
  for (std::size_t i = 0; i < commands_.size(); ++i) {
    if (commands_[i]->parsed()) return i;
  }
  return problem(Exit::wrong_use, "A subcommand is required");
}

}  // namespace berth::cli
