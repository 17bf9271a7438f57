// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/discovery.h"
#include "cgroup/hierarchy.h"
#include "cgroup/sampler.h"
#include "daemon/ledger/eviction_marks.h"
#include "daemon/ledger/held.h"
#include "daemon/ledger/overrides.h"
#include "daemon/observe/allowed_cpus.h"
#include "daemon/observe/best_effort_groups.h"
#include "daemon/observe/gpu_holders.h"
#include "daemon/observe/kernel_sampling.h"
#include "daemon/observe/other_groups.h"
#include "daemon/observe/past_demand.h"
#include "daemon/observe/past_usage.h"
#include "daemon/observe/progress_reports.h"
#include "daemon/observe/told_places.h"
#include "model/error.h"
#include "model/snapshot.h"
#include "model/standing.h"
#include "spark/collector.h"
#include "topology/gpu_inventory.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace berth::daemon {

// Sets what the identity says of a workload, except the id.
void take_identity(model::Workload& workload, const cgroup::Identity& identity);
// A workload with its identity, and without any readings.
model::Workload fresh_workload(const cgroup::Identity& identity);

// The daemon's knowledge that a snapshot has beside the readings.
struct SnapshotInputs {
  // An empty value that outlives every snapshot.
  template <typename T>
  static const T& none() {
    static const T kNone{};
    return kNone;
  }

  // Values that berth holds. In the snapshot they are in force, whatever was read.
  const Holdings& holdings = none<Holdings>();
  // Workloads that request no vCPUs, and whose limits are fixed.
  const LeftAloneWorkloads& left_alone = none<LeftAloneWorkloads>();
  const Overrides& overrides;
  const model::Standing& standing = none<model::Standing>();
  // Limits that are fixed because the kernel refused a value.
  const RefusedLimits& refused = none<RefusedLimits>();
  const EvictionMarks& evictions = none<EvictionMarks>();
};

// Makes a snapshot of the host, tick by tick, and keeps each workload's last samples.
class Observer {
 public:
  // The memory of a user's workload without the memory controller is counted by its processes. So many of one
  // user are read in a tick; the others keep their last figure until their turn.
  static constexpr std::size_t kMostResidentOfUser = 2048;

  using Readings = cgroup::Sampler::Readings;

  // Error where the host's processors cannot be read, or the tree cannot be watched.
  static model::Result<std::unique_ptr<Observer>> start(const cgroup::Hierarchy& hierarchy,
                                                        std::vector<model::WorkloadRule> rules,
                                                        const std::filesystem::path& proc_root,
                                                        const std::filesystem::path& sys_root, int history);

  // For the event loop: readable when take_changes() has work.
  int fd() const { return discovery_->fd(); }
  // Workloads that came and went since the last call.
  cgroup::Discovery::Changes take_changes();
  cgroup::Discovery::Changes set_rules(std::vector<model::WorkloadRule> rules);
  // From now on, takes figures from `kernel` where it has them; files give the rest.
  void use(KernelSampling kernel) { kernel_ = std::move(kernel); }
  const KernelSampling& kernel() const { return kernel_; }
  // Samples kept per workload.
  void set_history(int history) { history_ = static_cast<std::size_t>(history); }

  // Whether a policy may change an attribute that is read only then (model/attribute.h).
  void want(model::Attribute attribute, bool wanted) {
    wanted_[attribute] = wanted;
    if (wanted)
      sampler_.want(attribute, true);  // a policy must know its owner's value before it sets its own
  }
  // Whether a policy may confine other work. `usual`: the isolation of services whose rule says nothing.
  void want_others(bool wanted, model::Isolation usual) {
    others_wanted_ = wanted;
    usual_isolation_ = usual;
  }
  // CPU time of the next read() for the workloads that users made; each is read when it is its turn.
  void set_share_of_users(std::int64_t share_ns) { sampler_.set_share(share_ns); }

  // The next read() takes no setting of this workload from memory.
  void read_again(const std::string& workload) { sampler_.refresh(workload); }
  // Reads host and workloads; `now` in epoch seconds, and the wall clock ahead of it. Returns faults and
  // changes for the worse, each once.
  std::vector<std::string> read(double now, double wall_ahead_s = 0);
  // Reads the settings of workloads that appeared since, so that the next assemble() has them. All other
  // figures, and the time, stay those of the last read().
  void read_new() { sampler_.read_new(); }
  const Readings& readings() const { return sampler_.readings(); }
  const std::map<std::string, cgroup::FoundWorkload>& found() const { return discovery_->workloads(); }
  // As the last assemble() found them, or take_changes() after it.
  const BestEffortGroups::Groups& groups() const { return groups_.all(); }
  const OtherGroups::Groups& others() const { return others_.all(); }
  std::vector<cgroup::UnusedRule> unused_rules() const { return discovery_->unused_rules(); }
  // As cgroup::Discovery::why_ignored().
  std::optional<std::string> why_ignored(std::string_view name) const {
    return discovery_->why_ignored(name);
  }
  // Another number whenever found() has changed.
  std::uint64_t generation() const { return generation_; }
  // The workloads' own reports of progress; the next assemble() takes them in.
  ProgressReports& progress() { return progress_; }
  // The source of applications, executors and drivers for the next assemble(); null: there are none. The
  // progress of an application is that of its workloads, unless these report their own. `awaited`: it is null
  // because the first look has not ended. Every workload is spared until then.
  void set_spark(std::shared_ptr<const spark::Observation> spark, bool awaited = false);
  const spark::Observation* latest_spark() const { return spark_.get(); }
  // GPUs whose health has changed since the last call.
  std::vector<topology::GpuNews> take_gpu_news() { return gpus_.take_news(); }
  // Waits until the drivers of the GPUs have answered, for `most_s` at most.
  void wait_for_gpus(double most_s) { gpus_.settle(snapshot_.topology.cpus(), most_s); }
  void keep_gpus(GpuPromise promise) { gpu_holders_.keep(std::move(promise)); }
  void keep_place(ToldPlace place) { told_places_.keep(std::move(place)); }
  model::Capability gpu_capability() const { return gpus_.capability(); }
  // 0 where there is no such workload.
  std::uint64_t cgroup_id(const std::string& workload) const;

  // The snapshot of the last read(), joined with these inputs.
  const model::Snapshot& assemble(const SnapshotInputs& inputs);
  // Takes what observe mode would hold off the snapshot. Call it between assemble() and the next read().
  void take_off();
  const model::Snapshot& snapshot() const { return snapshot_; }
  // The used shares of the last day, the pending workloads, and the services that have learned sums, for the
  // snapshots from now on.
  void set_used_shares(std::vector<model::UsedShare> shares) { snapshot_.used_shares = std::move(shares); }
  void set_pending(std::vector<model::PendingWorkload> pending) { snapshot_.pending = std::move(pending); }
  void set_services(std::map<std::string, model::ServiceProfile> services) {
    snapshot_.services = std::move(services);
  }
  // By workload: why its executors have no cgroups of their own; likewise.
  void set_leaf_problems(std::map<std::string, std::string> problems) {
    leaf_problems_ = std::move(problems);
  }
  // A former daemon's samples of runs that go on; the first assemble() takes them in.
  void set_past(std::map<std::string, PastUsage> past) { past_ = std::move(past); }
  // A former daemon's readings of the services' memory, and its evictions.
  void set_past_demand(PastDemand past);
  // Seconds that an eviction took, for the snapshots from now on.
  void add_eviction_duration(double duration_s);

 private:
  Observer(const cgroup::Hierarchy& hierarchy, std::filesystem::path proc_root,
           std::filesystem::path sys_root, int history);
  void follow(const cgroup::Discovery::Changes& changes);
  void sample(const std::string& id, const cgroup::FoundWorkload& workload);
  bool keep_living_workloads();
  bool is_in_place() const;
  // The sources of a workload of the snapshot. Both live as long as the workload is found.
  struct Place {
    const cgroup::FoundWorkload* found = nullptr;
    const cgroup::Sampler::Reading* reading = nullptr;
    std::uint64_t run = 0;       // cgroup id whose samples the snapshot holds
    bool never_evicted = false;  // by its name
    bool leaf = false;
  };
  // A round through the workloads of a user whose memory is counted by their processes. See
  // kMostResidentOfUser.
  struct ResidentRound {
    double time = -1;            // of the samples
    std::size_t left = 0;        // processes of this tick
    bool others_wait = false;    // in this tick
    std::set<std::string> done;  // ids of those that were counted
    std::string part;            // the workload that is counted over several ticks; mostly empty
    pid_t part_up_to = 0;        // the last of its processes that was counted
    std::uint64_t part_bytes = 0;
  };
  // assemble() by concern; see observer_assemble.cpp.
  struct Pass;
  struct Entry;
  static Entry entry_of(const Place& place, const std::string& id, Pass& pass);
  bool has_facts(const SnapshotInputs& inputs, const Pass& pass) const;
  void take_applications(Pass& pass);
  void begin_resident_tick(ResidentRound& round, double time) const;
  void count_of_a_user(const model::Workload& workload, const Entry& entry, model::UsageSample& sample);
  void fill_usage(model::Workload& workload, const Entry& entry, const model::UsageWindow* like);
  void fill_spark(model::Workload& workload, const Entry& entry, const Pass& pass) const;
  void fill_progress(model::Workload& workload, const Entry& entry);
  void fill_settings(model::Workload& workload, const Entry& entry, const SnapshotInputs& inputs) const;
  bool is_bound_by_its_owner(const cgroup::Sampler::Reading& reading) const;
  void fill_limits(model::Workload& workload, const Entry& entry, const SnapshotInputs& inputs);
  static void fill_others(model::Workload& workload, const Entry& entry, const SnapshotInputs& inputs);
  void fill_exceptions(model::Workload& workload, const Entry& entry, const SnapshotInputs& inputs) const;
  static void fill_life(model::Workload& workload, const Entry& entry, const SnapshotInputs& inputs);
  void take_demand();
  void take_groups(const SnapshotInputs& inputs);
  void take_others(const SnapshotInputs& inputs);
  void take_progress(const spark::Observation* spark);  // null: there are no applications
  void refresh_topology(std::vector<std::string>& messages, std::set<std::string>& faults);
  bool take_topology(std::set<std::string>& faults);
  void find_owners(const HeldValues& pins);
  void withhold_owned_cpus();
  bool has_best_effort_work(const std::string& path) const;
  std::optional<std::string> owner_of(const model::Workload& workload) const;

  std::filesystem::path proc_root_;
  std::filesystem::path sys_root_;
  std::filesystem::path kubelet_cpus_;
  std::size_t history_;
  std::map<model::Attribute, bool> wanted_;  // by a policy
  bool has_cpuset_;
  std::unique_ptr<cgroup::Discovery> discovery_;
  cgroup::Sampler sampler_;
  KernelSampling kernel_ = KernelSampling::off("begins once berthd is ready");
  AllowedCpus allowed_;
  double allowed_read_at_ = 0;
  model::CpuSet online_;
  std::optional<model::CpuSet> memory_nodes_online_;
  // The vCPUs that the root's cpuset has, as when the topology was read; empty without the controller.
  model::CpuSet root_cpus_;
  std::vector<model::Cpu> cpus_as_read_;  // as the topology had them, other programs' vCPUs included
  bool owners_due_ = true;
  double owners_read_at_ = -1e9;
  std::map<std::string, std::size_t> owners_;  // index in snapshot_.owned_cpus, by owner
  std::string owners_problem_;
  topology::GpuInventory gpus_;
  GpuHolders gpu_holders_;
  BestEffortGroups groups_;
  OtherGroups others_;
  bool others_wanted_ = false;
  model::Isolation usual_isolation_ = model::Isolation::shared;
  ToldPlaces told_places_;
  std::set<std::string> said_;  // faults already reported, as long as they last
  ProgressReports progress_;
  std::shared_ptr<const spark::Observation> spark_;
  bool spark_awaited_ = false;
  std::shared_ptr<const spark::Observation> spark_shown_;  // whose applications the snapshot holds
  std::vector<Place> places_;                              // in the order of the snapshot's workloads
  std::uint64_t generation_ = 0;
  std::uint64_t placed_ = 0;                                // the generation that places_ is of
  std::set<std::string> divided_;                           // workloads that have leaves; likewise
  bool had_facts_ = false;                                  // the pass before had facts
  std::map<std::uint32_t, ResidentRound> resident_rounds_;  // by user
  std::map<std::string, PastUsage> past_;
  std::map<std::string, std::string> leaf_problems_;
  model::Snapshot snapshot_;
};

}  // namespace berth::daemon
