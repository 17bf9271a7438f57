// SPDX-License-Identifier: Apache-2.0
#include "daemon/announcer.h"

#include "daemon/ledger/action_log.h"
#include "daemon/ledger/message_ids.h"
#include "os/log.h"

#include <utility>

#include <fmt/core.h>
#include <syslog.h>

namespace berth::daemon {

namespace {

// Ticks that are so many times as far apart as configured are worth a message.
constexpr double kNoticeablySlower = 1.25;

// A service whose load swings is throttled in some ticks only, and groups of best-effort work may come and go
// as a user likes: a shorter pause counts as the same case.
constexpr double kSwingingPause_s = 600;
constexpr const char* kUnprotected = "is not protected";
constexpr const char* kThrottled = "is throttled by its CPU quota";

// Names a finding that no workload has. No workload has this id, because it has no directory.
constexpr const char* kNothingToEvict = "nothing to evict";
// Another such name.
constexpr const char* kAbsentReserved = "absent reserved vCPUs";
constexpr const char* kSharedReserved = "shared reserved vCPUs";

}  // namespace

void Announcer::findings(const model::Plan& plan, const MayAnnounce& may_announce) {
  std::set<std::string> current;
  const auto say = [&](const char* what, const model::WorkloadFinding& finding) {
    auto key = fmt::format("{} {}", what, finding.workload);
    if (said_findings_.count(key) == 0 && may_announce(finding.workload)) {
      os::log_warning("{}: {}: {}", finding.workload, what, finding.reason);
    }
    current.insert(std::move(key));
  };
  if (plan.findings.interference) {
    for (const auto& finding : plan.findings.interference->unplaceable) say("cannot be placed", finding);
    for (const auto& finding : plan.findings.interference->unconfined) say("cannot be confined", finding);
    for (const auto& warning : plan.findings.interference->warnings) {
      if (warning.cause == model::WarningCause::place) continue;  // said as "cannot be placed"
      if (warning.cause == model::WarningCause::priority) {
        say(kUnprotected, {.workload = warning.workload, .reason = warning.reason});
        swinging_at_[{kUnprotected, warning.workload}] = plan.time;
        continue;
      }
      const bool use = warning.cause == model::WarningCause::use;
      const char* uses = warning.vcpus ? "uses more than its vcpus" : "may need more than its vcpus";
      say(use ? uses : kThrottled, {.workload = warning.workload, .reason = warning.reason});
      if (!use) swinging_at_[{kThrottled, warning.workload}] = plan.time;
    }
    std::erase_if(swinging_at_, [&](const auto& item) { return plan.time - item.second > kSwingingPause_s; });
    for (const auto& [finding, time] : swinging_at_)
      current.insert(fmt::format("{} {}", finding.first, finding.second));
    if (const auto& absent = plan.findings.interference->absent_reserved; !absent.empty()) {
      if (said_findings_.count(kAbsentReserved) == 0)
        os::log_warning(
            "interference.reserved_cpus names vCPUs {}, which this host does not have: they have no effect; "
            "correct the list in the configuration",
            absent.to_string());
      current.insert(kAbsentReserved);
    }
    if (const auto& shared = plan.findings.interference->shared_reserved; !shared.empty()) {
      if (said_findings_.count(kSharedReserved) == 0)
        os::log_warning(
            "interference.reserved_cpus names all vCPUs {} that berth may use, so best-effort work runs on "
            "them; take some off the list in the configuration",
            shared.to_string());
      current.insert(kSharedReserved);
    }
    for (const auto& [id, waiting] : plan.findings.interference->waiting) {
      say("waits for vCPUs", {.workload = id,
                              .reason = fmt::format("{:.3g} ms by {}: {}", 1000 * waiting.runq_latency_s,
                                                    model::to_string(waiting.cause), waiting.reason)});
    }
  }
  if (plan.findings.oversell && plan.findings.oversell->warning) {
    const auto& warning = *plan.findings.oversell->warning;
    if (said_findings_.count(kNothingToEvict) == 0) os::log_warning("oversell: {}", warning);
    current.insert(kNothingToEvict);
  }
  said_findings_ = std::move(current);
}

void Announcer::stragglers(const StragglersNews& news, std::string_view mode,
                           const MayAnnounce& may_announce) {
  const auto say = [&](const char* message_id, int priority, const char* what, const StragglerNews& item) {
    if (!may_announce(item.workload)) return;
    announce_event(message_id, priority, fmt::format("{} {}: {}", item.workload, what, item.reason), mode,
                   item.workload, item.decision);
  };
  for (const auto& item : news.found) say(kMessageStragglerFound, LOG_NOTICE, "is a straggler", item);
  for (const auto& item : news.relocate) {
    say(kMessageRelocationNeeded, LOG_WARNING, "should run elsewhere", item);
  }
}

void Announcer::gpus(const std::vector<topology::GpuNews>& news, std::string_view mode) {
  for (const auto& item : news) {
    announce_event(item.healthy ? kMessageGpuHealthy : kMessageGpuUnhealthy,
                   item.healthy ? LOG_NOTICE : LOG_WARNING, item.text, mode);
  }
}

void Announcer::left_alone(const LeftAloneWorkloads& before, const LeftAloneWorkloads& now,
                           std::string_view mode, const MayAnnounce& may_announce) {
  for (const auto& [id, item] : now) {
    if (before.count(id) > 0 || !may_announce(id)) continue;
    announce_event(kMessageLeftAlone, item.cause == LeftAlone::Cause::alarm ? LOG_ALERT : LOG_WARNING,
                   fmt::format("{} is left alone from now on: {}", id, item.reason), mode, id);
  }
}

void Announcer::pace(const SamplingBudget& budget, double configured_s, double max_cpu) {
  const double interval_s = budget.interval_s(configured_s, max_cpu);
  // A pace that swings about the limit is not said every few seconds.
  if (interval_s >= kNoticeablySlower * configured_s && !slowed_said_) {
    slowed_said_ = true;
    os::log_warning(
        "a reading takes {:.1f} ms of CPU time; one every {} s would exceed sampling.max_cpu = {}, so ticks "
        "are {:.1f} s apart",
        budget.read_cpu_s() * 1000, configured_s, max_cpu, interval_s);
  } else if (slowed_said_ && budget.interval_s(0, max_cpu) < configured_s / kNoticeablySlower) {
    slowed_said_ = false;
    os::log_info("readings cost less again: ticks are {} s apart", configured_s);
  }
}

void Announcer::dropped(std::uint64_t to_journal, std::uint64_t to_systemd) {
  const std::uint64_t dropped = to_journal + to_systemd;
  if (dropped == std::exchange(dropped_before_, dropped) && dropped != dropped_said_) {
    dropped_said_ = dropped;
    os::log_warning(
        "{} messages to journald and {} to systemd were dropped since berthd started: they were not taken in "
        "time; `berthctl log` has all decisions",
        to_journal, to_systemd);
  }
}

void Announcer::attempt(const std::string& what, const model::Result<void>& result) {
  if (result) {
    failing_.erase(what);
  } else if (failing_.insert(what).second) {
    os::log_warning("{}", result.error().message());
  }
}

}  // namespace berth::daemon
