// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

#include "model/name.h"

#include <algorithm>
#include <array>
#include <exception>
#include <ostream>
#include <string_view>

#include <fmt/core.h>

namespace berth::cli {

const std::vector<Command>& commands() {
  static const std::vector<Command> table{
      {"status", "Mode, capabilities of the host, the last actions", declare_status},
      {"list", "The workloads: class, vCPUs, use, pressure, score", declare_list},
      {"top", "The same, live, with the processors drawn", declare_top},
      {"topology", "The processors, of this host or another one", declare_topology},
      {"snapshot", "The last tick's snapshot, as JSON", declare_snapshot},
      {"plan", "The actions for now or for a given snapshot, and their reasons", declare_plan},
      {"explain", "Why a workload is treated as it is, or a decision was made", declare_explain},
      {"rank", "The places for new work on one or many hosts, best first", declare_rank},
      {"admit", "Ask to start new work on this host, and reserve its place", declare_admit},
      {"mode", "Switch between observing and enforcing", declare_mode},
      {"set", "Change how berth treats one workload, until it ends", declare_set},
      {"evict", "End a best-effort workload, gently first", declare_evict},
      {"progress", "Report how far a workload's task is", declare_progress},
      {"restore", "Put back every attribute that berth changed", declare_restore},
      {"check-config", "Read a configuration and report the first error", declare_check_config},
      {"reload", "Make the daemon read its configuration again", declare_reload},
      {"log", "The newest decisions", declare_log},
      {"metrics", "The daemon's metrics, as text that Prometheus reads", declare_metrics},
  };
  return table;
}

namespace {

// The command line may be as long as the kernel permits. Two paths with their faults fit in this.
constexpr std::size_t kMostComplaintBytes = 1000;

int complain(std::ostream& err, Exit exit, const std::string& message) {
  err << "berthctl: " << printable(model::shortened(message, kMostComplaintBytes)) << "\n";
  return static_cast<int>(exit);
}

// The command asked for, or nullptr; options of the whole program take no values.
const char* first_word(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    if (argv[i][0] != '-') return argv[i];
  }
  return nullptr;
}

// An unknown option before any command, or nullptr: the parser would only report a missing command.
const char* unknown_option(int argc, const char* const* argv) {
  constexpr std::array<std::string_view, 4> kOptions{"--json", "--version", "--help", "-h"};
  for (int i = 1; i < argc && argv[i][0] == '-'; ++i) {
    if (std::find(kOptions.begin(), kOptions.end(), argv[i]) == kOptions.end()) return argv[i];
  }
  return nullptr;
}

bool is_command(std::string_view name) {
  return std::any_of(commands().begin(), commands().end(),
                     [&](const Command& command) { return command.name == name; });
}

}  // namespace

int run(int argc, const char* const* argv, std::ostream& out, std::ostream& err) {
  CommandLine line("berthctl", "See and control the node-level resource manager berthd(8).",
                   "berthctl " BERTH_VERSION);
  bool json = false;
  line.options().flag("--json", json, "Print JSON instead of text");

  std::vector<Action> actions;
  for (const Command& command : commands()) {
    const Options options = line.add_command(command.name, command.summary);
    options.flag("--json", json, "Print JSON instead of text");
    actions.push_back(command.declare(options));
  }

  if (const char* word = first_word(argc, argv); word != nullptr && !is_command(word)) {
    return complain(err, Exit::wrong_use,
                    fmt::format("there is no command \"{}\" (berthctl --help lists the commands)", word));
  }
  if (const char* option = unknown_option(argc, argv)) {
    return complain(err, Exit::wrong_use,
                    fmt::format("there is no option \"{}\" before a command (see berthctl --help)", option));
  }
  const auto asked = line.parse(argc, argv, out, err);
  if (!asked) return complain(err, asked.error().exit, asked.error().message + " (see berthctl --help)");
  if (!*asked) {
    return out.flush() ? static_cast<int>(Exit::done)
                       : complain(err, Exit::failed, "cannot write the output");
  }

  Session session{out, err, json, terminal_style()};
  try {
    const Outcome<void> outcome = actions[**asked](session);
    out.flush();
    if (!outcome) return complain(err, outcome.error().exit, outcome.error().message);
    if (!out) return complain(err, Exit::failed, "cannot write the output");
    return static_cast<int>(Exit::done);
  } catch (const std::exception& error) {
    return complain(err, Exit::failed, error.what());
  }
}

}  // namespace berth::cli
