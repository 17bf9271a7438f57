// SPDX-License-Identifier: Apache-2.0
#include "spark/process.h"

#include "model/name.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>

namespace berth::spark {

namespace {

// Class paths are long, but /proc/PID/cmdline can be as long as its owner wants.
constexpr std::size_t kMostCommandLine = std::size_t{1} << 20;

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
// Options of java(1) whose value is an argument of its own.
constexpr std::array kWithValue{"-cp",           "-classpath",    "--class-path", "-p",
                                "--module-path", "--add-modules", "--add-opens",  "--add-exports"};

template <typename Names>
bool among(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
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

std::string read_start(const std::filesystem::path& file, std::size_t most) {
  std::ifstream stream(file, std::ios::binary);
  std::string text;
  std::array<char, 4096> chunk{};
  while (text.size() < most && stream.read(chunk.data(), chunk.size()).gcount() > 0)
    text.append(chunk.data(), static_cast<std::size_t>(stream.gcount()));
  return text;
}

std::vector<std::string> split_at_nul(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\0', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

template <typename T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Field 22 of stat(5); what precedes the last ')' is the name, which may hold anything.
std::optional<std::uint64_t> start_of(const std::filesystem::path& process) {
  const std::string text = read_start(process / "stat", 4096);
  std::size_t at = text.rfind(')');
  if (at == std::string::npos) return std::nullopt;
  for (int field = 2; field < 22; ++field) {
    at = text.find(' ', at + 1);
    if (at == std::string::npos) return std::nullopt;
  }
  const std::size_t end = std::min(text.find_first_of(" \n", at + 1), text.size());
  return number<std::uint64_t>(std::string_view(text).substr(at + 1, end - at - 1));
}

std::optional<std::string> cgroup_of(const std::filesystem::path& process) {
  std::ifstream stream(process / "cgroup");
  for (std::string line; std::getline(stream, line);)
    if (line.starts_with("0::/")) return line.substr(4);
  return std::nullopt;
}

}  // namespace

std::optional<Recognised> recognise(const std::vector<std::string>& arguments) {
  if (arguments.empty()) return std::nullopt;
  const std::string& program = arguments.front();
  if (program.substr(program.rfind('/') + 1) != "java") return std::nullopt;
  const std::size_t at = main_class(arguments);
  if (at == arguments.size()) return std::nullopt;
  const std::string& name = arguments[at];
  if (among(kServices, name)) return Recognised{};
  if (among(kDrivers, name)) return Recognised{.kind = ProcessKind::driver, .app = "", .executor = ""};
  if (!among(kExecutors, name)) return std::nullopt;
  Recognised executor{.kind = ProcessKind::executor,
                      .app = value_of(arguments, at + 1, "--app-id"),
                      .executor = value_of(arguments, at + 1, "--executor-id")};
  if (!model::is_name(executor.app) || !model::is_name(executor.executor)) return std::nullopt;
  return executor;
}

std::vector<Process> find_processes(const std::filesystem::path& proc_root) {
  std::vector<Process> processes;
  std::error_code error;
  std::filesystem::directory_iterator entry(proc_root, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::filesystem::path& path = entry->path();
    const auto pid = number<pid_t>(path.filename().string());
    if (!pid || *pid <= 0) continue;
    const auto arguments = read_start(path / "cmdline", kMostCommandLine);
    // Nearly every process: no more than one file is read of it.
    if (arguments.find("org.apache.spark.") == std::string::npos) continue;
    auto what = recognise(split_at_nul(arguments));
    const auto started = start_of(path);
    auto cgroup = cgroup_of(path);
    if (!what || !started || !cgroup) continue;
    // Whoever had the pid when its start was read is the one that the rest is of.
    if (read_start(path / "cmdline", kMostCommandLine) != arguments || start_of(path) != started) continue;
    processes.push_back(
        {.pid = *pid, .started = *started, .cgroup = *std::move(cgroup), .what = *std::move(what)});
  }
  std::sort(processes.begin(), processes.end(),
            [](const Process& a, const Process& b) { return a.pid < b.pid; });
  return processes;
}

}  // namespace berth::spark
