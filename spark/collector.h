// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/snapshot.h"
#include "spark/bystanders.h"
#include "spark/claims.h"
#include "spark/endpoints.h"
#include "spark/interview.h"
#include "spark/process.h"
#include "spark/process_finder.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace berth::spark {

// A Spark process, its cgroup, and its identity.
struct Member {
  pid_t pid = 0;
  std::string name;    // of its main class, without the package
  std::string cgroup;  // path below the v2 root
  ProcessKind kind = ProcessKind::service;
  model::SparkIdentity identity;  // of executors, and of drivers that told their application
  std::uint64_t started = 0;      // with the pid it names one process of this boot
  friend bool operator==(const Member&, const Member&) = default;
};

// "executor 0 of app-1 (pid 7)", "Worker (pid 9)".
std::string text_of(const Member& member);

// The state found at one time.
struct Observation {
  std::vector<model::SparkApp> apps;  // ascending by id
  std::vector<Member> members;        // ascending by pid
  // Of applications, by id (Driver::progress).
  std::map<std::string, model::ProgressReport> progress;
  // Other processes, by cgroup; empty where there are no members.
  std::shared_ptr<const std::map<std::string, Bystanders>> bystanders;
  // Of drivers that cannot be read, ascending; short, without control characters, and only the first of many.
  std::vector<std::string> problems;
  double looked_at = 0;  // epoch seconds: when the processes were
  friend bool operator==(const Observation&, const Observation&) = default;
};

// The Spark processes in a workload.
struct Occupancy {
  std::optional<model::SparkIdentity> identity;  // of its only Spark process
  // Why it is never evicted, in words: other processes or data would be lost with it.
  std::optional<std::string> spared;
  friend bool operator==(const Occupancy&, const Occupancy&) = default;
};

// Workloads with Spark processes, by id. A process belongs to the innermost workload whose cgroup is its own
// or above it. Only an executor or driver that is alone in its workload can be ended alone.
//
// All others are spared. A standalone Worker's cgroup is, as its executors share it unless each is started in
// one of its own. So is a service, which may keep executors' output, and a driver of an unknown application.
std::map<std::string, Occupancy> occupancies(const Observation& observation,
                                             const std::function<bool(const std::string& id)>& is_workload);

// By workload: the one application of all its executors and drivers. A workload is left out where they belong
// to several, or where a driver's application is unknown. Services may be there too.
std::map<std::string, std::string> only_applications(
    const Observation& observation, const std::function<bool(const std::string& id)>& is_workload);

// Finds Spark processes, and has their drivers asked. Blocks for as long as the drivers take.
//
// If the address of a driver is not known, the usual ports are tried where the driver's user listens.
// Applications found so belong to that user. If a user has several such drivers, it is not known which
// application belongs to which driver. So none of them counts as a driver of an application.
//
// A driver may claim any application. It is believed only where the executors on this host agree (claims.h).
class Collector {
 public:
  static constexpr double kLookAgain_s = 10;           // for processes
  static constexpr double kKept_s = 30;                // for a driver's last answer, after it has failed
  static constexpr std::size_t kMostProcesses = 1000;  // of one user; further ones are passed over

  Collector(std::filesystem::path proc_root, Ask ask);

  // `now`: epoch seconds. Drivers tell times of the wall clock, which is `wall_ahead_s` ahead of `now`.
  Observation collect(double now, double wall_ahead_s = 0);
  // See Answer.
  bool goes_on() const { return goes_on_; }
  // The next round looks through the processes, however long ago the last look was.
  void look_again() { looked_at_ = 0; }
  // Lists the processes and their known facts, without asking any driver.
  Observation processes(double now);

 private:
  struct Known {
    DriverPlace place;
    DriverFacts facts;
  };

  void look(double now);
  void find();
  void meet(const Process& process);
  Observation observation(double now) const;
  Claims claims(double now) const;

  std::filesystem::path proc_root_;
  Ask ask_;
  ProcessFinder finder_;
  double looked_at_ = 0;
  std::vector<Process> processes_;
  std::size_t unread_ = 0;                                // processes that could not be read at the last look
  std::optional<std::string> failure_;                    // why that look did not reach them
  std::map<std::optional<uid_t>, std::size_t> too_many_;  // processes that are passed over, by user
  std::shared_ptr<const std::map<std::string, Bystanders>> bystanders_;
  std::set<UserAddress> listening_;  // at addresses of drivers that executors name
  std::map<ProcessId, Known> drivers_;
  bool goes_on_ = false;
  std::string problem_;  // of the last question
};

}  // namespace berth::spark
