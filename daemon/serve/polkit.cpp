// SPDX-License-Identifier: Apache-2.0
#include "daemon/serve/polkit.h"

#include <cstdint>
#include <string_view>
#include <utility>

#include <fmt/core.h>

namespace berth::daemon {

namespace {

constexpr const char* kBusName = "org.freedesktop.DBus";
constexpr const char* kBusPath = "/org/freedesktop/DBus";
constexpr const char* kPolkitName = "org.freedesktop.PolicyKit1";
constexpr const char* kPolkitPath = "/org/freedesktop/PolicyKit1/Authority";
constexpr const char* kPolkitInterface = "org.freedesktop.PolicyKit1.Authority";
constexpr const char* kOwnerChanged =
    "type='signal',sender='org.freedesktop.DBus',path='/org/freedesktop/DBus',"
    "interface='org.freedesktop.DBus',member='NameOwnerChanged',arg0='org.freedesktop.PolicyKit1'";

constexpr std::uint32_t kAllowUserInteraction = 1;
constexpr std::uint64_t kSilentTimeoutUsec = 10'000'000;
constexpr std::uint64_t kPasswordTimeoutUsec = 120'000'000;  // the user types

Verdict refuse(const char* name, std::string message) { return {false, name, std::move(message)}; }

Verdict nobody(const std::string& sender, const char* why) {
  return refuse(bus::kAccessDenied, fmt::format("the bus does not know the user of {}: {}", sender, why));
}

Verdict polkit_failed(const char* name, const char* message) {
  return refuse(
      bus::kAccessDenied,
      fmt::format(
          "only root may change anything now: polkit could allow other users, but did not answer ({}: {})",
          name, message));
}

Verdict judge(const std::string& action, bool authorized, bool challenge) {
  if (authorized) return {true, "", {}};
  if (challenge) {
    return refuse(bus::kInteractionRequired,
                  fmt::format("polkit wants a password for {}: allow interaction, or run as root", action));
  }
  return refuse(bus::kAccessDenied, fmt::format("polkit does not grant you {}", action));
}

const char* text(const char* possibly) { return possibly == nullptr ? "" : possibly; }

}  // namespace

Polkit::Polkit(sd_bus* bus) : bus_(bus) {
  sd_bus_slot* slot = nullptr;
  berth::daemon::check(sd_bus_add_match_async(bus, &slot, kOwnerChanged, on_owner_changed, nullptr, this),
                       "cannot watch polkit");
  owner_changed_.reset(slot);
  berth::daemon::check(sd_bus_call_method_async(bus, &slot, kBusName, kBusPath, kBusName, "NameHasOwner",
                                                on_owner, this, "s", kPolkitName),
                       "cannot look for polkit");
  owner_.reset(slot);
  berth::daemon::check(sd_bus_call_method_async(bus, &slot, kBusName, kBusPath, kBusName,
                                                "ListActivatableNames", on_activatable, this, ""),
                       "cannot look for polkit");
  activatable_names_.reset(slot);
}

std::optional<std::string> Polkit::problem() const {
  if (running_ || activatable_) return std::nullopt;
  return fmt::format("{} is not on the bus, and the bus cannot start it", kPolkitName);
}

int Polkit::on_owner(sd_bus_message* reply, void* userdata, sd_bus_error*) {
  int running = 0;
  if (sd_bus_message_is_method_error(reply, nullptr) == 0 && sd_bus_message_read(reply, "b", &running) >= 0) {
    static_cast<Polkit*>(userdata)->running_ = running != 0;
  }
  return 0;
}

int Polkit::on_owner_changed(sd_bus_message* signal, void* userdata, sd_bus_error*) {
  const char* now = nullptr;
  if (sd_bus_message_read(signal, "sss", nullptr, nullptr, &now) >= 0) {
    static_cast<Polkit*>(userdata)->running_ = *now != '\0';
  }
  return 0;
}

int Polkit::on_activatable(sd_bus_message* reply, void* userdata, sd_bus_error*) {
  if (sd_bus_message_is_method_error(reply, nullptr) != 0) return 0;
  if (sd_bus_message_enter_container(reply, 'a', "s") < 0) return 0;
  for (const char* name = nullptr; sd_bus_message_read(reply, "s", &name) > 0;) {
    if (std::string_view(name) == kPolkitName) static_cast<Polkit*>(userdata)->activatable_ = true;
  }
  return 0;
}

void Polkit::check(sd_bus_message* call, Asked asked, std::function<void(const Verdict&)> done) {
  questions_.push_front({*this, text(sd_bus_message_get_sender(call)),
                         sd_bus_message_get_allow_interactive_authorization(call) > 0, std::move(asked),
                         std::move(done), std::nullopt, false, questions_.end(), nullptr});
  auto& question = questions_.front();
  question.self = questions_.begin();
  if (!enter(question)) {
    std::list<Question> refused;
    refused.splice(refused.begin(), questions_, question.self);
    return refused.front().done(refuse(
        bus::kLimitsExceeded, fmt::format("too many calls of {} wait for an answer already; try again later",
                                          refused.front().sender)));
  }
  if (const int r = ask_bus(question, "GetConnectionUnixUser", on_user); r < 0) {
    answer(question, nobody(question.sender, std::generic_category().message(-r).c_str()));
  }
}

// Counts a new question for its connection; false where that has too many already.
bool Polkit::enter(const Question& question) {
  Unresolved& of = unresolved_[question.sender];
  if (of.questions >= kMaxPerConnection || of.bytes + question.asked.bytes > kMaxBytesPerConnection) {
    if (of.questions == 0) unresolved_.erase(question.sender);
    return false;
  }
  ++of.questions;
  of.bytes += question.asked.bytes;
  return true;
}

// Takes a question off what it counts for.
void Polkit::leave(const Question& question) {
  if (question.with_polkit) {
    --all_with_polkit_;
    if (const auto of = with_polkit_.find(*question.uid); --of->second == 0) with_polkit_.erase(of);
    return;
  }
  const auto of = unresolved_.find(question.sender);
  of->second.bytes -= question.asked.bytes;
  if (--of->second.questions == 0) unresolved_.erase(of);
}

// The bus knows the sender's uid and pid for certain; the sender's own statements do not count.
int Polkit::ask_bus(Question& question, const char* method, sd_bus_message_handler_t answered) {
  sd_bus_message* raw = nullptr;
  int r = sd_bus_message_new_method_call(bus_, &raw, kBusName, kBusPath, kBusName, method);
  const Message message(raw);
  if (r >= 0) r = sd_bus_message_append(raw, "s", question.sender.c_str());
  sd_bus_slot* slot = nullptr;
  if (r >= 0) r = sd_bus_call_async(bus_, &slot, raw, answered, &question, kSilentTimeoutUsec);
  question.call.reset(slot);
  return r;
}

int Polkit::on_user(sd_bus_message* reply, void* userdata, sd_bus_error* error) {
  return answering(error, [&] {
    auto& question = *static_cast<Question*>(userdata);
    std::uint32_t uid = 0;
    if (const auto* failure = sd_bus_message_get_error(reply)) {
      question.polkit.answer(question, nobody(question.sender, text(failure->message)));
    } else if (sd_bus_message_read(reply, "u", &uid) < 0) {
      question.polkit.answer(question, nobody(question.sender, "its answer is malformed"));
    } else {
      question.polkit.take_user(question, uid);
    }
    return 0;
  });
}

void Polkit::take_user(Question& question, uid_t uid) {
  question.uid = uid;
  if (question.asked.by_user) return answer(question, question.asked.by_user(uid));
  if (question.asked.exempt && ask_bus(question, "GetConnectionUnixProcessID", on_process) >= 0) return;
  (void)go_on(question);
}

int Polkit::on_process(sd_bus_message* reply, void* userdata, sd_bus_error* error) {
  return answering(error, [&] {
    auto& question = *static_cast<Question*>(userdata);
    std::uint32_t pid = 0;
    const bool known =
        sd_bus_message_get_error(reply) == nullptr && sd_bus_message_read(reply, "u", &pid) > 0;
    if (!known || !question.asked.exempt(static_cast<pid_t>(pid), *question.uid)) {
      return question.polkit.go_on(question);
    }
    question.polkit.answer(question, {true, "", {}});
    return 0;
  });
}

// Root needs no permission.
int Polkit::go_on(Question& question) {
  const uid_t uid = *question.uid;
  const auto of_user = with_polkit_.find(uid);
  if (uid == 0) {
    answer(question, {true, "", {}});
  } else if (of_user != with_polkit_.end() && of_user->second >= kMaxPerUser) {
    answer(question, refuse(bus::kLimitsExceeded,
                            fmt::format("{} questions of user {} to polkit wait for an answer already",
                                        of_user->second, uid)));
  } else if (all_with_polkit_ >= kMaxPending) {
    answer(
        question,
        refuse(bus::kLimitsExceeded,
               fmt::format("{} questions to polkit wait for an answer already; try again later, or as root",
                           all_with_polkit_)));
  } else if (const int r = ask_polkit(question); r < 0) {
    const auto why = std::generic_category().message(-r);
    answer(question, polkit_failed("not asked", why.c_str()));
  } else {
    leave(question);
    question.with_polkit = true;
    ++with_polkit_[uid];
    ++all_with_polkit_;
  }
  return 0;
}

// CheckAuthorization(in (sa{sv}) subject, in s action_id, in a{ss} details, in u flags, in s cancellation_id,
// out (bba{ss}) result), as in polkit's reference.
int Polkit::ask_polkit(Question& question) {
  sd_bus_message* raw = nullptr;
  int r = sd_bus_message_new_method_call(bus_, &raw, kPolkitName, kPolkitPath, kPolkitInterface,
                                         "CheckAuthorization");
  const Message message(raw);
  if (r >= 0) {
    r = sd_bus_message_append(raw, "(sa{sv})sa{ss}us", "system-bus-name", 1, "name", "s",
                              question.sender.c_str(), question.asked.action.c_str(), 0,
                              question.interactive ? kAllowUserInteraction : 0U, "");
  }
  sd_bus_slot* slot = nullptr;
  if (r >= 0) {
    r = sd_bus_call_async(bus_, &slot, raw, on_authorization, &question,
                          question.interactive ? kPasswordTimeoutUsec : kSilentTimeoutUsec);
  }
  question.call.reset(slot);
  return r;
}

int Polkit::on_authorization(sd_bus_message* reply, void* userdata, sd_bus_error* error) {
  return answering(error, [&] {
    auto& question = *static_cast<Question*>(userdata);
    int authorized = 0;
    int challenge = 0;
    if (const auto* failure = sd_bus_message_get_error(reply)) {
      question.polkit.answer(question, polkit_failed(text(failure->name), text(failure->message)));
    } else if (sd_bus_message_enter_container(reply, 'r', "bba{ss}") < 0 ||
               sd_bus_message_read(reply, "bb", &authorized, &challenge) < 0) {
      question.polkit.answer(question, polkit_failed(kPolkitName, "its answer is malformed"));
    } else {
      question.polkit.answer(question, judge(question.asked.action, authorized != 0, challenge != 0));
    }
    return 0;
  });
}

// Takes the question off the list first: `done` may end the connection that this object belongs to.
void Polkit::answer(Question& question, const Verdict& verdict) {
  std::list<Question> answered;
  answered.splice(answered.begin(), questions_, question.self);
  leave(answered.front());
  answered.front().done(verdict);
}

}  // namespace berth::daemon
