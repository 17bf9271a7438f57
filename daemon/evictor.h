// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/cgroup.h"
#include "cgroup/discovery.h"
#include "cgroup/processes.h"
#include "cgroup/unit_stopper.h"
#include "daemon/eviction_marks.h"
#include "daemon/log_entry.h"
#include "model/error.h"
#include "model/plan.h"
#include "model/workload.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace berth::daemon {

// Since berthd started.
struct EvictionCounts {
  std::uint64_t decommission = 0;  // how often each step was taken
  std::uint64_t terminate = 0;
  std::uint64_t kill = 0;
  std::uint64_t ended = 0;  // victims that are gone
  std::size_t under_way = 0;
};

// Ends workloads, one step after the other, each with time to go by itself before the next
// (docs/architecture.md, ending a workload):
// decommission (SIGPWR, once, to a Spark executor that handles it), terminate (systemd stops its own unit;
// anything else gets SIGTERM), kill (cgroup.kill). Nothing blocks: due() says when advance() has work. What
// is signalled is held by pidfd and cgroup directory, so that a successor is never hit. Nobody's life depends
// on berthd: what a step has asked for goes on without it, and what no step has asked for never happens.
class Evictor {
 public:
  struct Options {
    std::filesystem::path proc_root = "/proc";
    std::function<cgroup::UnitStopper*()> units;  // nullptr where systemd cannot be asked
    // Whether systemd runs this host: then a unit that it cannot be asked to stop is left, as it would start
    // it anew; elsewhere what looks like a unit gets signals, like everybody else.
    bool systemd_runs = false;
    std::function<double()> monotonic;  // seconds
  };
  explicit Evictor(Options options) : options_(std::move(options)) {}

  // Why this workload is never evicted: latency-sensitive, spared, a slice, berth itself, the init process;
  // or why not now. nullopt where it can be.
  std::optional<std::string> refusal(const cgroup::FoundWorkload& target,
                                     const model::Workload& workload) const;

  // Takes the first step of `action`, an evict action with its decision, at epoch `now`. Refused, or gone,
  // with no entry where it cannot begin; otherwise what was done.
  model::Result<std::vector<LogEntry>> begin(const cgroup::FoundWorkload& target,
                                             const model::Workload& workload, const model::Action& action,
                                             double now);
  // Takes what steps are due and notices who has ended.
  std::vector<LogEntry> advance(double now);
  // Seconds until advance() should be called next; nullopt while nobody is being evicted.
  std::optional<double> due_s() const;
  // Lets go of all; who was asked to end may still do so.
  std::vector<LogEntry> abandon(double now, const std::string& reason);

  const EvictionMarks& marks() const { return marks_; }
  // Memory is short, or not (policies/spark/hold.h): see EvictionMarks.
  void look_at_memory(bool short_now, double now, double hold_s) {
    marks_.look_at_memory(short_now, now, hold_s);
  }
  // Takes no further step against a workload that must not be evicted any more.
  std::vector<LogEntry> let_go(const std::string& id, double now, const std::string& reason);
  // Has later snapshots say of this run that it cannot be evicted.
  void spare(const cgroup::FoundWorkload& target);
  // Forgets runs that are over.
  void forget_departed(const std::map<std::string, cgroup::FoundWorkload>& found);
  // Tries again what could not be evicted.
  void retry_failed();
  EvictionCounts counts() const;

 private:
  struct Victim {
    std::shared_ptr<cgroup::Cgroup> cgroup;
    std::string unit;
    bool executor = false;
    model::Action action;
    model::EvictionStep next = model::EvictionStep::decommission;  // what is due at next_at
    double grace_s = 0;
    // Monotonic seconds.
    double began_at = 0;
    double next_at = 0;
    std::optional<double> killed_at = std::nullopt;
    std::uint32_t failures = 0;
    cgroup::Processes last;  // as of the last look
    bool over = false;

    const model::EvictAction& eviction() const { return std::get<model::EvictAction>(action.what); }
  };

  LogEntry entry_of(const Victim& victim, double now, std::string step) const;
  bool has_ended(Victim& victim, double now, std::vector<LogEntry>& entries);
  void end(Victim& victim, LogEntry entry, std::vector<LogEntry>& entries);
  void take(Victim& victim, double now, std::vector<LogEntry>& entries);
  void wait_for_next(Victim& victim, model::EvictionStep next);
  bool decommission(Victim& victim, double now, std::vector<LogEntry>& entries);
  void terminate(Victim& victim, double now, std::vector<LogEntry>& entries);
  void kill(Victim& victim, double now, std::vector<LogEntry>& entries);
  void give_up(Victim& victim, LogEntry entry, std::string error, std::vector<LogEntry>& entries);

  Options options_;
  std::map<std::string, Victim> victims_;
  EvictionMarks marks_;
  EvictionCounts counts_;
};

}  // namespace berth::daemon
