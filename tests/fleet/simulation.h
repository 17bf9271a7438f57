// SPDX-License-Identifier: Apache-2.0
// A fleet of simulated hosts. A scheduler outside decides where pods go. Inside a host, either nothing
// decides (stock), or berth's policies do, and what berthd and berth-kube would publish is handed out.
//
// One exchange is one step of time:
//
//   orders = fleet.advance(answers)      the scheduler's answers to the orders before
//
// Interference is measured on the judge's host (moment.h), and never by berth's own score.
#pragma once

#include "daemon/observe/used_shares.h"
#include "integrations/kubernetes/decide.h"
#include "model/node_state.h"
#include "model/plan.h"
#include "model/snapshot.h"
#include "policies/settings.h"
#include "tests/fleet/day.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace berth::fleet {

struct Settings {
  DaySettings day = {};
  bool berth = false;  // policies run on the hosts
  // Steps between measurements of the interference; each costs a tenth of a second a host.
  int measure_every = 6;
  double count_from_s = 0;  // figures are of the time from then on
};

// The pod as its node sees it.
struct Pod {
  enum class State { waiting, running, finished, rejected };
  Arrival arrival;
  State state = State::waiting;
  std::size_t host = 0;
  std::string workload;  // the id of its cgroup while it runs
  double started_s = 0;
  double done_core_s = 0;  // of a batch job, since it started
  double got = 1;          // share of the CPU that it wanted in the last step
  int tries = 0;           // times that the scheduler was asked
  double next_try_s = 0;
  bool is_late = false;     // of a batch job
  model::CpuSet cpus = {};  // berth's pin
  model::CpuSet home = {};  // of a shared service, domains
  std::optional<double> pinned_at = {};
};

// A pod that the scheduler bound.
struct Bound {
  std::string node;
  std::string uid;
};

// The answers of the scheduler to the orders of the step before. A pod that was created and is in neither was
// refused.
struct Answers {
  std::map<std::string, Bound> bound;  // by pod
  std::vector<std::string> gone;       // running pods that the scheduler preempted
};

struct NodeChange {
  std::string node;
  kubernetes::Wanted wanted;
};

struct Orders {
  double time_s = 0;                 // since the beginning
  std::vector<const Pod*> create;    // to be placed now
  std::vector<std::string> remove;   // pods that ended, or that were refused
  std::vector<NodeChange> nodes;     // what berth-kube publishes anew
  std::vector<std::size_t> changed;  // hosts whose snapshot is news
};

// The cost of neighbours (moment.h), over the measurements of hosts.
struct Interference {
  double service_cores = 0;        // that services use
  std::vector<double> p99_ratios;  // of each service: its p99 over that without neighbours
  double job_work = 0;             // of jobs, in cores that a job has without neighbours

  // The share of services with a ratio above judge::kTolerated.
  double violations() const;
};

// Sums over the time that counts.
struct Figures {
  double host_steps = 0;
  // Of the measurements.
  double service_cores_alone = 0;  // that services would use without neighbours
  double job_cores = 0;            // that jobs use
  Interference interference;   // by berth's pins; on stock hosts, jobs have the weight of what they ask for
  Interference idle_anywhere;  // without pins, and with the jobs at idle priority
  // Capacity, in core-seconds.
  double service_asked_core_s = 0;
  double job_asked_core_s = 0;  // by running jobs
  double job_core_s = 0;        // done by jobs
  double lost_core_s = 0;       // done by jobs that were evicted, and so lost
  // Work, in pods.
  double services = 0;
  double services_rejected = 0;
  double jobs = 0;
  double jobs_rejected = 0;
  double jobs_finished = 0;
  double jobs_late = 0;           // that ran beyond their deadline
  double evicted_for_room = 0;    // by the scheduler, for services
  double evicted_for_memory = 0;  // by berth, or by the kubelet, where memory is short
  // Violations, in host-steps.
  double short_of_cpu = 0;     // jobs get less than 95 % of the CPU that they want
  double short_of_memory = 0;  // more than 95 % of the memory is in use
  double closed = 0;           // the host takes no work
  // Means per host.
  double advertised_cores = 0;  // sum over host-steps
  double be_cores = 0;
};

class Simulation {
 public:
  explicit Simulation(const Settings& settings);
  Simulation(const Simulation&) = delete;  // hosts refer to the world

  // Takes the answers, lets one step of time pass, and says what comes next. The first call has no answers,
  // and no time passes. Error: std::runtime_error for a pod or node that is not known.
  Orders advance(const Answers& answers);

  const Figures& figures() const { return figures_; }
  std::size_t hosts() const { return hosts_.size(); }
  std::string node_name(std::size_t host) const;
  // The snapshot that the host's berthd would send. Only with berth.
  const model::Snapshot& snapshot(std::size_t host) const { return hosts_.at(host).snapshot; }
  const std::map<std::string, Pod>& pods() const { return pods_; }
  // Names of the pods on a host, ascending.
  const std::vector<std::string>& pods_on(std::size_t host) const { return hosts_.at(host).pods; }
  // Cores that the pod used in the last step.
  double use_of(const Pod& pod);
  double time_s() const { return now_s_; }

 private:
  struct Host {
    std::vector<std::string> pods;
    model::Snapshot snapshot;
    std::unique_ptr<daemon::UsedShares> used_shares;
    kubernetes::Wanted published;
    bool was_published = false;
    bool has_news = false;  // of `published`
    double advertised_cores = 0;
    double be_cores = 0;
    model::CpuSet pool;  // vCPUs of best-effort work
    bool is_new = true;  // pods came or went since the last orders
  };
  struct Load {
    double jobs = 0;  // cores that are wanted
    double memory_bytes = 0;
    double got = 1;  // share of the CPU that jobs want
  };

  bool counts() const { return now_s_ >= settings_.count_from_s; }
  Pod& pod(const std::string& name);
  void place(const std::string& name, const Bound& bound);
  void take_off(Pod& pod);
  void evict(const std::string& name, double& counter);
  Load load_of(const Host& host);
  double swing(const Pod& pod, int sample) const;
  void see(std::size_t at);
  void decide(std::size_t at, bool publishes);
  void run(std::size_t at);
  void end_pods();
  void relieve_memory(std::size_t at);
  void measure(std::size_t at);
  void publish(std::size_t at, Orders& orders);

  Settings settings_;
  policies::testing::World world_;
  Day day_;
  policies::PolicySettings policies_;
  std::vector<Host> hosts_;
  std::map<std::string, Pod> pods_;
  std::vector<std::string> waiting_;  // names
  std::map<std::string, std::size_t> by_node_;
  Figures figures_;
  double now_s_ = 0;
  int steps_ = 0;
  bool began_ = false;
};

}  // namespace berth::fleet
