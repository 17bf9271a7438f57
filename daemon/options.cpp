// SPDX-License-Identifier: Apache-2.0
#include "daemon/options.h"

#include "config/config.h"

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <string>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

namespace berth::daemon {

namespace {

ExitStatus wrong_use(std::string message) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  fmt::print(stderr, "berthd: {} (berthd --help lists the options)\n", message);
  return ExitStatus::wrong_use;
}

}  // namespace

std::variant<Options, ExitStatus> parse_options(int argc, const char* const* argv) {
  Options options;
  std::string config_file;
  std::string checked_file;
  bool once = false;
  bool restore = false;

  CLI::App app(
      "Pins latency-sensitive workloads away from each other and keeps best-effort ones off their vCPUs.",
      "berthd");
  app.set_version_flag("--version", "berthd " BERTH_VERSION, "Print the version and exit");
  app.add_option("--config", config_file, "Configuration file")
      ->type_name("FILE")
      ->default_str(config::kDefaultFile);
  auto* check = app.add_option("--check-config", checked_file, "Check the configuration and exit")
                    ->type_name("[FILE]")
                    ->expected(0, 1);
  app.add_flag("--no-unit", options.no_unit,
               "With --check-config: also take settings that the sandbox of berthd.service forbids");
  app.add_flag("--observe", options.observe, "Start in observe mode, whatever the configuration says");
  app.add_flag("--once", once, "Look at the host once, print what would be done, and exit");
  app.add_flag("--restore", restore, "Put back everything that an earlier run changed, and exit");
  app.add_flag("--json", options.json, "With --once and --restore: print JSON");
  const auto add_path = [&app](const char* name, std::filesystem::path& path, const char* what,
                               const char* type) {
    auto* option = app.add_option(name, path, what)->type_name(type);
    if (!path.empty()) option->default_str(path.string());
  };
  const auto add_directory = [&add_path](const char* name, std::filesystem::path& path, const char* what) {
    add_path(name, path, what, "DIR");
  };
  add_directory("--cgroup-root", options.cgroup_root,
                "The cgroup v2 tree; found in mountinfo where not given");
  add_directory("--proc-root", options.proc_root, "In place of /proc");
  add_directory("--sys-root", options.sys_root, "In place of /sys");
  add_directory("--state-dir", options.state_dir, "Decision log, and what is learned");
  add_directory("--runtime-dir", options.runtime_dir,
                "Undo journal, and settings made for the run of a workload");
  add_path("--sparkd-socket", options.sparkd_socket, "Socket of berth-sparkd, which asks Spark's drivers",
           "FILE");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) {  // --help or --version
      app.exit(e);
      return ExitStatus::done;
    }
    return wrong_use(e.what());
  }

  // CLI11 treats an empty argument as a missing one.
  for (int i = 1; i < argc; ++i) {
    if (*argv[i] == '\0') return wrong_use(fmt::format("{}: the name is empty", argv[i - 1]));
  }

  const bool checking = check->count() > 0;
  if (int{checking} + int{once} + int{restore} > 1) {
    return wrong_use("--check-config, --once and --restore exclude each other");
  }
  if (options.no_unit && !checking) return wrong_use("--no-unit goes with --check-config");
  if (checking) options.command = Command::check_config;
  if (once) options.command = Command::once;
  if (restore) options.command = Command::restore;
  if (options.json && !once && !restore) return wrong_use("--json goes with --once or --restore");

  const std::string& named = checked_file.empty() ? config_file : checked_file;
  options.config_file = named.empty() ? config::kDefaultFile : named;
  std::error_code error;
  // Only the default file may be missing: a named file that does not exist is a mistake.
  if (!named.empty() && !std::filesystem::exists(options.config_file, error)) {
    return wrong_use(
        fmt::format("{}: {}", named, error ? error.message() : "there is no such configuration file"));
  }
  return options;
}

}  // namespace berth::daemon
