// SPDX-License-Identifier: Apache-2.0
#include "integrations/slurm/command.h"

#include "os/file_descriptor.h"
#include "os/read_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace berth::slurm {

namespace {

using model::Error;
using model::ErrorKind;
using os::FileDescriptor;
using Clock = std::chrono::steady_clock;

struct Pipe {
  FileDescriptor reading;
  FileDescriptor writing;
};

model::Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return model::fail(Error::from_errno(errno, "pipe"));
  return Pipe{FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

// Releases both objects of posix_spawn(3).
class SpawnSettings {
 public:
  SpawnSettings() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  // 0, or an errno. Signals are as a program expects them, whatever slurmd blocks or ignores.
  int set(const Pipe& output, const Pipe& errors) {
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    const std::array results{
        posix_spawnattr_setsigmask(&attributes_, &none),
        posix_spawnattr_setsigdefault(&attributes_, &all),
        posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF),
        posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0),
        posix_spawn_file_actions_adddup2(&actions_, output.writing.get(), STDOUT_FILENO),
        posix_spawn_file_actions_adddup2(&actions_, errors.writing.get(), STDERR_FILENO),
        posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1),
    };
    const auto* failed = std::find_if(results.begin(), results.end(), [](int result) { return result != 0; });
    return failed == results.end() ? 0 : *failed;
  }
  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  all.reserve(words.size() + 1);
  for (std::string& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

// A running child. Kills and reaps it if nobody waited for its end.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  ~Child() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      wait();
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // nullopt while it runs.
  std::optional<int> ended() { return reap(WNOHANG); }
  int wait() { return reap(0).value_or(-1); }

 private:
  std::optional<int> reap(int flags) {
    int status = 0;
    pid_t got = 0;
    do got = waitpid(pid_, &status, flags);
    while (got < 0 && errno == EINTR);
    if (got == 0) return std::nullopt;
    pid_ = -1;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

  pid_t pid_;
};

// One stream of the child.
struct Stream {
  FileDescriptor from;
  std::string text;
  std::size_t most = 0;
  bool overflowed = false;

  // Reads once. Closes the descriptor at the end of the stream.
  void read_some() {
    std::array<char, 4096> buffer{};
    const ssize_t length = os::read_retrying(from.get(), buffer.data(), buffer.size());
    if (length <= 0) {
      from = FileDescriptor();
      return;
    }
    const auto got = static_cast<std::size_t>(length);
    const std::size_t fits = std::min(got, most - text.size());
    text.append(buffer.data(), fits);
    overflowed = overflowed || fits < got;
  }
};

int milliseconds_until(Clock::time_point end) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
  return static_cast<int>(std::clamp<decltype(left)>(left, 0, 60'000));
}

// Reads both streams to their ends. False after the deadline.
bool read_all(Stream& output, Stream& errors, Clock::time_point end) {
  while ((output.from || errors.from) && !output.overflowed) {
    // poll(2) passes over a negative descriptor.
    std::array<pollfd, 2> waiting{{{.fd = output.from.get(), .events = POLLIN, .revents = 0},
                                   {.fd = errors.from.get(), .events = POLLIN, .revents = 0}}};
    const int ready = poll(waiting.data(), waiting.size(), milliseconds_until(end));
    if (ready < 0 && errno != EINTR) return false;
    if (Clock::now() >= end) return false;
    if (ready <= 0) continue;
    if (waiting[0].revents != 0) output.read_some();
    if (waiting[1].revents != 0) errors.read_some();
  }
  return true;
}

}  // namespace

model::Result<Finished> run_program(const std::vector<std::string>& words,
                                    const std::vector<std::string>& environment,
                                    std::chrono::milliseconds limit) {
  const auto end = Clock::now() + limit;
  auto output = make_pipe();
  if (!output) return model::fail(output.error());
  auto errors = make_pipe();
  if (!errors) return model::fail(errors.error());
  SpawnSettings settings;
  if (const int failed = settings.set(*output, *errors); failed != 0)
    return model::fail(Error::from_errno(failed, "posix_spawn"));
  auto arguments = words;
  auto variables = environment;
  pid_t pid = -1;
  if (const int failed = posix_spawn(&pid, words[0].c_str(), settings.actions(), settings.attributes(),
                                     pointers(arguments).data(), pointers(variables).data());
      failed != 0)
    return model::fail(Error::from_errno(failed, words[0]));
  Child child(pid);
  output->writing = FileDescriptor();
  errors->writing = FileDescriptor();

  Stream out{.from = std::move(output->reading), .text = {}, .most = kMostOutputBytes};
  Stream err{.from = std::move(errors->reading), .text = {}, .most = kMostErrorBytes};
  const auto too_slow = [&] {
    return model::fail(ErrorKind::transient,
                       fmt::format("{}: no answer within {} s", words[0],
                                   std::chrono::duration_cast<std::chrono::seconds>(limit).count()));
  };
  if (!read_all(out, err, end)) return too_slow();
  if (out.overflowed) {
    return model::fail(ErrorKind::refused,
                       fmt::format("{}: it wrote more than {} bytes", words[0], kMostOutputBytes));
  }
  // The streams are closed, so the program is about to end.
  auto status = child.ended();
  while (!status && Clock::now() < end) {
    poll(nullptr, 0, 1);
    status = child.ended();
  }
  if (!status) return too_slow();
  return Finished{.status = *status, .output = std::move(out.text), .errors = std::move(err.text)};
}

}  // namespace berth::slurm
