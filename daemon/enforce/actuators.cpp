// SPDX-License-Identifier: Apache-2.0
#include "daemon/enforce/actuators.h"

#include <utility>

namespace berth::daemon {

namespace {

constexpr const char* kWithoutSystemd =
    "berth writes the control files of units directly, and systemd may undo that";

}  // namespace

Actuators::Actuators(const cgroup::Hierarchy& hierarchy, const std::filesystem::path& sys_root,
                     std::unique_ptr<cgroup::UndoJournal> journal,
                     std::unique_ptr<cgroup::SystemdOwner> systemd, model::Capability systemd_capability)
    : journal_(std::move(journal)),
      direct_(hierarchy.root, sys_root),
      systemd_(std::move(systemd)),
      systemd_capability_(std::move(systemd_capability)),
      writer_(hierarchy.root, *journal_, direct_, systemd_.get()) {}

model::Result<std::unique_ptr<Actuators>> Actuators::open(const cgroup::Hierarchy& hierarchy,
                                                          const std::filesystem::path& state_dir,
                                                          const std::filesystem::path& sys_root,
                                                          bool own_host) {
  const auto boot_id = cgroup::read_boot_id(hierarchy.proc_root);
  if (!boot_id) return model::fail(boot_id.error());
  auto journal = cgroup::UndoJournal::open(state_dir, *boot_id);
  if (!journal) return model::fail(journal.error());

  model::Capability capability{"systemd", false, ""};
  std::unique_ptr<cgroup::SystemdOwner> systemd;
  if (!own_host) {
    capability.detail =
        std::string("not used, because the cgroup tree is not this host's own; ") + kWithoutSystemd;
  } else {
    cgroup::SystemdOwner::Options options;
    options.cgroup_root = hierarchy.root;
    options.sys_root = sys_root;
    auto connected = cgroup::SystemdOwner::connect(options);
    if (connected) {
      systemd = std::move(*connected);
      capability.available = true;
      capability.detail = "berth changes units through systemd, at run time only";
    } else {
      capability.detail = connected.error().message() + "; " + kWithoutSystemd;
    }
  }
  return std::unique_ptr<Actuators>(
      new Actuators(hierarchy, sys_root, std::move(*journal), std::move(systemd), std::move(capability)));
}

}  // namespace berth::daemon
