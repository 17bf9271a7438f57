// SPDX-License-Identifier: Apache-2.0
#include "spark/process_finder.h"

#include "os/proc_files.h"
#include "os/worker.h"

#include <algorithm>
#include <condition_variable>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/core.h>
#include <sys/stat.h>

namespace berth::spark {

namespace {

// Whose share of hung readings a process counts for: its user's, by the owner of /proc/PID. Processes of root
// count for their cgroup, as containers often run as root. Neither file waits for the process.
std::string party_of(const std::filesystem::path& proc_root, pid_t pid) {
  const auto process = proc_root / std::to_string(pid);
  struct stat status {};
  if (stat(process.c_str(), &status) == 0 && status.st_uid != 0) return fmt::format("user {}", status.st_uid);
  return os::cgroup_of(process).value_or("");
}

}  // namespace

// Reads processes on a thread of its own, which owns it together with its maker.
struct ProcessFinder::Scan {
  Scan(std::filesystem::path root, std::vector<pid_t> all)
      : proc_root(std::move(root)), pids(std::move(all)) {}

  const std::filesystem::path proc_root;
  const std::vector<pid_t> pids;  // ascending
  std::mutex mutex;
  std::condition_variable ended;
  std::size_t at = 0;  // the one that is read now
  std::vector<Process> found;
  bool given_up = false;
  bool over = false;

  void run() {
    for (std::size_t next = 0; begin(next); ++next) {
      auto process = find_process(proc_root, pids[next]);
      const std::lock_guard lock(mutex);
      if (process && !given_up) found.push_back(*std::move(process));
    }
    const std::lock_guard lock(mutex);
    over = true;
    ended.notify_all();
  }

 private:
  bool begin(std::size_t next) {
    const std::lock_guard lock(mutex);
    if (given_up || next == pids.size()) return false;
    at = next;
    return true;
  }
};

// All processes but those whose reading hangs, and those of parties with too many of that kind.
std::vector<pid_t> ProcessFinder::readable(std::set<pid_t>& unread) {
  std::erase_if(hung_, [](const Hung& hung) {
    const std::lock_guard lock(hung.scan->mutex);
    return hung.scan->over;
  });
  std::map<std::string, std::size_t> count;
  for (const Hung& hung : hung_) ++count[hung.party];
  const bool crowded = std::any_of(count.begin(), count.end(),
                                   [](const auto& item) { return item.second >= kMostHungOfParty; });
  auto pids = os::pids_of(proc_root_);
  std::erase_if(pids, [&](pid_t pid) {
    bool skip = std::any_of(hung_.begin(), hung_.end(), [pid](const Hung& hung) { return hung.pid == pid; });
    if (!skip && crowded) {
      const auto of_party = count.find(party_of(proc_root_, pid));
      skip = of_party != count.end() && of_party->second >= kMostHungOfParty;
    }
    if (skip) unread.insert(pid);
    return skip;
  });
  return pids;
}

// Returns why the scan has no thread: a host without a free process number refuses one, to root too.
std::optional<std::string> ProcessFinder::start(const std::shared_ptr<Scan>& scan) {
  if (const std::error_code refused = os::start_thread([scan] { scan->run(); }))
    return "no thread can be had: " + refused.message();
  return std::nullopt;
}

// Returns false where one process is not read in time. The scan then ends with that process.
bool ProcessFinder::finish(const std::shared_ptr<Scan>& scan) {
  std::unique_lock lock(scan->mutex);
  for (;;) {
    const std::size_t before = scan->at;
    if (scan->ended.wait_for(lock, kPatience, [&] { return scan->over; })) return true;
    if (scan->at != before) continue;
    scan->given_up = true;
    return false;
  }
}

ProcessFinder::Found ProcessFinder::find() {
  Found all;
  for (auto pids = readable(all.unread); !pids.empty();) {
    if (hung_.size() >= kMostHung) {
      all.unread.insert(pids.begin(), pids.end());
      break;
    }
    const auto scan = std::make_shared<Scan>(proc_root_, std::move(pids));
    all.failure = start(scan);
    if (all.failure) {
      all.unread.insert(scan->pids.begin(), scan->pids.end());
      break;
    }
    const bool whole = finish(scan);
    std::optional<pid_t> hangs;
    {
      const std::lock_guard lock(scan->mutex);
      std::move(scan->found.begin(), scan->found.end(), std::back_inserter(all.processes));
      if (!whole) hangs = scan->pids[scan->at];
    }
    if (!hangs) break;
    all.unread.insert(*hangs);
    hung_.push_back({scan, *hangs, party_of(proc_root_, *hangs)});
    pids = readable(all.unread);
    std::erase_if(pids, [&](pid_t pid) { return pid <= *hangs; });
  }
  return all;
}

}  // namespace berth::spark
