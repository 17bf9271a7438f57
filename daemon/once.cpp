// SPDX-License-Identifier: Apache-2.0
#include "daemon/once.h"

#include "cgroup/hierarchy.h"
#include "cgroup/restore.h"
#include "daemon/daemon.h"
#include "daemon/enforce/enforcer.h"
#include "daemon/ledger/action_entries.h"
#include "daemon/ledger/action_log.h"
#include "daemon/ledger/decision_log.h"
#include "daemon/ledger/overrides.h"
#include "daemon/observe/observer.h"
#include "daemon/report/report_json.h"
#include "daemon/senses.h"
#include "model/count_text.h"
#include "model/json.h"
#include "os/clock.h"
#include "os/log.h"
#include "os/safe_path.h"
#include "policies/decide.h"
#include "spark/helper.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include <fmt/core.h>
#include <poll.h>

namespace berth::daemon {

namespace {

// A rate needs two readings; this pause is long enough to see which workloads are busy.
constexpr double kBetweenReadings_s = 0.25;
// A user can be expected to wait this long for the drivers of GPUs.
constexpr double kGpuPatience_s = 3;

// Rounds of asking drivers. A few silent drivers must not keep others from being heard, nor the user waiting
// for long.
constexpr int kMostRounds = 5;

ExitStatus failed(const model::Error& error) {
  fmt::print(stderr, "berthd: {}\n", error.message());
  return ExitStatus::failed;
}

std::string shown(const std::string& cpus) { return cpus.empty() ? "none" : cpus; }

void print_plan(const model::Snapshot& snapshot, const model::Plan& plan,
                const Observer::Readings& readings) {
  fmt::print("{}: {} workloads on vCPUs {}\n", snapshot.host, snapshot.workloads.size(),
             snapshot.topology.usable().to_string());
  for (const auto& owned : snapshot.owned_cpus) fmt::print("{}\n", model::to_text(owned));
  if (const auto& found = plan.findings.interference) {
    const std::string unpinned =
        found->score_unpinned ? fmt::format(" pinned, {:.4f} if left unpinned", *found->score_unpinned) : "";
    fmt::print("score {:.4f}{}; best-effort vCPUs {}\n", found->score_node, unpinned,
               shown(found->best_effort.cpus.to_string()));
    if (!found->search_reason.empty()) fmt::print("{}\n", found->search_reason);
    for (const auto& item : found->unplaceable)
      fmt::print("cannot place {}: {}\n", item.workload, item.reason);
    for (const auto& item : found->warnings) fmt::print("warning: {}: {}\n", item.workload, item.reason);
    if (!found->absent_reserved.empty())
      fmt::print("interference.reserved_cpus names vCPUs {}, which this host does not have\n",
                 found->absent_reserved.to_string());
    if (!found->shared_reserved.empty())
      fmt::print("best-effort work runs on the reserved vCPUs {}, as berth may use no others\n",
                 found->shared_reserved.to_string());
    for (const auto& item : found->unconfined)
      fmt::print("cannot confine {}: {}\n", item.workload, item.reason);
    if (!found->others.cpus.empty())
      fmt::print("{} of other work on vCPUs {}\n", model::count_text(found->others.confined.size(), "cgroup"),
                 found->others.cpus.to_string());
    for (const auto& item : found->others.unconfined)
      fmt::print("cannot confine {}: {}\n", item.workload, item.reason);
    for (const auto& [id, waiting] : found->waiting)
      fmt::print("{} waits for vCPUs, cause {}: {}\n", id, model::to_string(waiting.cause), waiting.reason);
  }
  if (plan.actions.empty()) fmt::print("nothing to do\n");
  for (const auto& entry : observed_entries(plan, snapshot, readings, {}))
    fmt::print("{}\n", describe(entry));
}

}  // namespace

ExitStatus run_once(const Options& options, const config::Settings& settings) {
  auto hierarchy = cgroup::find_hierarchy(options.cgroup_root, options.proc_root);
  if (!hierarchy) return failed(hierarchy.error());
  const os::Clock clock;
  hierarchy->clock = clock;
  auto observer =
      Observer::start(*hierarchy, settings.rules, options.proc_root, options.sys_root, settings.history);
  if (!observer) return failed(observer.error());
  follow_settings(**observer, settings);
  const auto say = [](const std::vector<std::string>& messages) {
    for (const auto& message : messages) os::log_warning("{}", message);
  };
  say((*observer)->take_changes().warnings);
  for (const auto& capability : cgroup::capabilities(*hierarchy)) {
    if (!capability.available) os::log_warning("{}: {}", capability.name, capability.detail);
  }

  // Only the first pages of a driver with much to tell: the user does not wait for the rest.
  spark::Helper helper(options.sparkd_socket, os::open_user_file);
  spark::Collector drivers(options.proc_root,
                           [&helper](const spark::Question& question) { return helper.ask(question); });
  const auto ask_drivers = [&] {
    if (!settings.spark_watch) return;
    spark::Observation found;
    for (int round = 0; round == 0 || (round < kMostRounds && drivers.goes_on()); ++round)
      found = drivers.collect(clock.now(), clock.wall_ahead_s());
    say(found.problems);
    (*observer)->set_spark(std::make_shared<const spark::Observation>(std::move(found)));
  };

  say((*observer)->read(clock.now()));
  const double pause_s = std::min(kBetweenReadings_s, settings.tick_s);
  poll(nullptr, 0, static_cast<int>(pause_s * 1000));
  (*observer)->wait_for_gpus(kGpuPatience_s);
  say((*observer)->read(clock.now(), clock.wall_ahead_s()));
  for (const auto& news : (*observer)->take_gpu_news()) os::log_warning("{}", news.text);
  ask_drivers();

  // Settings made over the bus count here as they do for the daemon.
  std::optional<std::string> ignored;
  const Overrides overrides(options.runtime_dir, ignored);
  const auto& snapshot = (*observer)->assemble({.overrides = overrides});
  const auto plan = policies::decide(snapshot, settings.policies);
  if (options.json) {
    fmt::print("{}\n", model::to_json(plan));
  } else {
    print_plan(snapshot, plan, (*observer)->readings());
  }
  return ExitStatus::done;
}

ExitStatus run_restore(const Options& options) {
  const auto hierarchy = cgroup::find_hierarchy(options.cgroup_root, options.proc_root);
  if (!hierarchy) return failed(hierarchy.error());
  cgroup::RestorePaths paths;
  paths.cgroup_root = hierarchy->root;
  paths.proc_root = options.proc_root;
  paths.sys_root = options.sys_root;
  paths.runtime_dir = options.runtime_dir;
  const auto report = cgroup::restore_host(paths);
  if (!report) return failed(report.error());

  const os::Clock clock;
  const auto entries = entries_of(*report, clock.now(), "observe", "berthd --restore");
  if (!entries.empty()) {
    DecisionLog(options.state_dir, config::Settings().log_retention_s, clock,
                cgroup::read_boot_id(options.proc_root).value_or(""))
        .append(entries);
  }
  if (options.json) {
    fmt::print("{}\n", restore_json(*report));
  } else if (entries.empty()) {
    fmt::print("nothing to restore\n");
  } else {
    for (const auto& entry : entries) fmt::print("{}\n", describe(entry));
  }
  const bool unfinished = std::ranges::any_of(report->left, &cgroup::RestoreReport::Left::kept) ||
                          std::ranges::any_of(report->interrupts.left, &cgroup::InterruptsBack::Left::kept);
  return unfinished ? ExitStatus::failed : ExitStatus::done;
}

}  // namespace berth::daemon
