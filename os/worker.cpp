// SPDX-License-Identifier: Apache-2.0
#include "os/worker.h"

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace berth::os {

std::error_code start_thread(std::function<void()> run) {
  // Before it begins: a signal that the program waits for must not reach it.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::error_code refused;
  try {
    std::thread(std::move(run)).detach();
  } catch (const std::system_error& error) {
    refused = error.code();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return refused;
}

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
  if (start_thread([shared] { shared->run(); })) return false;
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

bool Attempts::may_begin(const std::string& of, uid_t user) {
  std::erase_if(hung_, [](const Hung& hung) { return !hung.worker->is_busy(); });
  const auto of_user =
      std::count_if(hung_.begin(), hung_.end(), [user](const Hung& hung) { return hung.user == user; });
  if (hung_.size() >= kMost || (user != 0 && of_user >= static_cast<std::ptrdiff_t>(kMostOfUser)) ||
      std::any_of(hung_.begin(), hung_.end(), [&of](const Hung& hung) { return hung.of == of; }))
    return false;
  if (!worker_) worker_ = std::make_unique<Worker>();
  return true;
}

}  // namespace berth::os
