// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/workload.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace berth::spark {

// How far up a process's ancestors are followed: a table that is read while it changes may have loops.
inline constexpr std::size_t kMostAncestors = 1000;

enum class ProcessKind { executor, driver, service };

// Facts from a command line. berth trusts none of them: any user can write one.
struct Recognised {
  ProcessKind kind = ProcessKind::service;
  std::string name;      // of its main class, without the package: "Worker"; also "YARN's NodeManager"
  std::string app;       // of an executor; a driver is asked for it
  std::string executor;  // of an executor
  std::string driver;    // of an executor: its driver's "HOST:PORT"; empty where it names none
  friend bool operator==(const Recognised&, const Recognised&) = default;
};

// Recognises a Spark process by the main class of a JVM's command line, of Spark 3 and 4 on standalone
// clusters, YARN and Kubernetes. It knows executors, drivers and the services that must outlive them: Master,
// Worker, external shuffle service, and the launcher that YARN starts in client mode. So must YARN's
// managers, and the servers of Celeborn and Uniffle, which are other programs. Returns nullopt for everything
// else, and for an executor whose command line lacks its application or its own id.
std::optional<Recognised> recognise(const std::vector<std::string>& arguments);

struct Process {
  pid_t pid = 0;
  std::uint64_t started = 0;  // field 22 of /proc/PID/stat: with the pid it names one process of this boot
  std::string cgroup;         // path in the v2 tree, without a leading slash; empty for the root
  std::optional<uid_t> user;  // nullopt where it is not known
  Recognised what;
  friend bool operator==(const Process&, const Process&) = default;
};

// The Spark process with this pid; nullopt where it is none of Spark's, or has just ended.
std::optional<Process> find_process(const std::filesystem::path& proc_root, pid_t pid);

// All Spark processes, ascending by pid. A process that ends meanwhile is left out.
std::vector<Process> find_processes(const std::filesystem::path& proc_root);

}  // namespace berth::spark
