// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/serve/bus_service_glue.h"

#include <cstddef>
#include <functional>
#include <list>
#include <map>
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

// Decides whether a caller may do something: root always may, others if polkit permits, or if a rule about
// their user or process does. Never blocks the loop.
class Polkit {
 public:
  // Questions that polkit has at once. More are refused, so that a flood of calls costs its sender and not
  // the daemon. Root is not asked about, so it is never refused for that.
  static constexpr std::size_t kMaxPending = 256;
  // And of one user, so that a user cannot block the others.
  static constexpr std::size_t kMaxPerUser = 32;
  // Questions of one connection whose user or process is not known yet. The bus limits the connections of a
  // user, so no user can block another one before that.
  static constexpr std::size_t kMaxPerConnection = 32;
  // And the arguments that they keep: one of the largest requests, and some more.
  static constexpr std::size_t kMaxBytesPerConnection = std::size_t{160} * 1024;

  // Asks the bus at once whether polkit is there. Later questions to the bus are answered later. `bus`
  // outlives this object. Throws std::system_error.
  explicit Polkit(sd_bus* bus);
  Polkit(const Polkit&) = delete;
  Polkit& operator=(const Polkit&) = delete;

  // Whether polkit need not be asked about a sender, by its process and effective user as the bus knows them.
  using Exempt = std::function<bool(pid_t pid, uid_t uid)>;
  // Decides by the user alone; polkit is not asked.
  using ByUser = std::function<Verdict(uid_t uid)>;
  struct Asked {
    std::string action;     // of polkit
    Exempt exempt;          // if given, it is asked first, for root too
    ByUser by_user;         // if given, it decides
    std::size_t bytes = 0;  // the arguments that are kept until the verdict
  };

  // Asks whether the sender of `call` may do it, and calls `done` once: from the event loop or, where nothing
  // can be asked, at once. Never calls it after this object is gone.
  void check(sd_bus_message* call, Asked asked, std::function<void(const Verdict&)> done);

  // Why polkit cannot be asked; nullopt where it runs, or the bus starts it on demand.
  std::optional<std::string> problem() const;

 private:
  struct Question {
    Polkit& polkit;
    std::string sender;
    bool interactive = false;
    Asked asked;
    std::function<void(const Verdict&)> done;
    std::optional<uid_t> uid;  // once it is known
    bool with_polkit = false;  // polkit has it, and it counts for the user, not for the connection
    std::list<Question>::iterator self;
    Slot call;
  };
  // Of one connection, before polkit has the questions.
  struct Unresolved {
    std::size_t questions = 0;
    std::size_t bytes = 0;
  };
  static int on_user(sd_bus_message* reply, void* userdata, sd_bus_error* error);
  static int on_process(sd_bus_message* reply, void* userdata, sd_bus_error* error);
  static int on_authorization(sd_bus_message* reply, void* userdata, sd_bus_error* error);
  static int on_owner(sd_bus_message* reply, void* userdata, sd_bus_error* error);
  static int on_owner_changed(sd_bus_message* signal, void* userdata, sd_bus_error* error);
  static int on_activatable(sd_bus_message* reply, void* userdata, sd_bus_error* error);
  int ask_bus(Question& question, const char* method, sd_bus_message_handler_t answered);
  void take_user(Question& question, uid_t uid);
  int go_on(Question& question);
  int ask_polkit(Question& question);
  void answer(Question& question, const Verdict& verdict);
  bool enter(const Question& question);
  void leave(const Question& question);

  sd_bus* bus_;
  bool running_ = false;
  bool activatable_ = false;
  Slot owner_;
  Slot owner_changed_;
  Slot activatable_names_;
  std::map<std::string, Unresolved> unresolved_;  // by connection
  std::map<uid_t, std::size_t> with_polkit_;      // questions by user
  std::size_t all_with_polkit_ = 0;
  std::list<Question> questions_;
};

}  // namespace berth::daemon
