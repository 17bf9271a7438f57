// SPDX-License-Identifier: Apache-2.0
#include "cgroup/restore.h"

#include "cgroup/direct_owner.h"
#include "cgroup/host_lock.h"
#include "cgroup/systemd_owner.h"

#include <algorithm>
#include <utility>

namespace berth::cgroup {

namespace {

// Restores the journal's records.
model::Result<RestoreReport> restore_recorded(const RestorePaths& paths) {
  const auto exists = UndoJournal::exists(paths.runtime_dir);
  if (!exists) return model::fail(exists.error());
  if (!*exists) return RestoreReport();
  const auto boot_id = read_boot_id(paths.proc_root);
  if (!boot_id) return model::fail(boot_id.error());
  const auto journal = UndoJournal::open(paths.runtime_dir, *boot_id);
  if (!journal) return model::fail(journal.error());

  const std::vector<UndoRecord> records = (*journal)->records();
  const bool units =
      std::ranges::any_of(records, [](const UndoRecord& record) { return !record.unit.empty(); });
  std::unique_ptr<SystemdOwner> systemd;
  std::vector<std::string> warnings = (*journal)->warnings();
  if (units) {
    SystemdOwner::Options options;
    options.run_dir = paths.systemd_run_dir;
    options.cgroup_root = paths.cgroup_root;
    options.sys_root = paths.sys_root;
    auto connected = SystemdOwner::connect(std::move(options));
    if (connected) {
      systemd = std::move(*connected);
    } else {
      warnings.push_back(connected.error().message());
    }
  }
  DirectOwner direct(paths.cgroup_root, paths.sys_root);
  Writer writer(paths.cgroup_root, **journal, direct, systemd.get());
  RestoreReport report = writer.restore_all();
  InterruptWriter interrupts(**journal, os::interrupts_directory(paths.proc_root, paths.runtime_dir),
                             paths.irqbalance_dir, paths.sys_root);
  interrupts.be_patient();
  report.interrupts = interrupts.restore_all();
  report.warnings.insert(report.warnings.begin(), warnings.begin(), warnings.end());
  return report;
}

}  // namespace

model::Result<RestoreReport> restore_host(const RestorePaths& paths) {
  const auto lock = lock_host(paths.cgroup_root, paths.runtime_dir);
  if (!lock && lock.error().kind() == model::ErrorKind::refused) return model::fail(lock.error());
  auto report = restore_recorded(paths);
  if (!report && report.error().kind() == model::ErrorKind::refused) return report;
  // Leaves are known by their names, so they are put back after the limits, whatever became of those.
  auto leaves = put_back_leaves(paths.cgroup_root, kernel_hands(paths.proc_root));
  if (report) report->leaves = std::move(leaves);
  if (report && !lock) report->warnings.push_back(lock.error().message());
  return report;
}

}  // namespace berth::cgroup
