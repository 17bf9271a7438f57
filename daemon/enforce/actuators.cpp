// SPDX-License-Identifier: Apache-2.0
#include "daemon/enforce/actuators.h"

#include <chrono>
#include <utility>

#include <fmt/core.h>

namespace berth::daemon {

namespace {

// How long the event loop waits for an answer of systemd. Most come within a millisecond.
constexpr std::chrono::milliseconds kPatience{1000};

std::string reason_of(Actuators::Units units) {
  constexpr const char* kDirectly =
      "berth writes the control files of units directly, and systemd may undo that";
  switch (units) {
    case Actuators::Units::through_systemd:
      return "";
    case Actuators::Units::directly_without_systemd:
      return fmt::format("it does not run this host; {}", kDirectly);
    case Actuators::Units::directly_in_other_tree:
      break;
  }
  return fmt::format("not used, because the cgroup tree is not this host's own; {}", kDirectly);
}

}  // namespace

Actuators::Actuators(const cgroup::Hierarchy& hierarchy, const std::filesystem::path& runtime_dir,
                     const std::filesystem::path& sys_root, std::unique_ptr<cgroup::UndoJournal> journal,
                     std::unique_ptr<cgroup::SystemdOwner> systemd, Units units)
    : journal_(std::move(journal)),
      direct_(hierarchy.root, sys_root),
      systemd_(std::move(systemd)),
      systemd_capability_{"systemd", false, reason_of(units)},
      writer_(hierarchy.root, *journal_, direct_, systemd_.get()),
      // irqbalance is this host's.
      interrupts_(*journal_, os::interrupts_directory(hierarchy.proc_root, runtime_dir),
                  units == Units::directly_in_other_tree ? "" : os::Irqbalance::kDirectory, sys_root) {
  greet_systemd();
}

model::Result<std::unique_ptr<Actuators>> Actuators::open(const cgroup::Hierarchy& hierarchy,
                                                          const std::filesystem::path& runtime_dir,
                                                          const std::filesystem::path& sys_root,
                                                          Units units) {
  const auto boot_id = cgroup::read_boot_id(hierarchy.proc_root);
  if (!boot_id) return model::fail(boot_id.error());
  auto journal = cgroup::UndoJournal::open(runtime_dir, *boot_id);
  if (!journal) return model::fail(journal.error());

  std::unique_ptr<cgroup::SystemdOwner> systemd;
  if (units == Units::through_systemd) {
    cgroup::SystemdOwner::Options options;
    options.cgroup_root = hierarchy.root;
    options.sys_root = sys_root;
    options.patience = kPatience;
    systemd = std::make_unique<cgroup::SystemdOwner>(std::move(options));
  }
  return std::unique_ptr<Actuators>(
      new Actuators(hierarchy, runtime_dir, sys_root, std::move(*journal), std::move(systemd), units));
}

void Actuators::greet_systemd() {
  if (!systemd_ || systemd_capability_.available) return;
  const auto answer = systemd_->greet();
  systemd_capability_.available = answer.has_value();
  systemd_capability_.detail =
      answer ? "berth changes units through systemd, at run time only"
             : answer.error().message() + "; until it answers, berth changes no unit, and stops none";
}

void Actuators::be_patient() {
  if (systemd_) systemd_->be_patient();
  interrupts_.be_patient();
}

}  // namespace berth::daemon
