// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/daemon_client.h"
#include "cli/render.h"

#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/core.h>
#include <unistd.h>

namespace berth::cli {

namespace {

// The daemon's program of the same installation, wherever that is. Else the one at the configured path.
std::string daemon_program() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) {
    const std::filesystem::path beside = self.parent_path().parent_path() / "sbin" / "berthd";
    if (access(beside.c_str(), X_OK) == 0) return beside;
  }
  return BERTHD_PROGRAM;
}

// Replaces this process by `berthd --restore`, whose output and exit status are then this command's.
Outcome<void> restore_without_daemon(const Session& session, const std::vector<std::string>& options) {
  std::vector<std::string> words{daemon_program(), "--restore"};
  if (session.json) words.emplace_back("--json");
  words.insert(words.end(), options.begin(), options.end());
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  session.out.flush();
  execv(arguments[0], arguments.data());
  if (errno == ENOENT) {
    return problem(Exit::failed,
                   fmt::format("{}berthd(8), which restores, is not installed here ({} does not exist)",
                               options.empty() ? "no daemon is on the bus, and " : "", words[0]));
  }
  return problem(Exit::failed, fmt::format("cannot run {} to restore without the daemon: {}", words[0],
                                           std::generic_category().message(errno)));
}

Outcome<void> restore(Session& session, const std::vector<std::string>& options) {
  if (!options.empty() && !options.front().starts_with('-')) {
    return problem(Exit::wrong_use,
                   fmt::format("restore takes only options of berthd(8) after --, and \"{}\" is not one",
                               options.front()));
  }
  if (!options.empty()) return restore_without_daemon(session, options);
  auto daemon = DaemonClient::connect();
  if (!daemon) {
    if (daemon.error().exit == Exit::unreachable) return restore_without_daemon(session, options);
    return tl::unexpected(daemon.error());
  }
  return show_document(session, daemon->restore(), "report", render_restore);
}

}  // namespace

Action declare_restore(const Options& options) {
  const auto handed_on = std::make_shared<std::vector<std::string>>();
  options.footer(
      "Without a daemon on the bus, this command runs berthd(8) to restore everything.\n"
      "With options of berthd(8) after \"--\", it asks no daemon, and passes them on.");
  options.option("options", *handed_on, "Options of berthd(8), after --").type_name("");
  return [handed_on](Session& session) { return restore(session, *handed_on); };
}

}  // namespace berth::cli
