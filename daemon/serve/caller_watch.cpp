// SPDX-License-Identifier: Apache-2.0
#include "daemon/serve/caller_watch.h"

#include <utility>

#include <fmt/core.h>

namespace berth::daemon {

namespace {

constexpr const char* kBusName = "org.freedesktop.DBus";
constexpr const char* kBusPath = "/org/freedesktop/DBus";

}  // namespace

CallerWatch::CallerWatch(sd_bus* bus, std::function<void(const std::string&)> left)
    : bus_(bus), left_(std::move(left)) {}

void CallerWatch::watch(const std::string& name) {
  name_ = name;
  const std::string rule = fmt::format(
      "type='signal',sender='{0}',path='{1}',interface='{0}',member='NameOwnerChanged',arg0='{2}'", kBusName,
      kBusPath, name);
  sd_bus_slot* slot = nullptr;
  check(sd_bus_add_match_async(bus_, &slot, rule.c_str(), on_change, nullptr, this), "cannot watch a caller");
  changes_.reset(slot);
  // The bus takes the match first, so the caller cannot leave unseen between the two.
  check(sd_bus_call_method_async(bus_, &slot, kBusName, kBusPath, kBusName, "NameHasOwner", on_answer, this,
                                 "s", name.c_str()),
        "cannot look for a caller");
  question_.reset(slot);
}

int CallerWatch::on_change(sd_bus_message* signal, void* userdata, sd_bus_error* error) {
  return answering(error, [&] {
    const auto& self = *static_cast<CallerWatch*>(userdata);
    const char* now = nullptr;
    if (sd_bus_message_read(signal, "sss", nullptr, nullptr, &now) >= 0 && *now == '\0')
      self.left_(std::string(self.name_));
    return 0;
  });
}

int CallerWatch::on_answer(sd_bus_message* reply, void* userdata, sd_bus_error* error) {
  return answering(error, [&] {
    const auto& self = *static_cast<CallerWatch*>(userdata);
    int present = 0;
    if (sd_bus_message_is_method_error(reply, nullptr) == 0 &&
        sd_bus_message_read(reply, "b", &present) >= 0 && present == 0)
      self.left_(std::string(self.name_));
    return 0;
  });
}

}  // namespace berth::daemon
