// SPDX-License-Identifier: Apache-2.0
// The commands of berthctl, one file each. --help is made of this table. A test compares the shell
// completions and the manual page with it.
#pragma once

#include "cli/command_line.h"
#include "cli/document.h"
#include "cli/problem.h"
#include "cli/text.h"

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

namespace berth::cli {

// Input of every command.
struct Session {
  std::ostream& out;
  std::ostream& err;
  bool json = false;
  Style style;  // of `out`
};

using Action = std::function<Outcome<void>(Session&)>;

// A heading of --help.
enum class Group { look, decide, change, configure };

struct Command {
  const char* name;
  Group group;
  // At most 25 letters, for --help of the program.
  const char* brief;
  const char* summary;
  // Whether long output goes to a pager. Not for a command that shows news, or asks.
  bool paged;
  // Adds the options of the command; the action reads their values when it runs.
  Action (*declare)(const Options&);
};

const std::vector<Command>& commands();

// Reads the command line and runs the command; the exit status of the program. Every error is one line on
// `err`.
int run(int argc, const char* const* argv, std::ostream& out, std::ostream& err);

Action declare_admit(const Options& options);
Action declare_backtest(const Options& options);
Action declare_blame(const Options& options);
Action declare_check_config(const Options& options);
Action declare_evict(const Options& options);
Action declare_explain(const Options& options);
Action declare_list(const Options& options);
Action declare_log(const Options& options);
Action declare_metrics(const Options& options);
Action declare_mode(const Options& options);
Action declare_plan(const Options& options);
Action declare_profile(const Options& options);
Action declare_progress(const Options& options);
Action declare_rank(const Options& options);
Action declare_record(const Options& options);
Action declare_reload(const Options& options);
Action declare_replay(const Options& options);
Action declare_restore(const Options& options);
Action declare_serve(const Options& options);
Action declare_set(const Options& options);
Action declare_snapshot(const Options& options);
Action declare_status(const Options& options);
Action declare_suggest(const Options& options);
Action declare_top(const Options& options);
Action declare_topology(const Options& options);
Action declare_trial(const Options& options);
Action declare_watch(const Options& options);

// Prints a document of the daemon on the session's output: with --json as it is, else by `render`. `what`
// names it where it is no JSON.
Outcome<void> show_document(Session& session, const Outcome<std::string>& text, const char* what,
                            const std::function<void(std::ostream&, const Document&, const Style&)>& render);

// Prints what a command has done: `document` with --json, else `text`, which must be printable.
Outcome<void> tell(Session& session, const Document& document, const std::string& text);

}  // namespace berth::cli
