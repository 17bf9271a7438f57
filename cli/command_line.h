// SPDX-License-Identifier: Apache-2.0
// The command line of a program with commands. CLI11 reads it; it is all code in headers, 0.1 MB in each
// object that includes them. So only command_line.cpp does.
#pragma once

#include "cli/problem.h"

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace berth::cli {

// One option, or an argument without a name. A handle: the command line owns the option.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option required() const;
  // The word for its value in --help.
  Option type_name(const char* name) const;
  // --help shows this text, or the variable's present value, as the default.
  Option show_default(const char* text) const;
  Option show_default() const;
  // Each occurrence takes one value, though the variable holds several.
  Option one_value() const;
  Option from_to(std::uint32_t lowest, std::uint32_t highest) const;
  // `problem` returns the reason for refusing a value; "" accepts it.
  Option check(std::string (*problem)(const std::string& value)) const;
  Option needs(Option other) const;
  Option excludes(Option other) const;

  // Whether it was given on the command line.
  bool given() const;

 private:
  CLI::Option* option_;
};

// The options of one command, or of the whole program. A handle, too. The variables outlive the parsing.
class Options {
 public:
  explicit Options(CLI::App* app) : app_(app) {}

  // "--json", "-n", or "workload" for an argument without a name.
  Option flag(const char* name, bool& value, const char* help) const;
  Option option(const char* name, std::string& value, const char* help) const;
  Option option(const char* name, std::optional<std::string>& value, const char* help) const;
  Option option(const char* name, std::vector<std::string>& values, const char* help) const;
  Option option(const char* name, std::uint32_t& value, const char* help) const;
  // The last lines of --help.
  void footer(const char* text) const;

 private:
  CLI::App* app_;
};

class CommandLine {
 public:
  // `version` is the answer to --version.
  CommandLine(const char* program, const char* summary, const char* version);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  // The options before the command.
  Options options() const;
  Options add_command(const char* name, const char* summary);
  // The answer to --help before a command; call it after the last add_command().
  void set_help(std::string text);

  // The number of the command that was given, in the order of add_command(). nullopt after --help or
  // --version, which are answered on `out`. Problem wrong_use for everything else; it names options that are
  // like an unknown one.
  Outcome<std::optional<std::size_t>> parse(int argc, const char* const* argv, std::ostream& out,
                                            std::ostream& err);

 private:
  std::unique_ptr<CLI::App> app_;
  std::vector<CLI::App*> commands_;
};

}  // namespace berth::cli
