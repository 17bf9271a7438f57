// SPDX-License-Identifier: Apache-2.0
// The commands of berthctl, one file each. This table is what --help is made of; a test holds the shell
// completions and the manual page against that.
#pragma once

#include "cli/problem.h"
#include "cli/text.h"

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace berth::cli {

// What every command is given.
struct Session {
  std::ostream& out;
  std::ostream& err;
  bool json = false;
  Style style;  // of `out`
};

using Action = std::function<Outcome<void>(Session&)>;

struct Command {
  const char* name;
  const char* summary;
  // Adds the command's options to its parser; the action reads them when it runs.
  Action (*declare)(CLI::App&);
};

const std::vector<Command>& commands();

// Reads the command line and runs the command; the exit status of the program. Every error is one line on
// `err`.
int run(int argc, const char* const* argv, std::ostream& out, std::ostream& err);

Action declare_admit(CLI::App& app);
Action declare_check_config(CLI::App& app);
Action declare_evict(CLI::App& app);
Action declare_explain(CLI::App& app);
Action declare_list(CLI::App& app);
Action declare_log(CLI::App& app);
Action declare_metrics(CLI::App& app);
Action declare_mode(CLI::App& app);
Action declare_plan(CLI::App& app);
Action declare_progress(CLI::App& app);
Action declare_rank(CLI::App& app);
Action declare_reload(CLI::App& app);
Action declare_restore(CLI::App& app);
Action declare_set(CLI::App& app);
Action declare_snapshot(CLI::App& app);
Action declare_status(CLI::App& app);
Action declare_top(CLI::App& app);
Action declare_topology(CLI::App& app);

}  // namespace berth::cli
