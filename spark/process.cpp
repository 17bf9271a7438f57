// SPDX-License-Identifier: Apache-2.0
#include "spark/process.h"

#include "model/path.h"
#include "model/text.h"
#include "os/proc_files.h"
#include "spark/names.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace berth::spark {

namespace {

// The kernel takes no longer path (PATH_MAX).
constexpr std::size_t kProgramBytes = 4096;

// Main classes (Spark's source, core/, resource-managers/).
constexpr std::array kExecutors{
    "org.apache.spark.executor.CoarseGrainedExecutorBackend",
    "org.apache.spark.executor.YarnCoarseGrainedExecutorBackend",
    "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend",
};
constexpr std::array kDrivers{
    "org.apache.spark.deploy.SparkSubmit",
    "org.apache.spark.deploy.worker.DriverWrapper",
    "org.apache.spark.deploy.yarn.ApplicationMaster",
};
constexpr std::array kServices{
    "org.apache.spark.deploy.master.Master",          "org.apache.spark.deploy.worker.Worker",
    "org.apache.spark.deploy.ExternalShuffleService", "org.apache.spark.deploy.yarn.ExecutorLauncher",
    "org.apache.spark.deploy.history.HistoryServer",
};
// Services of others. YARN's NodeManager starts executors and contains the external shuffle service;
// Celeborn's and Uniffle's servers keep what executors have written to the shuffle.
struct ServiceOfOthers {
  std::string_view main_class;
  const char* name;
};
constexpr std::array kServicesOfOthers{
    ServiceOfOthers{"org.apache.hadoop.yarn.server.nodemanager.NodeManager", "YARN's NodeManager"},
    ServiceOfOthers{"org.apache.hadoop.yarn.server.resourcemanager.ResourceManager",
                    "YARN's ResourceManager"},
    ServiceOfOthers{"org.apache.celeborn.service.deploy.worker.Worker", "Celeborn's Worker"},
    ServiceOfOthers{"org.apache.celeborn.service.deploy.master.Master", "Celeborn's Master"},
    ServiceOfOthers{"org.apache.uniffle.server.ShuffleServer", "Uniffle's ShuffleServer"},
    ServiceOfOthers{"org.apache.uniffle.coordinator.CoordinatorServer", "Uniffle's CoordinatorServer"},
};
// Options of java(1) whose value is an argument of its own.
constexpr std::array kWithValue{"-cp",           "-classpath",    "--class-path", "-p",
                                "--module-path", "--add-modules", "--add-opens",  "--add-exports"};

template <typename Names>
bool among(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool runs_java(std::string_view command_line) {
  const std::string_view program = command_line.substr(0, command_line.find('\0'));
  return model::last_component(program) == "java";
}

// Position of the main class; the number of arguments where there is none.
std::size_t main_class(const std::vector<std::string>& arguments) {
  std::size_t at = 1;
  while (at < arguments.size() && arguments[at].starts_with("-"))
    at += among(kWithValue, arguments[at]) ? 2 : 1;
  return std::min(at, arguments.size());
}

std::string value_of(const std::vector<std::string>& arguments, std::size_t begin, std::string_view option) {
  for (std::size_t i = begin; i + 1 < arguments.size(); ++i)
    if (arguments[i] == option) return arguments[i + 1];
  return "";
}

// The "HOST:PORT" of "spark://CoarseGrainedScheduler@HOST:PORT"; empty of anything else.
std::string address_in(const std::string& url) {
  constexpr std::string_view kScheme = "spark://";
  if (!url.starts_with(kScheme)) return "";
  const std::string address = url.substr(std::max(url.rfind('@') + 1, kScheme.size()));
  return is_name(address) ? address : "";
}

std::vector<std::string> split_at_nul(std::string_view text) {
  constexpr std::string_view kNul("\0", 1);
  std::vector<std::string> parts;
  while (!text.empty()) parts.emplace_back(model::take_part(text, kNul));
  return parts;
}

}  // namespace

std::optional<Recognised> recognise(const std::vector<std::string>& arguments) {
  if (arguments.empty() || !runs_java(arguments.front())) return std::nullopt;
  const std::size_t at = main_class(arguments);
  if (at == arguments.size()) return std::nullopt;
  const std::string& name = arguments[at];
  const std::string called = name.substr(name.rfind('.') + 1);
  for (const ServiceOfOthers& service : kServicesOfOthers) {
    if (service.main_class != name) continue;
    return Recognised{
        .kind = ProcessKind::service, .name = service.name, .app = "", .executor = "", .driver = ""};
  }
  if (among(kServices, name))
    return Recognised{.kind = ProcessKind::service, .name = called, .app = "", .executor = "", .driver = ""};
  if (among(kDrivers, name))
    return Recognised{.kind = ProcessKind::driver, .name = called, .app = "", .executor = "", .driver = ""};
  if (!among(kExecutors, name)) return std::nullopt;
  Recognised executor{.kind = ProcessKind::executor,
                      .name = called,
                      .app = value_of(arguments, at + 1, "--app-id"),
                      .executor = value_of(arguments, at + 1, "--executor-id"),
                      .driver = address_in(value_of(arguments, at + 1, "--driver-url"))};
  if (!is_name(executor.app) || !is_name(executor.executor)) return std::nullopt;
  return executor;
}

std::optional<Process> find_process(const std::filesystem::path& proc_root, pid_t pid) {
  const auto path = proc_root / std::to_string(pid);
  auto arguments = os::read_start(path / "cmdline", kProgramBytes);
  // Nearly every process: no more than this is read of it.
  if (!runs_java(arguments)) return std::nullopt;
  if (arguments.size() == kProgramBytes) arguments = os::read_start(path / "cmdline", os::kMostCommandLine);
  auto what = recognise(split_at_nul(arguments));
  const auto stat = os::read_stat(path);
  auto cgroup = os::cgroup_of(path);
  if (!what || !stat || !cgroup) return std::nullopt;
  // The rest is used only if it belongs to the process that had the pid when its start was read.
  const auto again = os::read_stat(path);
  if (os::read_start(path / "cmdline", os::kMostCommandLine) != arguments || !again ||
      again->started != stat->started)
    return std::nullopt;
  return Process{.pid = pid,
                 .started = stat->started,
                 .cgroup = *std::move(cgroup),
                 .user = os::user_of(path),
                 .what = *std::move(what)};
}

std::vector<Process> find_processes(const std::filesystem::path& proc_root) {
  std::vector<Process> processes;
  for (const pid_t pid : os::pids_of(proc_root)) {
    if (auto process = find_process(proc_root, pid)) processes.push_back(*std::move(process));
  }
  return processes;
}

}  // namespace berth::spark
