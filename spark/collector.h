// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/snapshot.h"
#include "spark/bystanders.h"
#include "spark/driver.h"
#include "spark/process.h"

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

// A Spark process's cgroup and what it is there.
struct Member {
  pid_t pid = 0;
  std::string name;    // of its main class, without the package
  std::string cgroup;  // path below the v2 root
  ProcessKind kind = ProcessKind::service;
  model::SparkIdentity identity;  // of executors, and of drivers that said their application
  std::uint64_t started = 0;      // with the pid it names one process of this boot
  friend bool operator==(const Member&, const Member&) = default;
};

// "executor 0 of app-1 (pid 7)", "Worker (pid 9)".
std::string text_of(const Member& member);

// What was found at one time.
struct Observation {
  std::vector<model::SparkApp> apps;  // ascending by id
  std::vector<Member> members;        // ascending by pid
  // Of applications, by id (Driver::progress).
  std::map<std::string, model::ProgressReport> progress;
  // Who else lives where; empty where there are no members.
  std::shared_ptr<const std::map<std::string, Bystanders>> bystanders;
  std::vector<std::string> problems;  // of drivers that cannot be read, ascending
  double looked_at = 0;               // epoch seconds: when the processes were
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

// By workload, the one application that all its executors and drivers are of; nothing of a workload where
// they are of several, or a driver is of nobody knows which. Services may be there too.
std::map<std::string, std::string> only_applications(
    const Observation& observation, const std::function<bool(const std::string& id)>& is_workload);

// Finds Spark processes and reads what their drivers say. Blocks as long as they take.
//
// Where nobody says at which address a driver listens, the usual ports are tried, as far as the driver's user
// listens there. Applications found so are that user's; but of several such drivers of one user it is then
// not known which one is whose, and none of them is called a driver.
//
// Drivers are asked by turns. A turn is over soon, and so is a round: who has more to tell, and who was not
// asked any more, goes on in the next one. Those that answer come before those that did not, and of each kind
// first whoever was asked longest ago, so that a thousand silent ones hold up nobody.
class Collector {
 public:
  using Clock = std::function<double()>;  // monotonic, seconds

  static constexpr double kLookAgain_s = 10;    // for processes
  static constexpr double kTurn_s = 3;          // what can wait is not begun after that
  static constexpr double kRound_s = 6;         // no turn is begun after that
  static constexpr double kLongestWait_s = 60;  // before a driver that failed is asked again
  static constexpr double kKept_s = 30;         // what a driver said, after it has failed

  // `open`: opens event logs; without it none is read.
  Collector(std::filesystem::path proc_root, Get get, OpenFile open = {}, Clock clock = steady_clock());

  static Clock steady_clock();

  // `now`: epoch seconds.
  Observation collect(double now);
  // Whether the next round has more to say than what is new by then: a driver was not asked yet, or not at
  // all of its endpoints.
  bool goes_on() const;
  // The next round looks through the processes, however long ago the last look was.
  void look_again() { looked_at_ = 0; }
  // Which processes there are, and what is known of them, without asking any driver.
  Observation processes(double now);

 private:
  struct Known {
    Driver driver;
    std::vector<std::string> endpoints;
    std::optional<uid_t> guessed_of;  // where it listens is not known, and may be another's of this user
    std::uint64_t asked = 0;          // in which turn, of all that there were
    double read_at = 0;               // the last time that it went well
    double ask_at = 0;                // not before
    double wait_s = 0;                // doubled with each failure
    std::string problem;              // of the last time
  };
  using ProcessId = std::pair<pid_t, std::uint64_t>;

  void look(double now);
  void meet(const Process& process, double now);
  void ask(const ProcessId& id, Known& known, double now, double round_ends);
  Observation observation(double now) const;

  std::filesystem::path proc_root_;
  Get get_;
  OpenFile open_;
  Clock clock_;
  std::uint64_t turns_ = 0;
  std::uint64_t rounds_ = 0;
  double looked_at_ = 0;
  std::vector<Process> processes_;
  std::shared_ptr<const std::map<std::string, Bystanders>> bystanders_;
  std::map<ProcessId, Known> drivers_;
};

}  // namespace berth::spark
