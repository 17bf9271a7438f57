// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bus/compat.h"

#include <functional>
#include <memory>
#include <string>

#include <systemd/sd-event.h>

namespace berth::daemon {

// Serves one bus connection from an sd-event loop, on its thread. What to wait for is asked anew before every
// wait, so neither messages that a blocking call left in the queue nor unsent ones are forgotten, and an idle
// bus costs nothing.
class BusLoop {
 public:
  // `lost` is told why, once, when the connection has ended. It must not destroy this object or the
  // connection, which outlives this object. Throws sdbus::Error where the sources cannot be added.
  BusLoop(sd_event* event, sdbus::IConnection& connection, std::function<void(const std::string&)> lost);

 private:
  struct Unref {
    void operator()(sd_event_source* source) const { sd_event_source_disable_unref(source); }
  };
  using Source = std::unique_ptr<sd_event_source, Unref>;

  static int on_prepare(sd_event_source* source, void* userdata);
  static int on_io(sd_event_source* source, int fd, std::uint32_t revents, void* userdata);
  static int on_time(sd_event_source* source, std::uint64_t usec, void* userdata);
  void prepare();
  void process();
  void lose(const std::string& why);

  sdbus::IConnection& connection_;
  std::function<void(const std::string&)> lost_;
  bool ended_ = false;
  Source io_;
  Source timer_;
};

}  // namespace berth::daemon
