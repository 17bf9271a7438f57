// SPDX-License-Identifier: Apache-2.0
#include "os/worker.h"

#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace berth::os {

struct Worker::Shared {
  std::mutex mutex;
  std::condition_variable changed;
  std::function<void()> job;  // empty where none waits or runs
  bool over = false;

  // The thread's work.
  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return over || job; });
      if (!job) return;  // a job that was taken is done, even if no caller waits for it any more
      lock.unlock();
      job();
      lock.lock();
      job = nullptr;
      changed.notify_all();
    }
  }
};

Worker::~Worker() {
  if (!shared_) return;
  const std::lock_guard lock(shared_->mutex);
  shared_->over = true;
  shared_->changed.notify_all();
}

bool Worker::can_run() {
  if (shared_) return true;
  auto shared = std::make_shared<Shared>();
  try {
    std::thread([shared] { shared->run(); }).detach();
  } catch (const std::system_error&) {
    return false;
  }
  shared_ = std::move(shared);
  return true;
}

bool Worker::begin(std::function<void()> job, Patience patience) {
  if (!can_run()) return false;
  std::unique_lock lock(shared_->mutex);
  const auto now = std::chrono::steady_clock::now();
  const auto until = now + patience;
  const auto is_idle = [this] { return !shared_->job; };
  given_up_ = !shared_->changed.wait_until(lock, given_up_ ? now : until, is_idle);
  if (given_up_) return false;
  shared_->job = std::move(job);
  shared_->changed.notify_all();
  given_up_ = !shared_->changed.wait_until(lock, until, is_idle);
  return !given_up_;
}

bool Worker::is_busy() const {
  if (!shared_) return false;
  const std::lock_guard lock(shared_->mutex);
  return static_cast<bool>(shared_->job);
}

}  // namespace berth::os
