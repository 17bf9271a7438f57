// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/hierarchy.h"
#include "config/config.h"
#include "daemon/options.h"
#include "model/error.h"
#include "os/clock.h"

#include <memory>
#include <optional>
#include <string>

namespace berth::daemon {

// The host that berthd works on, and the configuration that it works by. Only a reload changes it.
struct Setup {
  Options options;
  os::Clock clock;
  config::Settings settings;
  cgroup::Hierarchy hierarchy;
  std::string boot_id;        // empty: it cannot be read, and nothing is of this boot for certain
  bool own_host = false;      // the hierarchy is that of the running kernel
  bool systemd_runs = false;  // systemd runs the host of the hierarchy
  // Epoch seconds of berthd's clock.
  double started = 0;
  double loaded = 0;                        // when the settings were read
  std::optional<std::string> reload_error;  // of the last reload; the settings are older then
};

// Error where there is no cgroup v2 tree.
model::Result<std::unique_ptr<Setup>> find_setup(const Options& options, config::Settings settings,
                                                 os::Clock clock);

}  // namespace berth::daemon
