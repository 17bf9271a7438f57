// SPDX-License-Identifier: Apache-2.0
#include "cli/metric_command.h"

#include "model/name.h"
#include "model/number.h"
#include "model/plain_text.h"
#include "model/text.h"
#include "os/read_file.h"

#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace berth::cli {

using model::ErrorKind;
using model::fail;

namespace {

constexpr std::size_t kMostOutput = 4096;
constexpr std::size_t kShownOutput = 60;
// Beyond the end of the window, on a busy host.
constexpr int kGrace_ms = 2000;
constexpr const char* kSeconds = "BERTH_TRIAL_SECONDS=";

std::vector<char*> environment_with(std::string& seconds) {
  std::vector<char*> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (std::strncmp(*variable, kSeconds, std::strlen(kSeconds)) != 0) variables.push_back(*variable);
  }
  variables.push_back(seconds.data());
  variables.push_back(nullptr);
  return variables;
}

// Becomes `sh -c`. Makes nothing but system calls, as it is a fork.
[[noreturn]] void become_shell(pid_t parent, int output, char* const* arguments, char* const* variables) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0) _exit(1);
  if (nothing != STDIN_FILENO) close(nothing);
  std::signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execve("/bin/sh", arguments, variables);
  _exit(127);
}

// A child of `sh -c`; -1 with errno.
pid_t spawn_shell(std::string& command, double seconds, int output) {
  std::string shell = "sh";
  std::string option = "-c";
  const std::array<char*, 4> arguments{shell.data(), option.data(), command.data(), nullptr};
  std::string variable = fmt::format("{}{:.0f}", kSeconds, std::floor(seconds));
  const auto variables = environment_with(variable);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) become_shell(parent, output, arguments.data(), variables.data());
  // Here too, as it may be killed before it runs.
  if (pid > 0) setpgid(pid, pid);
  return pid;
}

// Whether a child ends within the grace.
bool ends_soon(pid_t pid) {
  const os::FileDescriptor handle(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  pollfd waited{handle.get(), POLLIN, 0};
  return handle && poll(&waited, 1, kGrace_ms) == 1;
}

}  // namespace

model::Result<double> parse_metric(std::string_view text) {
  const auto number = model::to_number<double>(model::trimmed(text, model::kBlanksAndBreaks));
  if (number && std::isfinite(*number)) return *number;
  return fail(ErrorKind::invalid_input, fmt::format("it printed \"{}\", which is no number",
                                                    model::plain_text(std::string(text), kShownOutput)));
}

void MetricCommand::start(double seconds) {
  end();
  problem_.clear();
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    problem_ = std::generic_category().message(errno);
    return;
  }
  output_ = os::FileDescriptor(ends[0]);
  const os::FileDescriptor writes(ends[1]);
  pid_ = spawn_shell(command_, seconds, writes.get());
  if (pid_ < 0) problem_ = std::generic_category().message(errno);
}

model::Result<double> MetricCommand::number() {
  const auto failed = [this](const std::string& why) {
    return fail(ErrorKind::io, fmt::format("--metric \"{}\": {}", command_, why));
  };
  if (pid_ < 0) return failed("cannot be started: " + problem_);
  // It keeps its process id until it is waited for, so no other process is killed below.
  const bool ended = ends_soon(pid_);
  // end() also kills what the command started in the background, which would keep the pipe open.
  const int status = end();
  if (!ended) {
    return failed(
        "still ran at the end of the window, and was killed; it may measure for $BERTH_TRIAL_SECONDS "
        "seconds");
  }
  if (WIFSIGNALED(status)) return failed(fmt::format("was ended by signal {}", WTERMSIG(status)));
  if (WEXITSTATUS(status) != 0) return failed(fmt::format("failed with status {}", WEXITSTATUS(status)));
  fcntl(output_.get(), F_SETFL, O_NONBLOCK);
  std::string text;
  if (!os::read_up_to(output_.get(), kMostOutput, text) && errno != EAGAIN)
    return failed(std::generic_category().message(errno));
  auto number = parse_metric(text);
  if (!number) return failed(number.error().message());
  return number;
}

int MetricCommand::end() {
  int status = 0;
  if (pid_ < 0) return status;
  kill(-pid_, SIGKILL);
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return status;
}

}  // namespace berth::cli
