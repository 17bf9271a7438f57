// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/snapshot.h"
#include "spark/driver.h"
#include "spark/process.h"

#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace berth::spark {

// A Spark process's cgroup and what it is there.
struct Member {
  std::string cgroup;  // path below the v2 root
  ProcessKind kind = ProcessKind::service;
  model::SparkIdentity identity;  // of executors, and of drivers that said their application
  friend bool operator==(const Member&, const Member&) = default;
};

// What was found at one time.
struct Observation {
  std::vector<model::SparkApp> apps;  // ascending by id
  std::vector<Member> members;        // ascending by pid
  std::vector<std::string> problems;  // of drivers that cannot be read, ascending
  friend bool operator==(const Observation&, const Observation&) = default;
};

// Which workload is which executor or driver: the one whose cgroup, or one above it, is the workload's, where
// no other Spark process lives in the same workload. A standalone Worker's executors share its cgroup, and
// are nobody's by themselves.
std::map<std::string, model::SparkIdentity> identities(
    const Observation& observation, const std::function<bool(const std::string& id)>& is_workload);

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

  std::filesystem::path proc_root_;
  Get get_;
  double looked_at_ = 0;
  std::vector<Process> processes_;
  std::map<ProcessId, Known> drivers_;
};

}  // namespace berth::spark
