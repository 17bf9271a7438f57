// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <functional>
#include <string>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

namespace berth::cgroup {

// How a forked child ended, and its text.
struct ChildEnd {
  int status = 0;
  std::string said;
  bool killed() const { return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL; }
};

// Runs `body` in a forked child; its return value is the child's text.
inline ChildEnd in_child(const std::function<std::string()>& body) {
  std::array<int, 2> pipe_fds{};
  if (pipe2(pipe_fds.data(), O_CLOEXEC) != 0) return {-1, "pipe"};
  const pid_t child = fork();
  if (child == 0) {
    std::string said;
    try {
      said = body();
    } catch (const std::exception& error) {
      said = error.what();
    }
    const ssize_t written = write(pipe_fds[1], said.data(), said.size());
    _exit(written == static_cast<ssize_t>(said.size()) ? 0 : 1);
  }
  close(pipe_fds[1]);
  ChildEnd end;
  std::array<char, 4096> chunk{};
  for (ssize_t n = 0; (n = read(pipe_fds[0], chunk.data(), chunk.size())) > 0;) {
    end.said.append(chunk.data(), static_cast<std::size_t>(n));
  }
  close(pipe_fds[0]);
  waitpid(child, &end.status, 0);
  return end;
}

inline constexpr const char* kNoMounts = "SKIP: ";

// Runs `body` in a child with mounts of its own, with a small tmpfs on `directory`. The text is kNoMounts and
// the reason where that is not permitted.
inline ChildEnd on_tmpfs(const std::string& directory, const char* options,
                         const std::function<std::string()>& body) {
  return in_child([&]() -> std::string {
    if (unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", directory.c_str(), "tmpfs", 0, options) != 0) {
      return std::string(kNoMounts) + "mounting a tmpfs: " + std::strerror(errno);
    }
    return body();
  });
}

}  // namespace berth::cgroup
