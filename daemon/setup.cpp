// SPDX-License-Identifier: Apache-2.0
#include "daemon/setup.h"

#include "cgroup/undo_journal.h"

#include <filesystem>
#include <system_error>
#include <utility>

namespace berth::daemon {

namespace {

bool is_own_host(const cgroup::Hierarchy& hierarchy) {
  const auto own = cgroup::find_hierarchy({}, "/proc");
  std::error_code ignored;
  return own && std::filesystem::equivalent(own->root, hierarchy.root, ignored);
}

// sd_booted(3) without its library call: the test that it documents.
bool runs_systemd() {
  std::error_code ignored;
  return std::filesystem::is_directory("/run/systemd/system", ignored);
}

}  // namespace

model::Result<std::unique_ptr<Setup>> find_setup(const Options& options, config::Settings settings,
                                                 os::Clock clock) {
  auto hierarchy = cgroup::find_hierarchy(options.cgroup_root, options.proc_root);
  if (!hierarchy) return model::fail(hierarchy.error());
  hierarchy->clock = clock;
  const bool own_host = is_own_host(*hierarchy);
  const double now = clock.now();
  return std::make_unique<Setup>(Setup{.options = options,
                                       .clock = std::move(clock),
                                       .settings = std::move(settings),
                                       .hierarchy = std::move(*hierarchy),
                                       .boot_id = cgroup::read_boot_id(options.proc_root).value_or(""),
                                       .own_host = own_host,
                                       .systemd_runs = own_host && runs_systemd(),
                                       .started = now,
                                       .loaded = now,
                                       .reload_error = std::nullopt});
}

}  // namespace berth::daemon
