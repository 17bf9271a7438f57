// SPDX-License-Identifier: Apache-2.0
#include "cgroup/mounted_controllers.h"

#include "os/log.h"

#include <array>
#include <cstdarg>
#include <cstdio>
#include <string_view>

#include <fmt/core.h>
#include <libcgroup.h>

namespace berth::cgroup {

namespace {

// libcgroup's own logger writes to standard output.
void take_message(void*, int, const char* format, va_list arguments) {
  std::array<char, 512> text{};
  if (std::vsnprintf(text.data(), text.size(), format, arguments) < 0) return;
  std::string_view line(text.data());
  if (line.ends_with('\n')) line.remove_suffix(1);
  os::log_warning("libcgroup: {}", line);
}

tl::unexpected<model::Error> failed(const char* what, int code) {
  return model::fail(model::ErrorKind::unavailable,
                     fmt::format("libcgroup: {}: {}", what, cgroup_strerror(code)));
}

}  // namespace

model::Result<std::map<std::string, std::string>> mounted_controllers() {
  cgroup_set_logger(take_message, CGROUP_LOG_WARNING, nullptr);
  std::map<std::string, std::string> found;
  const int initialised = cgroup_init();
  if (initialised == ECGROUPNOTMOUNTED) return found;
  if (initialised != 0) return failed("reading the mounted controllers", initialised);
  void* handle = nullptr;
  cgroup_mount_point mount{};
  int code = cgroup_get_controller_begin(&handle, &mount);
  for (; code == 0; code = cgroup_get_controller_next(&handle, &mount)) {
    const std::string_view name(&mount.name[0]);
    // A v1 hierarchy without a controller is listed by its name.
    if (!name.starts_with("name=")) found.emplace(name, &mount.path[0]);
  }
  cgroup_get_controller_end(&handle);
  if (code != ECGEOF) return failed("listing the mounted controllers", code);
  return found;
}

}  // namespace berth::cgroup
