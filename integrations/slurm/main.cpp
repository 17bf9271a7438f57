// SPDX-License-Identifier: Apache-2.0
// berth-slurm(8): publishes the state of this host's berthd in Slurm, and ends. slurmd runs it again and
// again.
#include "integrations/berth.h"
#include "integrations/slurm/options.h"
#include "integrations/slurm/publish.h"
#include "model/plain_text.h"
#include "os/clock.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <fmt/core.h>
#include <syslog.h>
#include <unistd.h>

namespace berth::slurm {

namespace {

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
