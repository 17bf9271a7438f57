// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/direct_owner.h"
#include "cgroup/hierarchy.h"
#include "cgroup/scope_maker.h"
#include "cgroup/systemd_owner.h"
#include "cgroup/undo_journal.h"
#include "cgroup/unit_stopper.h"
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
  // `own_host`: the tree is this host's, so that its units are changed through this host's systemd. Error
  // where the journal cannot be opened. Without systemd, units are written directly, and systemd() has the
  // reason.
  static model::Result<std::unique_ptr<Actuators>> open(const cgroup::Hierarchy& hierarchy,
                                                        const std::filesystem::path& state_dir,
                                                        const std::filesystem::path& sys_root, bool own_host);

  cgroup::Writer& writer() { return writer_; }
  const cgroup::UndoJournal& journal() const { return *journal_; }
  // nullptr where units are not stopped through systemd, but by signals.
  cgroup::UnitStopper* units() { return systemd_.get(); }
  // nullptr where systemd cannot be asked.
  cgroup::ScopeMaker* scopes() { return systemd_.get(); }
  const model::Capability& systemd() const { return systemd_capability_; }

 private:
  Actuators(const cgroup::Hierarchy& hierarchy, const std::filesystem::path& sys_root,
            std::unique_ptr<cgroup::UndoJournal> journal, std::unique_ptr<cgroup::SystemdOwner> systemd,
            model::Capability systemd_capability);

  std::unique_ptr<cgroup::UndoJournal> journal_;
  cgroup::DirectOwner direct_;
  std::unique_ptr<cgroup::SystemdOwner> systemd_;
  model::Capability systemd_capability_;
  cgroup::Writer writer_;
};

}  // namespace berth::daemon
