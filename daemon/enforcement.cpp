// SPDX-License-Identifier: Apache-2.0
// The mode: how enforcing begins and ends, and how everything is put back.
#include "daemon/enforcement.h"

#include "daemon/ledger/action_log.h"
#include "os/clock.h"
#include "os/log.h"

#include <utility>

#include <fmt/core.h>

namespace berth::daemon {

using model::ErrorKind;

namespace {

Actuators::Units units_of(const Setup& setup) {
  if (!setup.own_host) return Actuators::Units::directly_in_other_tree;
  return setup.systemd_runs ? Actuators::Units::through_systemd : Actuators::Units::directly_without_systemd;
}

}  // namespace

Enforcement::Enforcement(const Setup& setup, Senses& senses, std::optional<cgroup::HostLock> host_lock,
                         Publish publish)
    : setup_(setup),
      senses_(senses),
      observer_(senses.observer()),
      publish_(std::move(publish)),
      host_lock_(std::move(host_lock)),
      evictor_({.proc_root = setup.options.proc_root,
                .units = [this] { return actuators_ ? actuators_->units() : nullptr; },
                .systemd_runs = setup.systemd_runs,
                .monotonic = [clock = setup.clock] { return clock.monotonic(); }}),
      leaves_({.cgroup_root = setup.hierarchy.root,
               .proc_root = setup.options.proc_root,
               .scopes = [this] { return actuators_ ? actuators_->scopes() : nullptr; },
               .systemd_runs = setup.systemd_runs,
               .monotonic = [clock = setup.clock] { return clock.monotonic(); },
               .hands = cgroup::kernel_hands(setup.options.proc_root)}) {}

model::Result<void> Enforcement::take_host_lock() {
  if (host_lock_) return {};
  auto lock = cgroup::lock_host(setup_.hierarchy.root, setup_.options.runtime_dir);
  if (!lock) return model::fail(lock.error());
  host_lock_ = std::move(*lock);
  return {};
}

model::Result<void> Enforcement::open() {
  if (actuators_) return {};
  const auto locked = take_host_lock();
  auto actuators = locked ? Actuators::open(setup_.hierarchy, setup_.options.runtime_dir,
                                            setup_.options.sys_root, units_of(setup_))
                          : model::fail(locked.error());
  if (!actuators) {
    journal_problem_ = actuators.error().message();
    return model::fail(actuators.error());
  }
  journal_problem_.reset();
  actuators_ = std::move(*actuators);
  put_back_left_behind();
  return {};
}

void Enforcement::put_back_left_behind() {
  constexpr const char* kReason = "left behind by an earlier berthd";
  const auto& journal = actuators_->journal();
  for (const auto& warning : journal.warnings()) os::log_warning("undo journal: {}", warning);
  if (const std::size_t left = journal.to_put_back(); left > 0)
    os::log_warning("an earlier berthd ended without restoring everything: {} attributes to restore", left);
  if (journal.size() > 0)
    publish_(entries_of(restore_all(kRestoreBudget), setup_.clock.now(), mode(), kReason));
  put_back_leaves(kReason);
}

std::optional<std::string> Enforcement::problem() const {
  if (!actuators_) return "there is no undo journal: " + journal_problem_.value_or("not opened");
  if (setup_.hierarchy.controllers.count("cpuset") == 0) {
    return fmt::format("{} has no cpuset controller, so nothing can be pinned",
                       setup_.hierarchy.root.string());
  }
  return std::nullopt;
}

model::Result<void> Enforcement::begin() {
  if (auto opened = open(); !opened)
    return model::fail(ErrorKind::unavailable, "there is no undo journal: " + opened.error().message());
  if (const auto why_not = problem()) return model::fail(ErrorKind::unavailable, *why_not);
  enforcer_.emplace(actuators_->writer(), [this](const std::string& id) { observer_.read_again(id); });
  enforcer_->take_over(actuators_->journal().records());
  interrupts_.emplace(actuators_->interrupts());
  return {};
}

cgroup::RestoreReport Enforcement::end(const std::string& reason, std::chrono::milliseconds budget) {
  const char* ended = mode();
  if (const auto abandoned = evictor_.abandon(setup_.clock.now(), reason); !abandoned.empty())
    publish_(abandoned);
  eviction_timer_.arm(std::nullopt);
  enforcer_.reset();
  interrupts_.reset();
  if (!actuators_) return {};
  auto report = restore_all(budget);
  report.leaves = take_leaves();
  publish_(entries_of(report, setup_.clock.now(), ended, reason));
  return report;
}

cgroup::RestoreReport Enforcement::restore_all(std::chrono::milliseconds budget) {
  auto report = actuators_->writer().restore_all(budget);
  for (const auto& change : report.restored) observer_.read_again(change.workload);
  report.interrupts = actuators_->interrupts().restore_all();
  return report;
}

void Enforcement::begin_tick() {
  if (!actuators_) return;
  actuators_->greet_systemd();
  // An earlier attempt left something, for instance because systemd did not answer.
  if (enforcer_ || actuators_->journal().size() == 0) return;
  auto report = restore_all(kRestoreBudget);
  // The first attempt has told about these.
  std::erase_if(report.left, [](const auto& left) { return left.kept; });
  std::erase_if(report.interrupts.left, [](const auto& left) { return left.kept; });
  const auto entries = entries_of(report, setup_.clock.now(), mode(), "an earlier attempt failed");
  if (!entries.empty()) publish_(entries);
}

void Enforcement::end_tick() {
  if (leaves_.is_under_way() && !(enforcer_ && makes_leaves()))
    put_back_leaves("systemd made it after berth had stopped making leaves");
}

void Enforcement::follow_settings() {
  if (!enforcer_) return;
  if (!makes_leaves()) put_back_leaves("spark.leaf is never, or spark.watch is false");
  enforcer_->retry_failed();
  evictor_.retry_failed();
  interrupts_->retry();
  follow_foreign_writer();
}

void Enforcement::follow_foreign_writer() {
  if (enforcer_ && setup_.settings.foreign_writer == config::ForeignWriter::reassert)
    enforcer_->retry_foreign();
}

void Enforcement::be_patient() {
  if (actuators_) actuators_->be_patient();
}

std::vector<cgroup::PutBack> Enforcement::take_leaves() {
  auto leaves = leaves_.put_back();
  if (leaves_.take_moved()) senses_.look_for_spark_again();
  observer_.set_leaf_problems({});
  return leaves;
}

void Enforcement::put_back_leaves(const std::string& reason) {
  cgroup::RestoreReport report;
  report.leaves = take_leaves();
  publish_(entries_of(report, setup_.clock.now(), mode(), reason));
}

std::optional<model::Capability> Enforcement::systemd() const {
  return actuators_ ? std::optional(actuators_->systemd()) : std::nullopt;
}

const Holdings& Enforcement::holdings() const {
  return enforcer_ ? enforcer_->holdings() : SnapshotInputs::none<Holdings>();
}

const LeftAloneWorkloads& Enforcement::left_alone() const {
  return enforcer_ ? enforcer_->left_alone() : SnapshotInputs::none<LeftAloneWorkloads>();
}

bool Enforcement::moves_interrupts() const {
  // Those of this kernel are no business of another host's tree.
  if (!setup_.own_host && setup_.options.proc_root == "/proc") return false;
  return setup_.settings.policies.interference.interrupts == policies::InterruptPlaces::move;
}

std::optional<InterruptsReport> Enforcement::interrupts() const {
  return interrupts_ && moves_interrupts() ? std::optional(interrupts_->report()) : std::nullopt;
}

SnapshotInputs Enforcement::inputs(const Overrides& overrides, const model::Standing& standing) const {
  if (!enforcer_) return {.overrides = overrides, .standing = standing};
  return {.holdings = enforcer_->holdings(),
          .left_alone = enforcer_->left_alone(),
          .overrides = overrides,
          .standing = standing,
          .refused = enforcer_->refused(),
          .evictions = evictor_.marks()};
}

}  // namespace berth::daemon
