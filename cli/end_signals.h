// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <csignal>
#include <ctime>

namespace berth::cli {

// From its construction on, the signals that end the program only end a wait.
class EndSignals {
 public:
  EndSignals() {
    sigemptyset(&set_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set_, signal);
    sigprocmask(SIG_BLOCK, &set_, &before_);
    std::signal(SIGPIPE, SIG_IGN);  // a write then fails with EPIPE
  }
  ~EndSignals() {
    std::signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;

  // Waits; true where the program is to end.
  bool wait(double seconds) const {
    const double whole = std::max(seconds, 0.0);
    timespec time{};
    time.tv_sec = static_cast<std::time_t>(whole);
    time.tv_nsec = static_cast<long>((whole - static_cast<double>(time.tv_sec)) * 1e9);
    return sigtimedwait(&set_, nullptr, &time) > 0;
  }

 private:
  sigset_t set_{};
  sigset_t before_{};
};

}  // namespace berth::cli
