// SPDX-License-Identifier: Apache-2.0
#include "spark/watcher.h"

#include "os/log.h"
#include "os/worker.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace berth::spark {

struct Watcher::State {
  State(const std::filesystem::path& proc_root, const std::filesystem::path& socket, OpenFile open,
        os::Clock its_clock)
      : clock(std::move(its_clock)),
        helper(socket, std::move(open), [this] { return stop.load(); }),
        collector(proc_root, [this](const Question& question) { return helper.ask(question); }) {}

  const os::Clock clock;
  std::mutex mutex;
  std::condition_variable changed;
  std::atomic<bool> stop{false};
  bool look_again = false;
  bool ended = false;
  std::shared_ptr<const Observation> latest;
  // The thread's own.
  Helper helper;
  Collector collector;

  void run(double interval_s);
};

void Watcher::State::run(double interval_s) {
  using Clock = std::chrono::steady_clock;
  const auto interval =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(interval_s));
  auto ask_at = Clock::now();
  std::unique_lock lock(mutex);
  while (!stop) {
    if (std::exchange(look_again, false)) collector.look_again();
    const bool first = latest == nullptr;
    lock.unlock();
    const bool ask = !first && Clock::now() >= ask_at;
    auto found = std::make_shared<const Observation>(
        ask ? collector.collect(clock.now(), clock.wall_ahead_s()) : collector.processes(clock.now()));
    if (ask) ask_at = Clock::now() + interval;
    lock.lock();
    latest = std::move(found);
    changed.notify_all();
    changed.wait_until(lock, ask_at, [this] { return stop.load() || look_again; });
  }
  ended = true;
  changed.notify_all();
}

Watcher::Watcher(const std::filesystem::path& proc_root, double interval_s,
                 const std::filesystem::path& socket, OpenFile open, os::Clock clock)
    : interval_s_(interval_s),
      state_(std::make_shared<State>(proc_root, socket, std::move(open), std::move(clock))) {
  start();
  if (!started_) return;
  std::unique_lock lock(state_->mutex);
  state_->changed.wait_for(lock, kFirstLook, [this] { return state_->latest != nullptr; });
}

void Watcher::start() {
  if (started_) return;
  const auto refused =
      os::start_thread([state = state_, interval_s = interval_s_] { state->run(interval_s); });
  started_ = !refused;
  if (refused && !std::exchange(said_, true))
    os::log_warning("the host has no thread for the watch of Spark ({}); berthd asks again at every tick",
                    refused.message());
}

Watcher::~Watcher() {
  if (!started_) return;
  std::unique_lock lock(state_->mutex);
  state_->stop = true;
  state_->changed.notify_all();
  state_->changed.wait_for(lock, kEnd, [this] { return state_->ended; });
}

std::shared_ptr<const Observation> Watcher::latest() {
  start();
  const std::lock_guard lock(state_->mutex);
  return state_->latest;
}

void Watcher::look_again() {
  const std::lock_guard lock(state_->mutex);
  state_->look_again = true;
  state_->changed.notify_all();
}

}  // namespace berth::spark
