// SPDX-License-Identifier: Apache-2.0
// Common parts of BusService's objects: owned handles of sd-bus, values into messages, and a wrapper that
// lets no exception into C.
#pragma once

#include "bus/names.h"
#include "model/error.h"
#include "model/name.h"
#include "model/plain_text.h"

#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <systemd/sd-bus.h>

namespace berth::daemon {

struct SlotUnref {
  void operator()(sd_bus_slot* slot) const { sd_bus_slot_unref(slot); }
};
// A registration with a bus; it ends with this.
using Slot = std::unique_ptr<sd_bus_slot, SlotUnref>;

struct MessageUnref {
  void operator()(sd_bus_message* message) const { sd_bus_message_unref(message); }
};
using Message = std::unique_ptr<sd_bus_message, MessageUnref>;

// Throws std::system_error, which BusService turns into a lost bus, for the negative errno of sd-bus.
inline void check(int result, const char* what) {
  if (result < 0) throw std::system_error(-result, std::generic_category(), what);
}

// Runs a callback of sd-bus; an exception becomes the error that sd-bus answers with.
template <typename Act>
int answering(sd_bus_error* error, Act act) noexcept {
  try {
    return act();
  } catch (const std::exception& exception) {
    return sd_bus_error_set(error, bus::kFailed, exception.what());
  }
}

// The D-Bus error name for an error.
inline const char* error_name(const model::Error& error) {
  switch (error.kind()) {
    case model::ErrorKind::invalid_input:
      return bus::kInvalidInput;
    case model::ErrorKind::gone:
      return bus::kNotFound;
    case model::ErrorKind::refused:
      return bus::kRefused;
    case model::ErrorKind::io:
    case model::ErrorKind::transient:
    case model::ErrorKind::permission:
    case model::ErrorKind::unavailable:
      break;
  }
  return bus::kFailed;
}

// Returns `text` as the bus takes it. sd-bus refuses a string that is not UTF-8 or has a noncharacter, and
// the whole message with it. Names stay as they are. Other text has kMostFieldBytes at most.
inline std::string bus_text(const std::string& text) {
  return model::is_name(text) ? text : model::plain_text(text, model::kMostFieldBytes);
}

// One value as the interface shows it; an unknown one is NaN, or the largest number.
inline int append(sd_bus_message* message, const std::string& value) {
  return sd_bus_message_append(message, "s", bus_text(value).c_str());
}
inline int append(sd_bus_message* message, bool value) {
  return sd_bus_message_append(message, "b", static_cast<int>(value));
}
inline int append(sd_bus_message* message, std::uint32_t value) {
  return sd_bus_message_append(message, "u", value);
}
inline int append(sd_bus_message* message, const std::optional<double>& value) {
  return sd_bus_message_append(message, "d", value.value_or(std::numeric_limits<double>::quiet_NaN()));
}
inline int append(sd_bus_message* message, const std::optional<std::uint64_t>& value) {
  return sd_bus_message_append(message, "t", value.value_or(std::numeric_limits<std::uint64_t>::max()));
}

// PropertiesChanged with the named properties' values; nothing where none is named.
inline void emit_changes(sd_bus* bus, const std::string& path, const char* interface,
                         std::vector<std::string> names) {
  if (names.empty()) return;
  std::vector<char*> list;
  list.reserve(names.size() + 1);
  for (std::string& name : names) list.push_back(name.data());
  list.push_back(nullptr);
  check(sd_bus_emit_properties_changed_strv(bus, path.c_str(), interface, list.data()), "PropertiesChanged");
}

}  // namespace berth::daemon
