// SPDX-License-Identifier: Apache-2.0
#include "daemon/notify.h"

#include "model/plain_text.h"
#include "os/clock.h"

#include <fmt/core.h>
#include <systemd/sd-daemon.h>

namespace berth::daemon {

namespace {

// Another line would be another message to systemd.
std::string line_of(const std::string& status) { return model::plain_text(status, model::kMostLineBytes); }

}  // namespace

void Notify::ready(const std::string& status) {
  sd_notify(0, fmt::format("READY=1\nSTATUS={}", line_of(status)).c_str());
  last_status_ = status;
}

void Notify::status(const std::string& status) {
  if (status == last_status_) return;
  sd_notify(0, fmt::format("STATUS={}", line_of(status)).c_str());
  last_status_ = status;
}

void Notify::reloading() {
  // systemd tells this reload's READY=1 from an earlier one by the time stamp.
  sd_notify(0, fmt::format("RELOADING=1\nMONOTONIC_USEC={}", os::monotonic_usec()).c_str());
}

void Notify::stopping() { sd_notify(0, "STOPPING=1\nSTATUS=putting everything back"); }

}  // namespace berth::daemon
