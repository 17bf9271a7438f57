// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bus/compat.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace berth::daemon {

// The answer to "may this caller do that?".
struct Verdict {
  bool allowed = false;
  const char* error_name = "";  // D-Bus error to refuse with
  std::string message;          // why not, and what would help
};

// Decides who may change things: root always, others as polkit says. Never blocks the loop.
class Polkit {
 public:
  // Questions under way at once; more are refused, so that a flood of calls costs the flooder and not the
  // daemon.
  static constexpr std::size_t kMaxPending = 256;

  // `connection` outlives this object.
  explicit Polkit(sdbus::IConnection& connection);
  ~Polkit();
  Polkit(const Polkit&) = delete;
  Polkit& operator=(const Polkit&) = delete;

  // Asks whether `caller` may do `action`, and tells `done` once, from the event loop or, where too many
  // questions are open, at once. Never after this object is gone.
  void check(const bus::Caller& caller, const std::string& action, std::function<void(Verdict)> done);

  std::size_t pending() const { return pending_; }

 private:
  struct Question;
  void ask_polkit(const std::shared_ptr<Question>& question);
  void answer(const std::shared_ptr<Question>& question, Verdict verdict);

  std::size_t pending_ = 0;
  std::unique_ptr<sdbus::IProxy> bus_;
  std::unique_ptr<sdbus::IProxy> authority_;
};

}  // namespace berth::daemon
