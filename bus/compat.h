// SPDX-License-Identifier: Apache-2.0
// Every difference between sdbus-c++ 1.2 and 2.x that matters to callers of berthd, and to its tests.
// BERTH_SDBUS_MAJOR comes from the build.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <sdbus-c++/sdbus-c++.h>
#include <systemd/sd-bus.h>

namespace berth::bus {

#if BERTH_SDBUS_MAJOR >= 2
using ServiceName = sdbus::ServiceName;
using PropertyName = sdbus::PropertyName;
using InterfaceName = sdbus::InterfaceName;
using MethodName = sdbus::MethodName;
using ErrorName = sdbus::Error::Name;
// The error argument of a reply handler: true and dereferenceable where the call failed.
using ReplyError = std::optional<sdbus::Error>;
#else
using ServiceName = std::string;
using PropertyName = std::string;
using InterfaceName = std::string;
using MethodName = std::string;
using ErrorName = std::string;
using ReplyError = const sdbus::Error*;
#endif

// The condition to wait for before the next process_one; `timeout_usec` on CLOCK_MONOTONIC, UINT64_MAX for
// never.
struct PollData {
  int fd = -1;
  short events = 0;
  std::uint64_t timeout_usec = UINT64_MAX;
};

inline PollData poll_data(const sdbus::IConnection& connection) {
  const auto data = connection.getEventLoopPollData();
#if BERTH_SDBUS_MAJOR >= 2
  const bool never = data.timeout == std::chrono::microseconds::max();
  return {data.fd, data.events, never ? UINT64_MAX : static_cast<std::uint64_t>(data.timeout.count())};
#else
  return {data.fd, data.events, data.timeout_usec};
#endif
}

// Handles one message; false where there was none.
inline bool process_one(sdbus::IConnection& connection) {
#if BERTH_SDBUS_MAJOR >= 2
  return connection.processPendingEvent();
#else
  return connection.processPendingRequest();
#endif
}

// Call it after the last uponSignal() of a proxy that is not generated.
inline void finish_registration([[maybe_unused]] sdbus::IProxy& proxy) {
#if BERTH_SDBUS_MAJOR < 2
  proxy.finishRegistration();
#endif
}

// sdbus-c++ has no access to the interactive-authorisation flag, nor to the message below it. Subclasses
// have.
struct RawMessage : sdbus::Message {
  static sd_bus_message* of(const sdbus::Message& message) {
    return static_cast<sd_bus_message*>(message.*(&RawMessage::msg_));
  }
};

inline void allow_interaction(sdbus::Message& message) {
  sd_bus_message_set_allow_interactive_authorization(RawMessage::of(message), 1);
}

}  // namespace berth::bus
