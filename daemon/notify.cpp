// SPDX-License-Identifier: Apache-2.0
#include "daemon/notify.h"

#include "model/plain_text.h"
#include "os/clock.h"
#include "os/outbox.h"

#include <utility>

#include <fmt/core.h>
#include <systemd/sd-daemon.h>

namespace berth::daemon {

namespace {

// Another line would be another message to systemd.
std::string line_of(const std::string& status) { return model::plain_text(status, model::kMostLineBytes); }

// By way of an outbox, so that a systemd that hangs keeps no tick waiting.
void send(std::string state) {
  const std::size_t bytes = state.size();
  os::systemd_outbox().post(bytes, [state = std::move(state)] { (void)sd_notify(0, state.c_str()); });
}

}  // namespace

void Notify::ready(const std::string& status) {
  send(fmt::format("READY=1\nSTATUS={}", line_of(status)));
  last_status_ = status;
}

void Notify::status(const std::string& status) {
  if (status == last_status_) return;
  send(fmt::format("STATUS={}", line_of(status)));
  last_status_ = status;
}

void Notify::reloading() {
  // systemd tells this reload's READY=1 from an earlier one by the time stamp.
  send(fmt::format("RELOADING=1\nMONOTONIC_USEC={}", os::monotonic_usec()));
}

void Notify::stopping() { send("STOPPING=1\nSTATUS=putting everything back"); }

void Notify::alive() { send("WATCHDOG=1"); }

}  // namespace berth::daemon
