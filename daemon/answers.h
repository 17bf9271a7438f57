// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/admit/admissions.h"
#include "daemon/enforcement.h"
#include "daemon/learned.h"
#include "daemon/ledger/overrides.h"
#include "daemon/messenger.h"
#include "daemon/report/report_json.h"
#include "daemon/senses.h"
#include "daemon/serve/control.h"
#include "daemon/serve/metrics_server.h"
#include "daemon/setup.h"
#include "model/error.h"
#include "model/plan.h"
#include "model/standing.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace berth::daemon {

class Daemon;

// The cost of all ticks so far, and of the placements between them.
struct TickCost {
  RunCost ticks;
  RunCost placements;
};

// Answers callers from the state after the last tick, and does what they ask for. Daemon changes the mode.
class Answers final : public Control {
 public:
  // The parts of berthd that answers are made of. All outlive this object.
  struct Sources {
    const Setup& setup;
    Senses& senses;
    Enforcement& enforcement;
    Overrides& overrides;
    Messenger& messenger;
    Admissions& admissions;
    Learned& learned;
    const model::Standing& standing;
    const MetricsEndpoint& metrics;
    const model::Plan& plan;  // of the last tick
    const TickCost& cost;
  };
  Answers(Daemon& daemon, Sources sources) : daemon_(daemon), from_(sources) {}

  // Forgets documents whose content has changed, and the host that newcomers are judged by.
  void drop_documents();
  // Counts the workloads of a new snapshot.
  void count_workloads();
  // "enforce: 3 latency-sensitive, 5 best-effort workloads, score 0.08", for the service manager.
  std::string status_line() const;

  std::string status_json() override;
  std::string workloads_json() override;
  std::string topology_json() override;
  std::string snapshot_json() override;
  std::string snapshot_since_json(double since) override;
  std::string plan_json() override;
  std::string log_json(std::size_t limit) override;
  model::Result<std::string> find_log_json(const std::map<std::string, std::string>& filter,
                                           std::size_t limit) override;
  model::Result<std::string> explain_json(const std::string& subject) override;
  std::string metrics_text() override;
  std::string profiles_json() override;
  std::string models_json() override;
  model::Result<void> import_profiles(const std::string& profiles) override;
  model::Result<void> forget_profile(const std::string& service) override;
  model::Result<void> set_mode(std::string_view mode) override;
  model::Result<void> set_workload(const std::string& id,
                                   const std::map<std::string, std::string>& settings) override;
  model::Result<void> report_progress(const std::string& id, double fraction) override;
  model::Result<std::string> admit(const std::string& request, double hold_s) override;
  std::string reservations_json() override;
  model::Result<std::string> cancel_reservation(const std::string& id) override;
  std::optional<std::string> workload_of(pid_t pid, uid_t uid) const override;
  model::Result<std::string> evict(const std::string& id) override;
  model::Result<std::string> blame(const std::string& service) override;
  model::Result<std::string> restore() override;
  model::Result<void> reload() override;
  model::Result<std::string> begin_trial(const TrialCaller& caller, const std::string& a,
                                         const std::string& b) override;
  model::Result<void> use_trial_side(const std::string& caller, std::string_view side,
                                     double lease_s) override;
  model::Result<void> end_trial(const std::string& caller, bool keep) override;
  void caller_left(const std::string& caller) override;
  std::string version() const override;
  std::string mode() const override { return from_.enforcement.mode(); }
  std::optional<double> score_node() const override;
  WorkloadCounts counts() const override { return counts_; }
  std::string best_effort_cpus() const override;
  model::Advertised advertised() const override { return from_.standing.advertised; }
  std::vector<WorkloadView> workloads() const override;
  std::optional<WorkloadView> workload(const std::string& id) const override;
  std::string log_level() const override;
  model::Result<void> set_log_level(std::string_view level) override;

 private:
  // The actions of a plan that a caller asked for, and its time as in model::Plan.
  struct ShownPlan {
    double time = 0;
    std::vector<model::Action> actions;
  };

  // Documents that callers asked for since the last tick. Each is made once and serves all callers until the
  // next.
  struct Documents {
    std::optional<std::string> workloads;
    std::optional<std::string> snapshot;
    std::optional<std::string> plan;
    std::optional<std::string> metrics;
    std::optional<std::string> profiles;
    std::optional<std::string> models;
    std::optional<model::Plan> decided;  // of observe mode
    std::optional<std::vector<cgroup::UnusedRule>> unused_rules;
  };

  const Observer& observer() const { return from_.senses.observer(); }
  const policies::PolicySettings& policy_settings() const { return from_.setup.settings.policies; }
  // Takes in the events since the tick, then looks for the workload. Error gone.
  model::Result<const cgroup::FoundWorkload*> find_now(const std::string& id);
  void drop_own_documents();
  const model::Plan& plan_to_show();
  std::optional<model::DecisionExplanation> shown_decision(const std::string& id) const;
  StatusReport status_report() const;  // without the last actions, unplaceable workloads and unused rules
  std::vector<model::WorkloadFinding> unplaceable() const;
  SamplingReport sampling_report() const;
  Tick last_tick() const;
  void end_reservations(double now);
  // Keeps the log, and the documents true.
  model::Result<std::string> finish(model::Result<Admissions::Answer> answer);

  Daemon& daemon_;
  Sources from_;
  WorkloadCounts counts_;
  Documents documents_;
  std::deque<ShownPlan> shown_;  // newest first
};

}  // namespace berth::daemon
