// SPDX-License-Identifier: Apache-2.0
#include "daemon/observe/observer.h"

#include "cgroup/cpuset_owners.h"
#include "daemon/observe/host_memory.h"
#include "model/name.h"
#include "os/ancestors.h"
#include "topology/discover.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <utility>

#include <fmt/core.h>
#include <unistd.h>

namespace berth::daemon {

namespace {

// Ancestors' cpusets change by hand or at boot. Reading each of them every tick would cost more than
// everything else.
constexpr double kAllowedLifetime_s = 10;

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  // The kernel permits any bytes in a host name; the documents do not.
  return name[0] == '\0' ? "localhost" : model::to_name(name.data());
}

}  // namespace

void take_identity(model::Workload& workload, const cgroup::Identity& identity) {
  workload.service = identity.service;
  workload.workload_class = identity.workload_class;
  workload.vcpus = identity.vcpus;
  workload.isolation = identity.isolation;
  workload.memory_request_bytes = identity.memory_request_bytes;
  workload.priority = identity.priority;
  workload.evictable = identity.evictable;
  workload.force = identity.force;
  workload.created = identity.created;
  workload.deadline = identity.deadline;
  workload.user = identity.user;
}

model::Workload fresh_workload(const cgroup::Identity& identity) {
  model::Workload workload;
  workload.id = identity.id;
  take_identity(workload, identity);
  return workload;
}

Observer::Observer(const cgroup::Hierarchy& hierarchy, std::filesystem::path proc_root,
                   std::filesystem::path sys_root, int history)
    : proc_root_(std::move(proc_root)),
      sys_root_(std::move(sys_root)),
      kubelet_cpus_(hierarchy.kubelet_cpus),
      history_(static_cast<std::size_t>(history)),
      has_cpuset_(hierarchy.controllers.count("cpuset") > 0),
      sampler_(hierarchy.controllers),
      allowed_(hierarchy.root),
      gpus_({.sys_root = sys_root_, .proc_root = proc_root_}),
      gpu_holders_(proc_root_),
      others_(hierarchy.root, proc_root_) {
  snapshot_.host = host_name();
}

model::Result<std::unique_ptr<Observer>> Observer::start(const cgroup::Hierarchy& hierarchy,
                                                         std::vector<model::WorkloadRule> rules,
                                                         const std::filesystem::path& proc_root,
                                                         const std::filesystem::path& sys_root, int history) {
  std::unique_ptr<Observer> observer(new Observer(hierarchy, proc_root, sys_root, history));
  observer->root_cpus_ = observer->allowed_.root_cpus();  // as in refresh_topology(), before the topology
  auto topology = topology::discover(sys_root, proc_root);
  if (!topology) return model::fail(topology.error().context("reading the host's topology"));
  observer->snapshot_.topology = std::move(*topology);
  observer->cpus_as_read_ = observer->snapshot_.topology.cpus();
  if (auto online = topology::read_online(sys_root)) observer->online_ = std::move(*online);
  observer->memory_nodes_online_ = topology::read_memory_nodes(sys_root);

  auto discovery = cgroup::Discovery::start(hierarchy, std::move(rules));
  if (!discovery) return model::fail(discovery.error().context("watching the cgroup tree"));
  observer->discovery_ = std::move(*discovery);
  for (const auto& [id, workload] : observer->found()) observer->sample(id, workload);
  return observer;
}

cgroup::Discovery::Changes Observer::take_changes() {
  for (const auto& path : kernel_.take_changed_paths()) discovery_->look_at(path);
  auto changes = discovery_->process();
  follow(changes);
  return changes;
}

cgroup::Discovery::Changes Observer::set_rules(std::vector<model::WorkloadRule> rules) {
  auto changes = discovery_->set_rules(std::move(rules));
  follow(changes);
  return changes;
}

void Observer::follow(const cgroup::Discovery::Changes& changes) {
  if (!changes.appeared.empty() || !changes.vanished.empty() || !changes.changed.empty()) ++generation_;
  for (const auto& id : changes.changed) {
    const auto workload = found().find(id);
    if (workload != found().end()) sample(id, workload->second);
  }
  if (changes.appeared.empty() && changes.vanished.empty()) return;
  allowed_.refresh();
  owners_due_ = true;
  for (const auto& id : changes.vanished) sampler_.remove(id);
  progress_.keep_if([this](const std::string& id, std::uint64_t run) { return cgroup_id(id) == run; });
  for (const auto& id : changes.appeared) {
    const auto workload = found().find(id);
    if (workload != found().end()) sample(id, workload->second);
  }
}

// Of a workload that is sampled in the same way already, it goes on. A user can make thousands of workloads,
// but no latency-sensitive ones: each of those has a rule.
void Observer::sample(const std::string& id, const cgroup::FoundWorkload& workload) {
  const bool in_turn = !model::may_favour_itself(workload.ground, model::Word::name) &&
                       workload.identity.workload_class == model::WorkloadClass::best_effort;
  sampler_.add(id, workload.cgroup, in_turn ? workload.ground.user : std::nullopt);
}

std::uint64_t Observer::cgroup_id(const std::string& workload) const {
  const auto known = found().find(workload);
  return known == found().end() ? 0 : known->second.cgroup->id();
}

bool Observer::take_topology(std::set<std::string>& faults) {
  auto topology = topology::discover(sys_root_, proc_root_);
  if (!topology) {
    faults.insert(topology.error()
                      .context("cannot read the topology again after vCPUs or memory came or went")
                      .message());
    return false;
  }
  snapshot_.topology = std::move(*topology);
  cpus_as_read_ = snapshot_.topology.cpus();
  withhold_owned_cpus();
  owners_due_ = true;
  gpus_.look_at_bus_again();
  allowed_.refresh();
  return true;
}

void Observer::refresh_topology(std::vector<std::string>& messages, std::set<std::string>& faults) {
  const auto online = topology::read_online(sys_root_);
  // The memory of an expander may come or go by itself (daxctl).
  auto memory_nodes = topology::read_memory_nodes(sys_root_);
  const bool other_cpus = online && *online != online_;
  const bool other_memory = online && memory_nodes != memory_nodes_online_;
  // The root's cpuset follows a hotplug a little later. If it is read before the topology, the next tick sees
  // that it has followed since.
  model::CpuSet root_cpus = allowed_.root_cpus();
  if (other_cpus || other_memory) {
    if (!take_topology(faults)) return;
    root_cpus_ = std::move(root_cpus);
    if (other_cpus) {
      messages.push_back(
          fmt::format("online vCPUs are now {} (were {})", online->to_string(), online_.to_string()));
      online_ = *online;
      kernel_.follow_cpus(messages);
    }
    if (other_memory) {
      const auto text = [](const std::optional<model::CpuSet>& nodes) {
        return nodes ? nodes->to_string() : std::string("not known");
      };
      messages.push_back(fmt::format("NUMA nodes with memory are now {} (were {})", text(memory_nodes),
                                     text(memory_nodes_online_)));
      memory_nodes_online_ = std::move(memory_nodes);
    }
  } else if (root_cpus != root_cpus_) {
    // Partitions take vCPUs from the root's cpuset, and give them back.
    if (take_topology(faults)) root_cpus_ = std::move(root_cpus);
  }
}

// Takes the vCPUs of other programs out of those that berth may give out. A topology needs a usable vCPU. If
// none is left, those of containers stay usable, and the policies give them to best-effort work alone.
void Observer::withhold_owned_cpus() {
  owners_problem_.clear();
  model::CpuSet kept;  // by the kernel, for work of its own
  model::CpuSet of_containers;
  for (const model::OwnedCpus& owned : snapshot_.owned_cpus) {
    const bool open = owned.how == model::OwnedHow::kubelet || owned.how == model::OwnedHow::runtime;
    (open ? of_containers : kept) |= owned.cpus;
  }
  const auto without = [this](const model::CpuSet& taken) {
    std::vector<model::Cpu> cpus = cpus_as_read_;
    for (model::Cpu& cpu : cpus) cpu.allowed = cpu.allowed && !taken.contains(cpu.cpu);
    return cpus;
  };
  const auto usable = [](const model::Cpu& cpu) { return cpu.online && cpu.allowed; };
  std::vector<model::Cpu> cpus = without(kept | of_containers);
  if (std::none_of(cpus.begin(), cpus.end(), usable)) {
    cpus = without(kept);
    const char* best_effort = "runs on those of containers";
    if (std::none_of(cpus.begin(), cpus.end(), usable)) {
      cpus = cpus_as_read_;
      best_effort = "is not pinned";
    }
    owners_problem_ = fmt::format(
        "other programs own every vCPU that berth may use: no service gets vCPUs of its own, and best-effort "
        "work {}",
        best_effort);
  }
  if (cpus == snapshot_.topology.cpus()) return;
  auto topology = model::Topology::make(std::move(cpus), snapshot_.topology.gpus(),
                                        snapshot_.topology.numa_distances(), snapshot_.topology.numa_nodes());
  if (topology) snapshot_.topology = std::move(*topology);
  allowed_.refresh();
}

// Whether it is, holds or lies in best-effort work.
bool Observer::has_best_effort_work(const std::string& path) const {
  const auto is_best_effort = [](const auto& it) {
    return it.second.identity.workload_class == model::WorkloadClass::best_effort;
  };
  const std::string inside = path + '/';
  for (auto it = found().lower_bound(inside); it != found().end() && it->first.starts_with(inside); ++it) {
    if (is_best_effort(*it)) return true;
  }
  return os::find_around(path, [&](const std::string& around) {
    const auto known = found().find(around);
    return known != found().end() && is_best_effort(*known);
  });
}

// Only cgroups that root alone can write to count: no user may claim vCPUs.
void Observer::find_owners(const HeldValues& pins) {
  owners_due_ = false;
  owners_read_at_ = snapshot_.time;
  if (!has_cpuset_) return;
  auto owned = cgroup::read_owned_cpus(
      {.cgroup_root = allowed_.root(),
       .sys_root = sys_root_,
       .online = online_,
       .trusted = [this](bool containers) { return discovery_->trusted_groups(containers); },
       .original = [&pins](const std::string& path, std::uint64_t id) -> std::optional<model::CpuSet> {
         const Held* pin = find_held(pins, path);
         return pin != nullptr && pin->cgroup_id == id ? std::optional(pin->original_cpus()) : std::nullopt;
       },
       .managed = [this](const std::string& path) { return has_best_effort_work(path); },
       .kubelet_cpus = kubelet_cpus_});
  if (owned == snapshot_.owned_cpus) return;
  snapshot_.owned_cpus = std::move(owned);
  owners_.clear();
  for (std::size_t i = 0; i < snapshot_.owned_cpus.size(); ++i) {
    if (const auto& owner = snapshot_.owned_cpus[i].owner; !owner.empty()) owners_.emplace(owner, i);
  }
  ++generation_;  // who is left alone has changed
  withhold_owned_cpus();
}

std::vector<std::string> Observer::read(double now, double wall_ahead_s) {
  std::vector<std::string> messages;
  std::set<std::string> faults;
  refresh_topology(messages, faults);
  gpus_.look(snapshot_.topology.cpus());
  gpu_holders_.follow(gpus_);

  const auto load = read_host_load(proc_root_);
  faults.insert(load.missing.begin(), load.missing.end());
  if (!owners_problem_.empty()) faults.insert(owners_problem_);
  for (const model::OwnedCpus& owned : snapshot_.owned_cpus)
    faults.insert(model::to_text(owned) + "; berth plans nothing onto them");
  snapshot_.memory = load.memory;
  snapshot_.load1 = load.load1;
  snapshot_.time = now;
  snapshot_.wall_ahead_s = wall_ahead_s;

  sampler_.set_most_cores(online_.size());
  sampler_.want_caches(load.memory.psi_full_avg10 > 0);  // no other code needs them
  kernel_.keep_together(discovery_->crowds(kernel_.most_of_user(), kernel_.most_of_users()));
  for (const auto& [id, reading] : sampler_.sample(now, kernel_.read(now, messages))) {
    if (!reading.impossible_cores) continue;
    faults.insert(fmt::format(
        "{}: its counter of CPU time jumped by more than {} vCPUs can give; berth drops the reading", id,
        online_.size()));
  }
  // Once a tick: a user can change the tree many times a second, and each search walks all of it.
  groups_.follow(*discovery_);
  groups_.read(sampler_.readings(), *discovery_);
  others_.read();
  if (others_.more() > 0)
    faults.insert(
        fmt::format("more than {} cgroups lie beside the workloads: the others may run on vCPUs that "
                    "services own; move them to a slice of their own",
                    OtherGroups::kMost));
  std::set_difference(faults.begin(), faults.end(), said_.begin(), said_.end(), std::back_inserter(messages));
  said_ = std::move(faults);
  if (now - allowed_read_at_ >= kAllowedLifetime_s) {
    allowed_.refresh();
    owners_due_ = true;
    allowed_read_at_ = now;
  }
  return messages;
}

void Observer::set_spark(std::shared_ptr<const spark::Observation> spark, bool awaited) {
  spark_awaited_ = awaited && !spark;
  if (spark != spark_) take_progress(spark.get());
  spark_ = std::move(spark);
}

void Observer::take_progress(const spark::Observation* spark) {
  std::set<std::string> counted;
  const auto is_workload = [this](const std::string& id) { return found().count(id) > 0; };
  static const spark::Observation kNothing;
  const spark::Observation& seen = spark != nullptr ? *spark : kNothing;
  const auto applications = seen.progress.empty() ? std::map<std::string, std::string>()
                                                  : spark::only_applications(seen, is_workload);
  for (const auto& [id, app] : applications) {
    const auto report = seen.progress.find(app);
    if (report == seen.progress.end()) continue;
    const auto& workload = found().at(id);
    // A count from before this run began belongs to an earlier one.
    if (report->second.time < workload.identity.created) continue;
    (void)progress_.add(id, workload.cgroup->id(), report->second.time, report->second.fraction,
                        ProgressReports::Source::counted);
    counted.insert(id);
  }
  progress_.keep_counted_of(counted);
}

}  // namespace berth::daemon
