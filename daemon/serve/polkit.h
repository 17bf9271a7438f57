// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/serve/bus_service_glue.h"

#include <cstddef>
#include <functional>
#include <list>
#include <optional>
#include <string>

#include <sys/types.h>

namespace berth::daemon {

// The answer to "may this caller do that?".
struct Verdict {
  bool allowed = false;
  const char* error_name = "";  // D-Bus error to refuse with
  std::string message;          // the reason, and a remedy
};

// Decides whether a caller may change things: root always may, others if polkit permits. Never blocks the
// loop.
class Polkit {
 public:
  // Questions under way at once. More are refused, so that a flood of calls costs its sender and not the
  // daemon.
  static constexpr std::size_t kMaxPending = 256;
  // And of one user, so that a user cannot block the others.
  static constexpr std::size_t kMaxPerUser = 32;

  // Asks the bus at once whether polkit is there. Later questions to the bus are answered later. `bus`
  // outlives this object. Throws std::system_error.
  explicit Polkit(sd_bus* bus);
  Polkit(const Polkit&) = delete;
  Polkit& operator=(const Polkit&) = delete;

  // Whether polkit need not be asked about a sender, by its process and effective user as the bus knows them.
  using Exempt = std::function<bool(pid_t pid, uid_t uid)>;

  // Asks whether the sender of `call` may do `action`, and calls `done` once: from the event loop or, where
  // nothing can be asked, at once. Never calls it after this object is gone. `exempt`, if given, is asked
  // first, for root too.
  void check(sd_bus_message* call, const std::string& action, std::function<void(const Verdict&)> done,
             Exempt exempt = {});

  std::size_t pending() const { return questions_.size(); }
  // Why polkit cannot be asked; nullopt where it runs, or the bus starts it on demand.
  std::optional<std::string> problem() const;

 private:
  struct Question {
    Polkit& polkit;
    std::string sender;
    bool interactive = false;
    std::string action;
    std::function<void(const Verdict&)> done;
    Exempt exempt;
    uid_t uid = 0;  // once it is known
    std::list<Question>::iterator self;
    Slot call;
  };
  static int on_user(sd_bus_message* reply, void* userdata, sd_bus_error* error);
  static int on_process(sd_bus_message* reply, void* userdata, sd_bus_error* error);
  static int on_authorization(sd_bus_message* reply, void* userdata, sd_bus_error* error);
  static int on_owner(sd_bus_message* reply, void* userdata, sd_bus_error* error);
  static int on_owner_changed(sd_bus_message* signal, void* userdata, sd_bus_error* error);
  static int on_activatable(sd_bus_message* reply, void* userdata, sd_bus_error* error);
  int ask_bus(Question& question, const char* method, sd_bus_message_handler_t answered);
  int go_on(Question& question);
  int ask_polkit(Question& question);
  void answer(Question& question, const Verdict& verdict);

  sd_bus* bus_;
  bool running_ = false;
  bool activatable_ = false;
  Slot owner_;
  Slot owner_changed_;
  Slot activatable_names_;
  std::list<Question> questions_;
};

}  // namespace berth::daemon
