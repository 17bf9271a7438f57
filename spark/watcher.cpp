// SPDX-License-Identifier: Apache-2.0
#include "spark/watcher.h"

#include <chrono>
#include <csignal>
#include <utility>

#include <pthread.h>

namespace berth::spark {

Watcher::Watcher(const std::filesystem::path& proc_root, double interval_s,
                 const std::filesystem::path& socket, OpenFile open, os::Clock clock)
    : clock_(std::move(clock)),
      helper_(socket, std::move(open), [this] { return stop_.load(); }),
      collector_(proc_root, [this](const Question& question) { return helper_.ask(question); }),
      // Before anything is decided about a workload, it is known to be Spark's.
      latest_(std::make_shared<const Observation>(collector_.processes(clock_.now()))) {
  // Signals are the event loop's.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this, interval_s] { run(interval_s); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Watcher::~Watcher() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

std::shared_ptr<const Observation> Watcher::latest() const {
  const std::lock_guard lock(mutex_);
  return latest_;
}

void Watcher::look_again() {
  {
    const std::lock_guard lock(mutex_);
    look_again_ = true;
  }
  wake_.notify_all();
}

void Watcher::run(double interval_s) {
  using Clock = std::chrono::steady_clock;
  const auto interval =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(interval_s));
  auto ask_at = Clock::now();
  std::unique_lock lock(mutex_);
  while (!stop_) {
    if (std::exchange(look_again_, false)) collector_.look_again();
    lock.unlock();
    const bool ask = Clock::now() >= ask_at;
    auto found = std::make_shared<const Observation>(
        ask ? collector_.collect(clock_.now(), clock_.wall_ahead_s()) : collector_.processes(clock_.now()));
    if (ask) ask_at = Clock::now() + interval;
    lock.lock();
    latest_ = std::move(found);
    wake_.wait_until(lock, ask_at, [this] { return stop_.load() || look_again_; });
  }
}

}  // namespace berth::spark
