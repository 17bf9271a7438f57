// SPDX-License-Identifier: Apache-2.0
// berth-slurm(8): publishes the state of this host's berthd in Slurm, and ends. slurmd runs it again and
// again.
#include "integrations/berth.h"
#include "integrations/slurm/command.h"
#include "integrations/slurm/decide.h"
#include "integrations/slurm/node.h"
#include "integrations/slurm/options.h"
#include "model/error.h"
#include "model/plain_text.h"
#include "os/clock.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/core.h>
#include <syslog.h>
#include <unistd.h>

namespace berth::slurm {

namespace {

// One run: what it changed, or would change with --dry-run. Both are empty where nothing is to change.
struct Published {
  std::string text;                // in words
  std::vector<std::string> words;  // the call of scontrol
  std::string warning;             // about slurm.conf
};

using model::ErrorKind;

// Two calls and a check fit into the minute that slurmd gives the program.
constexpr std::chrono::seconds kCallLimit{25};
constexpr std::chrono::seconds kCheckLimit{8};

// The first line of what the program said.
std::string first_line(const std::string& text) {
  return model::plain_text(text.substr(0, text.find('\n')), model::kMostLineBytes);
}

model::Result<std::string> call(const std::vector<std::string>& words,
                                const std::vector<std::string>& environment,
                                std::chrono::seconds limit = kCallLimit) {
  auto finished = run_program(words, environment, limit);
  if (!finished) return model::fail(finished.error());
  if (finished->status == 0) return std::move(finished->output);
  // scontrol prints some of its errors on standard output.
  const std::string said = first_line(finished->errors.empty() ? finished->output : finished->errors);
  return model::fail(ErrorKind::refused, fmt::format("{} {}: {} (exit status {})", words[0], words[1],
                                                     said.empty() ? "no message" : said, finished->status));
}

model::Result<Node> shown_node(const std::string& node, const Options& options,
                               const std::vector<std::string>& environment, std::chrono::seconds limit) {
  const auto shown = call({options.scontrol, "show", "node", node}, environment, limit);
  if (!shown) return model::fail(shown.error());
  auto record = parse_node(*shown, node);
  if (!record) return model::fail(record.error().context("the answer of scontrol show node"));
  return record;
}

// The record has none of the resource yet, and gets some.
bool is_first_amount(const Node& before, const Update& update, const Settings& settings) {
  return update.gres && count_of(before.gres, settings.gres_name) == 0 &&
         *update.gres != with_count(before.gres, settings.gres_name, 0);
}

// scontrol reports no error where Slurm ignores the amount, because it does not know the resource.
model::Result<void> check_that_it_is_there(const Options& options, const std::string& node,
                                           const std::vector<std::string>& environment) {
  const std::string& gres = options.settings.gres_name;
  const auto record = shown_node(node, options, environment, kCheckLimit);
  if (!record || count_of(record->gres, gres) != 0) return {};
  return model::fail(ErrorKind::refused,
                     fmt::format("Slurm ignored the amount of {0}: add {0} to GresTypes of slurm.conf, then "
                                 "restart slurmctld and each slurmd",
                                 gres));
}

// Compares the node's record in Slurm with `berth`, and changes it where they differ: one call of scontrol,
// or two, and a third where the record gets its first amount of the resource. `environment`: of scontrol.
// Error: scontrol could not be run or refused, or Slurm ignored the amount; the message says which.
model::Result<Published> publish(const std::string& node, const Berth& berth, const Options& options,
                                 const std::vector<std::string>& environment) {
  const auto record = shown_node(node, options, environment, kCallLimit);
  if (!record) return model::fail(record.error());

  Published published;
  if (const auto most = configured_too_low(*record, options.settings.gres_name)) {
    published.warning = fmt::format(
        "slurm.conf has {0}:{1} for this node, and berth published more: raise it (berth-slurm(8)), "
        "then resume the node",
        options.settings.gres_name, *most);
  }
  const Update update = decide(*record, berth, options.settings);
  if (update.empty()) return published;
  published.text = describe(*record, update);
  published.words = arguments_of(node, update);
  published.words.insert(published.words.begin(), options.scontrol);
  if (options.dry_run) return published;
  const auto updated = call(published.words, environment);
  if (!updated) return model::fail(updated.error().context(published.text));
  if (is_first_amount(*record, update, options.settings)) {
    if (const auto there = check_that_it_is_there(options, node, environment); !there)
      return model::fail(there.error().context(published.text));
  }
  return published;
}

constexpr std::size_t kMaxVariableBytes = 4096;

// slurmd keeps the output of a failed run alone, so other messages need another way.
void say(int priority, const std::string& message) {
  const std::string line = model::plain_text(message, model::kMostLineBytes);
  // A reader that is gone must not end the run: syslog has the message, too.
  std::fputs(("berth-slurm: " + line + "\n").c_str(), priority <= LOG_WARNING ? stderr : stdout);
  if (isatty(STDERR_FILENO) == 0) syslog(priority, "%s", line.c_str());
}

// Nothing else of berth-slurm's own environment reaches scontrol.
std::vector<std::string> environment_of_scontrol() {
  std::vector<std::string> environment{"PATH=/usr/bin:/bin", "LC_ALL=C"};
  const char* file = std::getenv("SLURM_CONF");
  if (file == nullptr) return environment;
  const std::string_view path(file);
  if (!path.empty() && path.front() == '/' && path.size() <= kMaxVariableBytes)
    environment.push_back("SLURM_CONF=" + std::string(path));
  return environment;
}

// As a shell would take it, so that a reader may copy it.
std::string in_quotes(std::string_view word) {
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

ExitStatus run(const Options& options) {
  std::string node = options.node;
  if (node.empty()) {
    const char* named = std::getenv("SLURMD_NODENAME");
    if (named == nullptr) {
      say(LOG_ERR, "which node? Slurm's slurmd sets SLURMD_NODENAME; by hand give --node NAME");
      return ExitStatus::wrong_use;
    }
    if (const auto why = why_no_node_name(named); why) {
      say(LOG_ERR, fmt::format("SLURMD_NODENAME names no node: {}", *why));
      return ExitStatus::wrong_use;
    }
    node = named;
  }
  const Berth berth = integrations::read_berth(options.state_file, os::epoch_s(), options.max_age_s);
  const auto published = publish(node, berth, options, environment_of_scontrol());
  if (!published) {
    say(LOG_ERR, fmt::format("{}: {}", node, published.error().message()));
    return ExitStatus::failed;
  }
  if (published->words.empty()) return ExitStatus::done;
  // Said with the change that follows from it, so not at each run.
  if (!published->warning.empty()) say(LOG_WARNING, fmt::format("{}: {}", node, published->warning));
  if (!berth.silence.empty()) say(LOG_WARNING, fmt::format("{}: {}", node, berth.silence));
  if (options.dry_run) {
    std::string call;
    for (const std::string& word : published->words) call += (call.empty() ? "" : " ") + in_quotes(word);
    fmt::print("{}\n", model::plain_text(call, model::kMostFieldBytes));
  } else {
    say(LOG_INFO, fmt::format("{}: {}", node, published->text));
  }
  return ExitStatus::done;
}

}  // namespace

}  // namespace berth::slurm

int main(int argc, char** argv) {
  using berth::slurm::ExitStatus;
  try {
    std::signal(SIGPIPE, SIG_IGN);
    openlog("berth-slurm", LOG_PID, LOG_DAEMON);
    const auto parsed = berth::slurm::parse_options(argc, argv);
    const auto* options = std::get_if<berth::slurm::Options>(&parsed);
    const auto status = options == nullptr ? std::get<ExitStatus>(parsed) : berth::slurm::run(*options);
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return static_cast<int>(status);
    std::fputs("berth-slurm: cannot write the output\n", stderr);
  } catch (const std::exception& error) {
    std::fputs(("berth-slurm: " + std::string(error.what()) + "\n").c_str(), stderr);
  }
  return static_cast<int>(ExitStatus::failed);
}
