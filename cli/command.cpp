// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

#include "cli/pager.h"
#include "cli/similar.h"
#include "model/json_text.h"
#include "model/name.h"

#include <algorithm>
#include <array>
#include <exception>
#include <ostream>
#include <sstream>
#include <string_view>
#include <utility>

#include <fmt/core.h>

namespace berth::cli {

const std::vector<Command>& commands() {
  using enum Group;
  static const std::vector<Command> table{
      {"status", look, "Mode, host, last actions", "Mode, capabilities of the host, the last actions", true,
       declare_status},
      {"list", look, "The workloads, their use", "The workloads: class, vCPUs, use, pressure, score", true,
       declare_list},
      {"top", look, "The same, live", "The same, live, with the processors drawn", false, declare_top},
      {"topology", look, "The processors, drawn", "The processors, of this host or another one", true,
       declare_topology},
      {"snapshot", look, "The last tick's state", "The last tick's snapshot, as JSON", true,
       declare_snapshot},
      {"metrics", look, "Figures for Prometheus", "The daemon's metrics, as text that Prometheus reads", true,
       declare_metrics},
      {"plan", decide, "The next actions, and why",
       "The actions for now or for a given snapshot, and their reasons", true, declare_plan},
      {"explain", decide, "Why, for one workload",
       "Why a workload is treated as it is, or a decision was made", true, declare_explain},
      {"blame", decide, "The causes of waits",
       "The work that ran while a service's threads waited for a vCPU", false, declare_blame},
      {"log", decide, "The decisions so far", "The newest decisions", true, declare_log},
      {"watch", decide, "The same, as it happens", "Follow the decisions as berthd makes them", false,
       declare_watch},
      {"rank", decide, "The best place for work", "The places for new work on one or many hosts, best first",
       true, declare_rank},
      {"profile", decide, "What was learned",
       "The learned interference models: list, show, export, import, forget, fit", true, declare_profile},
      {"record", decide, "Ticks, into a file", "Record the ticks of berthd in one compressed file", false,
       declare_record},
      {"replay", decide, "Decide again, by a record",
       "The decisions over a recorded time, with these or other settings", true, declare_replay},
      {"backtest", decide, "How good forecasts are",
       "How well each method would have forecast recorded memory", true, declare_backtest},
      {"serve", decide, "Ranks for kube-scheduler", "Answer a Kubernetes scheduler as its extender", false,
       declare_serve},
      {"mode", change, "Observe or enforce", "Switch between observing and enforcing", false, declare_mode},
      {"set", change, "How to treat a workload", "Change how berth treats one workload, until it ends", false,
       declare_set},
      {"admit", change, "Ask to start new work", "Ask to start new work on this host, and reserve its place",
       false, declare_admit},
      {"evict", change, "End best-effort work", "End a best-effort workload, gently first", false,
       declare_evict},
      {"progress", change, "Report a task's progress", "Report how far a workload's task is", false,
       declare_progress},
      {"restore", change, "Put everything back", "Put back every attribute that berth changed", false,
       declare_restore},
      {"suggest", configure, "A first configuration", "Write a first configuration from what runs here", true,
       declare_suggest},
      {"check-config", configure, "Errors of a configuration",
       "Read a configuration and report the first error", false, declare_check_config},
      {"reload", configure, "Read the file again", "Make the daemon read its configuration again", false,
       declare_reload},
      {"trial", configure, "Compare two settings here",
       "Compare two settings on this host, in windows of both in random order", false, declare_trial},
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

// Options of the whole program.
const std::vector<std::string> kOptions{"--json", "--no-pager", "--version", "--help"};

// The command asked for, or nullptr; options of the whole program take no values.
const char* first_word(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    if (argv[i][0] != '-') return argv[i];
  }
  return nullptr;
}

// An unknown option before any command, or nullptr: the parser would only report a missing command.
const char* unknown_option(int argc, const char* const* argv) {
  for (int i = 1; i < argc && argv[i][0] == '-'; ++i) {
    const std::string option = argv[i];
    if (option != "-h" && std::find(kOptions.begin(), kOptions.end(), option) == kOptions.end())
      return argv[i];
  }
  return nullptr;
}

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const Command& command : commands()) names.emplace_back(command.name);
  return names;
}

// Fits a terminal of 24 rows and 80 columns, with room for the prompt.
std::string program_help() {
  std::string text =
      "Usage: berthctl COMMAND [OPTION]... [ARGUMENT]...\n"
      "See and control the resource manager berthd(8). berthctl(1) explains everything.\n";
  constexpr std::array<std::pair<Group, const char*>, 4> kHeadings{
      std::pair{Group::look, "See the host:"}, std::pair{Group::decide, "See what berth decides:"},
      std::pair{Group::change, "Change something:"}, std::pair{Group::configure, "Configure:"}};
  for (const auto& [group, heading] : kHeadings) {
    text += fmt::format("{}\n", heading);
    bool left = true;
    for (const Command& command : commands()) {
      if (command.group != group) continue;
      text += left ? fmt::format("  {:<12} {:<26}", command.name, command.brief)
                   : fmt::format(" {:<12} {}\n", command.name, command.brief);
      left = !left;
    }
    if (!left) text.replace(text.find_last_not_of(' ') + 1, std::string::npos, "\n");
  }
  return text +
         "Options:\n"
         "  --json        JSON instead of text      --no-pager   Never start a pager\n"
         "  --help        This text, or COMMAND's   --version    The version of berthctl\n";
}

}  // namespace

int run(int argc, const char* const* argv, std::ostream& out, std::ostream& err) {
  CommandLine line("berthctl", "See and control the node-level resource manager berthd(8).",
                   "berthctl " BERTH_VERSION);
  bool json = false;
  bool no_pager = false;
  line.options().flag("--json", json, "Print JSON instead of text");
  line.options().flag("--no-pager", no_pager, "Never start a pager");

  std::vector<Action> actions;
  for (const Command& command : commands()) {
    const Options options = line.add_command(command.name, command.summary);
    options.flag("--json", json, "Print JSON instead of text");
    if (command.paged) options.flag("--no-pager", no_pager, "Print long output at once");
    actions.push_back(command.declare(options));
  }
  line.set_help(program_help());

  const std::vector<std::string> names = command_names();
  if (const char* word = first_word(argc, argv);
      word != nullptr && std::find(names.begin(), names.end(), word) == names.end()) {
    return complain(err, Exit::wrong_use,
                    fmt::format("there is no command \"{}\"{} (berthctl --help lists the commands)", word,
                                did_you_mean(word, names)));
  }
  if (const char* option = unknown_option(argc, argv)) {
    return complain(err, Exit::wrong_use,
                    fmt::format("there is no option \"{}\" before a command{} (see berthctl --help)", option,
                                did_you_mean(option, kOptions)));
  }
  std::ostringstream shown;
  const auto asked = line.parse(argc, argv, shown, err);
  if (!asked) {
    const char* word = first_word(argc, argv);
    return complain(err, asked.error().exit,
                    fmt::format("{} (see berthctl {}{}--help)", asked.error().message, word ? word : "",
                                word ? " " : ""));
  }
  const bool paged = !no_pager && (!*asked || commands()[**asked].paged) && pager_is_wanted();
  try {
    Outcome<void> outcome;
    if (*asked) {
      Session session{paged ? shown : out, err, json, terminal_style()};
      outcome = actions[**asked](session);
    } else if (!paged) {
      out << shown.str();
    }
    if (paged) page(out, shown.str());
    out.flush();
    if (!outcome) return complain(err, outcome.error().exit, outcome.error().message);
    if (!out) return complain(err, Exit::failed, "cannot write the output");
    return static_cast<int>(Exit::done);
  } catch (const std::exception& error) {
    return complain(err, Exit::failed, error.what());
  }
}

Outcome<void> show_document(Session& session, const Outcome<std::string>& text, const char* what,
                            const std::function<void(std::ostream&, const Document&, const Style&)>& render) {
  if (text && session.json) {
    session.out << *text << "\n";
    return {};
  }
  const auto document = parse_document(text, what);
  if (!document) return tl::unexpected(document.error());
  render(session.out, *document, session.style);
  return {};
}

Outcome<void> tell(Session& session, const Document& document, const std::string& text) {
  session.out << (session.json ? model::json_text(document) : text) << "\n";
  return {};
}

}  // namespace berth::cli
