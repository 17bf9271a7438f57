// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/bus_service_glue.h"

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
  std::string message;          // why not, and what would help
};

// Decides who may change things: root always, others as polkit says. Never blocks the loop.
class Polkit {
 public:
  // Questions under way at once; more are refused, so that a flood of calls costs the flooder and not the
  // daemon.
  static constexpr std::size_t kMaxPending = 256;
  // And of one user, so that he cannot keep others from theirs.
  static constexpr std::size_t kMaxPerUser = 32;

  // Asks the bus right away whether polkit is there; what is asked of the bus later is answered later. `bus`
  // outlives this object. Throws std::system_error.
  explicit Polkit(sd_bus* bus);
  Polkit(const Polkit&) = delete;
  Polkit& operator=(const Polkit&) = delete;

  // Says of a sender, by process and effective user as the bus knows them, that polkit need not be asked.
  using Exempt = std::function<bool(pid_t pid, uid_t uid)>;

  // Asks whether the sender of `call` may do `action`, and tells `done` once, from the event loop or, where
  // nothing can be asked, at once. Never after this object is gone. `exempt`, where there is one, is asked
  // first, of root too.
  void check(sd_bus_message* call, const std::string& action, std::function<void(const Verdict&)> done,
             Exempt exempt = {});

  std::size_t pending() const { return questions_.size(); }
  // Why polkit cannot be asked; nullopt where it runs, or the bus starts it when it is asked.
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
