// SPDX-License-Identifier: Apache-2.0
#include "os/proc_files.h"

#include "model/number.h"
#include "model/text.h"
#include "os/file_descriptor.h"
#include "os/read_file.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <system_error>

#include <fcntl.h>

namespace berth::os {

namespace {

// stat holds a name of 15 bytes and some 50 numbers.
constexpr std::size_t kMostStat = 4096;
// A process in thousands of groups has a longer one: the fields behind the groups count as unreadable then.
constexpr std::size_t kMostStatus = 64 * std::size_t{1024};
// One line for each hierarchy of cgroup v1, each with a path.
constexpr std::size_t kMostCgroups = 64 * std::size_t{1024};
constexpr std::size_t kMostStatm = 256;

// The words of `text` between blanks and line breaks.
std::vector<std::string_view> words_of(std::string_view text) {
  constexpr std::string_view kBlank = " \t\n";
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t begin = text.find_first_not_of(kBlank);
    if (begin == std::string_view::npos) return words;
    text.remove_prefix(begin);
    const std::size_t end = std::min(text.find_first_of(kBlank), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

std::optional<uid_t> user_id(const std::filesystem::path& process, std::size_t which) {
  const auto field = status_field(process, "Uid");
  if (!field) return std::nullopt;
  const auto users = words_of(*field);  // real, effective, saved, of the file system
  return which < users.size() ? model::to_number<uid_t>(users[which]) : std::nullopt;
}

}  // namespace

std::vector<pid_t> pids_of(const std::filesystem::path& proc_root) {
  std::vector<pid_t> pids;
  std::error_code error;
  std::filesystem::directory_iterator entry(proc_root, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const auto pid = model::to_number<pid_t>(entry->path().filename().string());
    if (pid && *pid > 0) pids.push_back(*pid);
  }
  std::sort(pids.begin(), pids.end());
  return pids;
}

std::string read_start(const std::filesystem::path& file, std::size_t most) {
  std::string text;
  const FileDescriptor fd(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd) read_up_to(fd.get(), most, text);
  return text;
}

std::optional<Stat> read_stat(const std::filesystem::path& process) {
  const std::string text = read_start(process / "stat", kMostStat);
  // The name stands in brackets, and may hold anything.
  const std::size_t open = text.find('(');
  const std::size_t close = text.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return std::nullopt;
  const auto fields = words_of(std::string_view(text).substr(close + 1));  // from the third one on
  if (fields.size() < 20 || fields[0].size() != 1) return std::nullopt;
  const auto parent = model::to_number<pid_t>(fields[1]);
  const auto flags = model::to_number<unsigned>(fields[6]);
  const auto threads = model::to_number<int>(fields[17]);
  const auto started = model::to_number<std::uint64_t>(fields[19]);
  if (!parent || !flags || !threads || !started) return std::nullopt;
  return Stat{.name = text.substr(open + 1, close - open - 1),
              .state = fields[0].front(),
              .parent = *parent,
              .flags = *flags,
              .threads = *threads,
              .started = *started};
}

bool hangs_for_good(const std::filesystem::path& process) {
  constexpr unsigned kExiting = 0x4;  // PF_EXITING: in do_exit()
  constexpr std::uint64_t kKill = std::uint64_t{1} << (SIGKILL - 1);
  bool hangs = false;
  for (const pid_t thread : pids_of(process / "task")) {
    const auto directory = process / "task" / std::to_string(thread);
    const auto stat = read_stat(directory);
    if (!stat) return false;
    if (stat->state == 'Z' || stat->state == 'X') continue;
    // The kernel gives SIGKILL to each thread. No thread leaves the kernel while it is pending.
    const auto pending = status_field(directory, "SigPnd");
    if ((stat->flags & kExiting) == 0 &&
        (!pending || (std::strtoull(pending->c_str(), nullptr, 16) & kKill) == 0))
      return false;
    hangs = true;
  }
  return hangs;
}

std::optional<std::string> status_field(const std::filesystem::path& process, std::string_view name) {
  const std::string text = read_start(process / "status", kMostStatus);
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    // A field that the limit cuts off would be another one.
    if (end == rest.size() && text.size() == kMostStatus) return std::nullopt;
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (!line.starts_with(name) || !line.substr(name.size()).starts_with(':')) continue;
    line.remove_prefix(name.size() + 1);
    return std::string(model::trimmed_start(line, model::kBlanks));
  }
  return std::nullopt;
}

std::optional<uid_t> user_of(const std::filesystem::path& process) { return user_id(process, 3); }

std::optional<std::string> cgroup_of(const std::filesystem::path& process) {
  const std::string text = read_start(process / "cgroup", kMostCgroups);
  constexpr std::string_view kUnified = "0::/";
  const std::size_t line = text.starts_with(kUnified) ? 0 : text.find("\n0::/");
  if (line == std::string::npos) return std::nullopt;
  const std::size_t begin = text.find('/', line) + 1;
  const std::size_t end = text.find('\n', begin);
  // A path that the limit cuts off would name another group.
  if (end == std::string::npos && text.size() == kMostCgroups) return std::nullopt;
  return text.substr(begin, end == std::string::npos ? end : end - begin);
}

std::optional<std::string> cgroup_of_process(const std::filesystem::path& proc_root, pid_t pid, uid_t uid) {
  const auto process = proc_root / std::to_string(pid);
  auto path = cgroup_of(process);
  // After the path: the user is then that of the process whose path was read, or of a later one.
  return user_id(process, 1) == uid ? path : std::nullopt;
}

std::optional<MemoryUse> read_memory_use(const std::filesystem::path& process) {
  const std::string text = read_start(process / "statm", kMostStatm);
  const auto pages = words_of(text);  // size, resident, shared, ...
  if (pages.size() < 3) return std::nullopt;
  const auto resident = model::to_number<std::uint64_t>(pages[1]);
  const auto shared = model::to_number<std::uint64_t>(pages[2]);
  if (!resident || !shared) return std::nullopt;
  const auto page_bytes = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return MemoryUse{.resident_bytes = *resident * page_bytes, .shared_bytes = *shared * page_bytes};
}

std::optional<std::uint64_t> private_memory_bytes(const std::filesystem::path& proc_root,
                                                  const std::vector<pid_t>& pids) {
  std::optional<std::uint64_t> sum;
  for (const pid_t pid : pids) {
    const auto use = read_memory_use(proc_root / std::to_string(pid));
    if (!use) continue;
    sum = sum.value_or(0) +
          (use->resident_bytes > use->shared_bytes ? use->resident_bytes - use->shared_bytes : 0);
  }
  return sum;
}

}  // namespace berth::os
