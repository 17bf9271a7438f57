// SPDX-License-Identifier: Apache-2.0
// Messages to programs that may not read them for long: journald and systemd. Their sockets hold a number of
// messages of all programs together, and then keep each sender waiting (unix(7), net.unix.max_dgram_qlen).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace berth::os {

// Sends messages in their order on a thread of its own. No call but drain() waits.
class Outbox {
 public:
  // Of messages that wait. More are dropped and counted.
  struct Limits {
    std::size_t messages = 1000;
    std::size_t bytes = std::size_t{4} << 20;
  };
  explicit Outbox(Limits limits);
  Outbox() : Outbox(Limits()) {}
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;
  // Drops what waits. A message that is being sent may still be sent.
  ~Outbox();

  // Takes a message of so many bytes, which `send` sends; it must own all that it uses, and must not throw.
  // False where it was dropped: too much waits.
  bool post(std::size_t bytes, std::function<void()> send);
  // Messages dropped since the start.
  std::uint64_t dropped() const;
  // Waits until all are sent; false where some are not after `patience`.
  bool drain(std::chrono::milliseconds patience);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

// The program's own, to journald and to systemd's notification socket (sd_notify(3)). One that is kept
// waiting does not keep the other. They live as long as the program.
Outbox& journal_outbox();
Outbox& systemd_outbox();

}  // namespace berth::os
