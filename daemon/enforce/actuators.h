// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/direct_owner.h"
#include "cgroup/hierarchy.h"
#include "cgroup/interrupt_writer.h"
#include "cgroup/scope_maker.h"
#include "cgroup/systemd_owner.h"
#include "cgroup/undo_journal.h"
#include "cgroup/writer.h"
#include "model/capability.h"
#include "model/error.h"

#include <filesystem>
#include <memory>
#include <string>

namespace berth::daemon {

// Everything needed to change cgroups and to take the changes back, opened together: berth writes nothing
// without its journal.
class Actuators {
 public:
  // How units are changed. Only systemd changes the units that it runs on this host.
  enum class Units { through_systemd, directly_without_systemd, directly_in_other_tree };

  // Error where the journal cannot be opened. systemd need not answer yet.
  static model::Result<std::unique_ptr<Actuators>> open(const cgroup::Hierarchy& hierarchy,
                                                        const std::filesystem::path& runtime_dir,
                                                        const std::filesystem::path& sys_root, Units units);

  cgroup::Writer& writer() { return writer_; }
  cgroup::InterruptWriter& interrupts() { return interrupts_; }
  const cgroup::UndoJournal& journal() const { return *journal_; }
  // nullptr where units are not stopped through systemd, but by signals.
  cgroup::UnitStopper* units() { return systemd_.get(); }
  // nullptr where there is no systemd.
  cgroup::ScopeMaker* scopes() { return systemd_.get(); }
  // Whether systemd answered when it was last greeted.
  const model::Capability& systemd() const { return systemd_capability_; }
  // Greets systemd again, if it did not answer the last time.
  void greet_systemd();
  // From now on each change waits for systemd's answer.
  void be_patient();

 private:
  Actuators(const cgroup::Hierarchy& hierarchy, const std::filesystem::path& runtime_dir,
            const std::filesystem::path& sys_root, std::unique_ptr<cgroup::UndoJournal> journal,
            std::unique_ptr<cgroup::SystemdOwner> systemd, Units units);

  std::unique_ptr<cgroup::UndoJournal> journal_;
  cgroup::DirectOwner direct_;
  std::unique_ptr<cgroup::SystemdOwner> systemd_;
  model::Capability systemd_capability_;
  cgroup::Writer writer_;
  cgroup::InterruptWriter interrupts_;
};

}  // namespace berth::daemon
