// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/snapshot.h"
#include "spark/bystanders.h"
#include "spark/driver.h"
#include "spark/process.h"

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

// A Spark process's cgroup and what it is there.
struct Member {
  pid_t pid = 0;
  std::string name;    // of its main class, without the package
  std::string cgroup;  // path below the v2 root
  ProcessKind kind = ProcessKind::service;
  model::SparkIdentity identity;  // of executors, and of drivers that said their application
  friend bool operator==(const Member&, const Member&) = default;
};

// What was found at one time.
struct Observation {
  std::vector<model::SparkApp> apps;  // ascending by id
  std::vector<Member> members;        // ascending by pid
  // Who else lives where; empty where there are no members.
  std::shared_ptr<const std::map<std::string, Bystanders>> bystanders;
  std::vector<std::string> problems;  // of drivers that cannot be read, ascending
  friend bool operator==(const Observation&, const Observation&) = default;
};

// What Spark has in a workload.
struct Occupancy {
  std::optional<model::SparkIdentity> identity;  // of its only Spark process
  std::optional<std::string>
      spared;  // what would end with it, where that is more than that process; in words
  friend bool operator==(const Occupancy&, const Occupancy&) = default;
};

// Of the workloads with Spark processes, by id; a process lives in the innermost one whose cgroup is its own
// or above it. An executor or driver with nothing else in its workload is all of it. Whatever else is killed
// with more than was meant: a standalone Worker's cgroup, which its executors share unless each is started in
// one of its own, a service, whose executors' output it may keep, and a driver that nobody knows the
// application of.
std::map<std::string, Occupancy> occupancies(const Observation& observation,
                                             const std::function<bool(const std::string& id)>& is_workload);

// Finds Spark processes and reads what their drivers say. Blocks as long as they take.
//
// Where nobody says at which address a driver listens, the usual ports of the loopback are tried.
// Applications found so are what they are; but of several drivers it is then not known which one is whose,
// and none of them is called a driver.
class Collector {
 public:
  static constexpr double kLookAgain_s = 10;    // for processes
  static constexpr double kLongestWait_s = 60;  // before a driver that failed is asked again
  static constexpr double kKept_s = 30;         // what a driver said, after it has failed

  Collector(std::filesystem::path proc_root, Get get)
      : proc_root_(std::move(proc_root)), get_(std::move(get)) {}

  // `now`: epoch seconds.
  Observation collect(double now);
  // Which processes there are, and what is known of them, without asking any driver.
  Observation processes(double now);

 private:
  struct Known {
    Driver driver;
    bool guessed = false;  // where it listens is not known, and what was found may be another's
    double read_at = 0;    // the last time that it went well
    double ask_at = 0;     // not before
    double wait_s = 0;     // doubled with each failure
    std::string problem;   // of the last time
  };
  using ProcessId = std::pair<pid_t, std::uint64_t>;

  void look(double now);
  void ask(const ProcessId& id, Known& known, double now);
  Observation observation(double now) const;

  std::filesystem::path proc_root_;
  Get get_;
  double looked_at_ = 0;
  std::vector<Process> processes_;
  std::shared_ptr<const std::map<std::string, Bystanders>> bystanders_;
  std::map<ProcessId, Known> drivers_;
};

}  // namespace berth::spark
