// SPDX-License-Identifier: Apache-2.0
#include "daemon/serve/bus_service_log_control.h"

#include "os/log.h"

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

namespace berth::daemon {

namespace {

// The syslog names of org.freedesktop.LogControl1 and the daemon's own. Several map to one; reading back
// gives the first of these.
constexpr std::array<std::pair<const char*, const char*>, 9> kLevels{{{"debug", "debug"},
                                                                      {"debug", "trace"},
                                                                      {"info", "info"},
                                                                      {"notice", "info"},
                                                                      {"warning", "warning"},
                                                                      {"err", "error"},
                                                                      {"crit", "critical"},
                                                                      {"alert", "critical"},
                                                                      {"emerg", "critical"}}};

Control& control(void* userdata) { return *static_cast<Control*>(userdata); }

std::string target() { return os::stderr_is_journal() ? "journal" : "console"; }

int get_level(sd_bus*, const char*, const char*, const char*, sd_bus_message* reply, void* userdata,
              sd_bus_error* error) {
  return answering(error, [&] {
    const std::string level = control(userdata).log_level();
    for (const auto& [syslog, own] : kLevels) {
      if (level == own) return append(reply, std::string(syslog));
    }
    return append(reply, level);
  });
}

int set_level(sd_bus*, const char*, const char*, const char*, sd_bus_message* value, void* userdata,
              sd_bus_error* error) {
  return answering(error, [&] {
    const char* level = nullptr;
    if (const int r = sd_bus_message_read(value, "s", &level); r < 0) return r;
    for (const auto& [syslog, own] : kLevels) {
      if (std::string_view(level) != syslog) continue;
      const auto set = control(userdata).set_log_level(own);
      return set ? 0 : sd_bus_error_set(error, error_name(set.error()), set.error().message().c_str());
    }
    return sd_bus_error_setf(error, bus::kInvalidInput,
                             "there is no log level \"%s\"; there are emerg, alert, crit, err, warning, "
                             "notice, info and debug",
                             bus_text(level).c_str());
  });
}

int get_target(sd_bus*, const char*, const char*, const char*, sd_bus_message* reply, void*,
               sd_bus_error* error) {
  return answering(error, [&] { return append(reply, target()); });
}

int set_target(sd_bus*, const char*, const char*, const char*, sd_bus_message* value, void*,
               sd_bus_error* error) {
  return answering(error, [&] {
    const char* wanted = nullptr;
    if (const int r = sd_bus_message_read(value, "s", &wanted); r < 0) return r;
    const std::string now = target();
    if (wanted == now || std::string_view(wanted) == "auto") return 0;
    return sd_bus_error_set(
        error, SD_BUS_ERROR_NOT_SUPPORTED,
        fmt::format("the log goes to {} and cannot be sent elsewhere while berthd runs", now).c_str());
  });
}

int get_identifier(sd_bus*, const char*, const char*, const char*, sd_bus_message* reply, void*,
                   sd_bus_error*) {
  return sd_bus_message_append(reply, "s", "berthd");
}

// As in bus/org.freedesktop.LogControl1.xml; a test compares the two.
const sd_bus_vtable kTable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_WRITABLE_PROPERTY("LogLevel", "s", get_level, set_level, 0, 0),
    SD_BUS_WRITABLE_PROPERTY("LogTarget", "s", get_target, set_target, 0, 0),
    SD_BUS_PROPERTY("SyslogIdentifier", "s", get_identifier, 0, 0),
    SD_BUS_VTABLE_END,
};

}  // namespace

LogControlObject::LogControlObject(sd_bus* bus, Control& control) {
  sd_bus_slot* slot = nullptr;
  check(sd_bus_add_object_vtable(bus, &slot, bus::kLogControlPath, "org.freedesktop.LogControl1", kTable,
                                 &control),
        "cannot serve the log level");
  interface_.reset(slot);
}

}  // namespace berth::daemon
