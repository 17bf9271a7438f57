// SPDX-License-Identifier: Apache-2.0
#include "os/outbox.h"

#include "os/worker.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

namespace berth::os {

struct Outbox::Shared {
  struct Message {
    std::size_t bytes = 0;
    std::function<void()> send;
  };
  explicit Shared(Limits most) : limits(most) {}

  const Limits limits;
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::deque<Message> waiting;  // the first one is being sent, if `sending`
  std::size_t bytes = 0;
  bool sending = false;
  bool runs = false;  // the thread
  bool over = false;
  std::uint64_t dropped = 0;

  // The thread's work.
  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return over || !waiting.empty(); });
      if (over) return;
      Message message = std::move(waiting.front());
      sending = true;
      lock.unlock();
      message.send();
      lock.lock();
      sending = false;
      waiting.pop_front();
      bytes -= message.bytes;
      changed.notify_all();
    }
  }
};

Outbox::Outbox(Limits limits) : shared_(std::make_shared<Shared>(limits)) {}

Outbox::~Outbox() {
  const std::lock_guard lock(shared_->mutex);
  shared_->over = true;
  shared_->changed.notify_all();
}

bool Outbox::post(std::size_t bytes, std::function<void()> send) {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->waiting.size() >= shared_->limits.messages || shared_->bytes + bytes > shared_->limits.bytes) {
    ++shared_->dropped;
    return false;
  }
  shared_->waiting.push_back({.bytes = bytes, .send = std::move(send)});
  shared_->bytes += bytes;
  if (!shared_->runs) {
    // Where the host has no thread to give, the message waits for the next one.
    shared_->runs = !start_thread([shared = shared_] { shared->run(); });
  }
  shared_->changed.notify_all();
  return true;
}

std::uint64_t Outbox::dropped() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->dropped;
}

bool Outbox::drain(std::chrono::milliseconds patience) {
  std::unique_lock lock(shared_->mutex);
  return shared_->changed.wait_for(lock, patience, [this] { return shared_->waiting.empty(); });
}

// Never destroyed: a thread may still be within a send when the program ends.
Outbox& journal_outbox() {
  static auto* const outbox = new Outbox;  // NOLINT(cppcoreguidelines-owning-memory)
  return *outbox;
}

Outbox& systemd_outbox() {
  static auto* const outbox = new Outbox;  // NOLINT(cppcoreguidelines-owning-memory)
  return *outbox;
}

}  // namespace berth::os
