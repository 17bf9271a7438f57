// SPDX-License-Identifier: Apache-2.0
#include "daemon/polkit.h"

#include "bus/names.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace berth::daemon {

namespace {

constexpr const char* kBusName = "org.freedesktop.DBus";
constexpr const char* kBusPath = "/org/freedesktop/DBus";
constexpr const char* kPolkitName = "org.freedesktop.PolicyKit1";
constexpr const char* kPolkitPath = "/org/freedesktop/PolicyKit1/Authority";
constexpr const char* kPolkitInterface = "org.freedesktop.PolicyKit1.Authority";

constexpr std::uint32_t kAllowUserInteraction = 1;
constexpr std::chrono::seconds kSilentTimeout{10};
constexpr std::chrono::seconds kPasswordTimeout{120};  // somebody types

Verdict refuse(const char* error_name, std::string message) {
  return {false, error_name, std::move(message)};
}

Verdict polkit_failed(const sdbus::Error& error) {
  return refuse(
      bus::kAccessDenied,
      fmt::format(
          "only root may change anything here: polkit, which could let others, did not answer ({}: {})",
          std::string(error.getName()), error.getMessage()));
}

Verdict judge(const std::string& action, bool authorized, bool challenge) {
  if (authorized) return {true, "", {}};
  if (challenge) {
    return refuse(bus::kInteractionRequired,
                  fmt::format("polkit wants a password for {}: allow interaction, or act as root", action));
  }
  return refuse(bus::kAccessDenied, fmt::format("polkit does not grant you {}", action));
}

}  // namespace

struct Polkit::Question {
  bus::Caller caller;
  std::string action;
  std::function<void(Verdict)> done;
};

namespace {

template <typename Question>
Verdict nobody(const Question& question, const sdbus::Error& error) {
  return refuse(bus::kAccessDenied, fmt::format("the bus does not know who {} is: {}", question.caller.sender,
                                                error.getMessage()));
}

}  // namespace

Polkit::Polkit(sdbus::IConnection& connection)
    : bus_(sdbus::createProxy(connection, bus::ServiceName{kBusName}, sdbus::ObjectPath{kBusPath})),
      authority_(
          sdbus::createProxy(connection, bus::ServiceName{kPolkitName}, sdbus::ObjectPath{kPolkitPath})) {}

Polkit::~Polkit() = default;

void Polkit::check(const bus::Caller& caller, const std::string& action, std::function<void(Verdict)> done) {
  if (pending_ >= kMaxPending) {
    done(refuse(bus::kLimitsExceeded, fmt::format("{} questions to polkit are open already", pending_)));
    return;
  }
  auto question = std::make_shared<Question>(Question{caller, action, std::move(done)});
  ++pending_;
  try {
    // The bus knows the sender's uid for certain; what the sender says of itself does not count.
    bus_->callMethodAsync("GetConnectionUnixUser")
        .onInterface(kBusName)
        .withTimeout(kSilentTimeout)
        .withArguments(caller.sender)
        .uponReplyInvoke([this, question](bus::ReplyError error, std::uint32_t uid) {
          if (error) {
            answer(question, nobody(*question, *error));
          } else if (uid == 0) {
            answer(question, {true, "", {}});
          } else {
            ask_polkit(question);
          }
        });
  } catch (const sdbus::Error& error) {
    answer(question, nobody(*question, error));
  }
}

void Polkit::ask_polkit(const std::shared_ptr<Question>& question) {
  using Details = std::map<std::string, std::string>;
  using Subject = sdbus::Struct<std::string, std::map<std::string, sdbus::Variant>>;
  using Answer = sdbus::Struct<bool, bool, Details>;

  const bool interactive = question->caller.interactive;
  const Subject subject{
      std::string("system-bus-name"),
      std::map<std::string, sdbus::Variant>{{"name", sdbus::Variant{question->caller.sender}}}};
  try {
    authority_->callMethodAsync("CheckAuthorization")
        .onInterface(kPolkitInterface)
        .withTimeout(interactive ? kPasswordTimeout : kSilentTimeout)
        .withArguments(subject, question->action, Details{}, interactive ? kAllowUserInteraction : 0U,
                       std::string())
        .uponReplyInvoke([this, question](bus::ReplyError error, const Answer& reply) {
          answer(question,
                 error ? polkit_failed(*error) : judge(question->action, reply.get<0>(), reply.get<1>()));
        });
  } catch (const sdbus::Error& error) {
    answer(question, polkit_failed(error));
  }
}

void Polkit::answer(const std::shared_ptr<Question>& question, Verdict verdict) {
  --pending_;
  question->done(std::move(verdict));
}

}  // namespace berth::daemon
