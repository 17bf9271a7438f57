// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <functional>

#include <sys/wait.h>
#include <unistd.h>

namespace berth::cgroup::test {

// A process of the test's own that runs until it is signalled; killed and reaped with this.
class Child {
 public:
  // `prepare` runs in it, with every signal as by default.
  explicit Child(const std::function<void()>& prepare = {}) {
    int ready[2] = {-1, -1};
    if (pipe(ready) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      if (prepare) prepare();
      (void)!write(ready[1], "r", 1);
      while (true) pause();
    }
    char byte = 0;
    (void)!read(ready[0], &byte, 1);
    close(ready[0]);
    close(ready[1]);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { kill_and_reap(); }

  pid_t pid() const { return pid_; }
  // The signal that it died of; 0 where it runs on.
  int died_of() {
    if (pid_ <= 0) return signal_;
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      signal_ = WIFSIGNALED(status) ? WTERMSIG(status) : -1;
    }
    return signal_;
  }
  void kill_and_reap() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
    signal_ = SIGKILL;
  }

 private:
  pid_t pid_ = -1;
  int signal_ = 0;
};

}  // namespace berth::cgroup::test
