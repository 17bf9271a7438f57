// SPDX-License-Identifier: Apache-2.0
#include "daemon/serve/bus_service_trial.h"

#include "config/trial_settings.h"
#include "daemon/serve/bus_service_manager.h"

#include <cstring>
#include <memory>

#include <fmt/core.h>

namespace berth::daemon {

namespace {

ManagerObject& manager(void* userdata) { return *static_cast<ManagerObject*>(userdata); }

int refuse(sd_bus_message* call, const char* name, const std::string& message) {
  return sd_bus_reply_method_errorf(call, name, "%s", bus_text(message).c_str());
}

int answer(sd_bus_message* call, const model::Result<void>& done) {
  if (done) return sd_bus_reply_method_return(call, "");
  return refuse(call, error_name(done.error()), done.error().message());
}

std::string sender_of(sd_bus_message* call) {
  const char* sender = sd_bus_message_get_sender(call);
  return sender == nullptr ? "" : sender;
}

std::uint64_t next_number() {
  static std::uint64_t number = 0;
  return ++number;
}

}  // namespace

TrialCallers::TrialCallers(sd_bus* bus, Control& control)
    : number_(next_number()),
      watch_(bus, [this, &control](const std::string& name) { control.caller_left(key_of(name)); }) {}

std::string TrialCallers::key_of(const std::string& name) const {
  return fmt::format("{}/{}", number_, name);
}

int begin_trial(sd_bus_message* call, void* userdata, sd_bus_error* error) {
  return answering(error, [&] {
    const char* a = nullptr;
    const char* b = nullptr;
    if (const int r = sd_bus_message_read(call, "ss", &a, &b); r < 0) return r;
    const std::size_t bytes = std::strlen(a) + std::strlen(b);
    // Kept until polkit has answered, and read only then.
    if (std::strlen(a) > config::kMaxTrialBytes || std::strlen(b) > config::kMaxTrialBytes) {
      return refuse(call, bus::kInvalidInput,
                    fmt::format("the settings of a side are longer than {} bytes", config::kMaxTrialBytes));
    }
    auto& self = manager(userdata);
    const std::string name = sender_of(call);
    const auto caller = std::make_shared<TrialCaller>();
    caller->key = self.trial_callers().key_of(name);
    const auto note = [caller](pid_t pid, uid_t uid) {
      caller->pid = pid;
      caller->uid = uid;
      return false;  // permission is asked for all the same
    };
    return self.asked(call,
                      [&self, caller, name, first = std::string(a), second = std::string(b)] {
                        auto begun = self.control().begin_trial(*caller, first, second);
                        if (begun) self.trial_callers().watch(name);
                        return begun;
                      },
                      {.action = bus::kManageAction, .exempt = note, .by_user = {}, .bytes = bytes});
  });
}

int use_trial_side(sd_bus_message* call, void* userdata, sd_bus_error* error) {
  return answering(error, [&] {
    const char* side = nullptr;
    std::uint64_t lease_usec = 0;
    if (const int r = sd_bus_message_read(call, "st", &side, &lease_usec); r < 0) return r;
    auto& self = manager(userdata);
    return answer(call, self.control().use_trial_side(self.trial_callers().key_of(sender_of(call)), side,
                                                      static_cast<double>(lease_usec) / 1e6));
  });
}

int end_trial(sd_bus_message* call, void* userdata, sd_bus_error* error) {
  return answering(error, [&] {
    int keep = 0;
    if (const int r = sd_bus_message_read(call, "b", &keep); r < 0) return r;
    auto& self = manager(userdata);
    return answer(call, self.control().end_trial(self.trial_callers().key_of(sender_of(call)), keep != 0));
  });
}

}  // namespace berth::daemon
