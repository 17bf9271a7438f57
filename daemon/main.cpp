// SPDX-License-Identifier: Apache-2.0
// berthd: reads its command line and its configuration, and runs the command.
#include "config/config.h"
#include "config/unit_limits.h"
#include "config/without_effect.h"
#include "daemon/daemon.h"
#include "daemon/loop.h"
#include "daemon/once.h"
#include "daemon/options.h"
#include "os/log.h"
#include "os/outbox.h"

#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <variant>
#include <vector>

#include <fmt/core.h>

namespace berth::daemon {

namespace {

ExitStatus run(const Options& options, config::Settings settings) {
  block_signals();
  auto daemon = Daemon::start(options, std::move(settings));
  if (!daemon) {
    os::log_critical("{}", daemon.error().message());
    return ExitStatus::failed;
  }
  if (const auto ended = run_loop(**daemon); !ended) {
    os::log_critical("{}", ended.error().message());
    return ExitStatus::failed;
  }
  return ExitStatus::done;
}

// The last messages of the program, as far as they are taken within this time.
constexpr std::chrono::milliseconds kLastMessages{2000};
struct LastMessages {
  ~LastMessages() {
    os::systemd_outbox().drain(kLastMessages);
    os::journal_outbox().drain(kLastMessages);
  }
};

ExitStatus start(int argc, char** argv) {
  const LastMessages last_messages{};
  const auto parsed = parse_options(argc, argv);
  if (const auto* status = std::get_if<ExitStatus>(&parsed)) return *status;
  const auto& options = std::get<Options>(parsed);
  os::setup_log();
  // Putting back must not fail because the configuration is wrong.
  if (options.command == Command::restore) return run_restore(options);

  auto settings = config::load(options.config_file);
  if (!settings) {
    fmt::print(stderr, "berthd: {}\n", settings.error().message());
    return ExitStatus::wrong_use;
  }
  if (options.command == Command::check_config) {
    for (const std::string& text : config::remarks(*settings)) fmt::print(stderr, "berthd: {}\n", text);
    const auto forbidden =
        options.no_unit ? std::vector<std::string>() : config::forbidden_by_unit(*settings);
    for (const std::string& text : forbidden) fmt::print(stderr, "berthd: {}\n", text);
    if (!forbidden.empty()) return ExitStatus::wrong_use;
    fmt::print("{}: no errors\n", options.config_file.string());
    return ExitStatus::done;
  }
  if (const auto set = os::set_log_level(settings->log_level); !set)
    os::log_warning("{}", set.error().message());
  for (const std::string& text : config::remarks(*settings)) os::log_warning("{}", text);
  if (options.command == Command::once) return run_once(options, *settings);
  return run(options, std::move(*settings));
}

}  // namespace

}  // namespace berth::daemon

int main(int argc, char** argv) {
  try {
    const auto status = berth::daemon::start(argc, argv);
    // Only now may it turn out that the output could not be written.
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return static_cast<int>(status);
    fmt::print(stderr, "berthd: cannot write the output\n");
    return static_cast<int>(berth::daemon::ExitStatus::failed);
  } catch (const std::exception& error) {
    // Only running out of memory comes this far; the unit's ExecStopPost= puts everything back.
    fmt::print(stderr, "berthd: {}\n", error.what());
    return static_cast<int>(berth::daemon::ExitStatus::failed);
  }
}
