// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/discovery.h"
#include "daemon/ledger/journal_shares.h"
#include "daemon/observe/progress_file.h"
#include "daemon/observe/progress_reports.h"
#include "os/event_source.h"
#include "os/file_descriptor.h"
#include "os/safe_path.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <systemd/sd-event.h>

namespace berth::daemon {

// Reads the progress files of workloads whose rule names one (docs/progress.md). It reads on each change that
// inotify(7) reports, and finds other changes at every tick. A file, and its directory too, may come, go, be
// written in place, appended to or replaced at any time.
class ProgressFiles {
 public:
  explicit ProgressFiles(std::filesystem::path proc_root);
  ~ProgressFiles();
  ProgressFiles(const ProgressFiles&) = delete;
  ProgressFiles& operator=(const ProgressFiles&) = delete;

  // From now on `changed` is called on the loop's thread when process() has work.
  void attach(sd_event* event, std::function<void()> changed);
  // From now on only follow() reads. Call it before the loop ends.
  void detach();

  // Watches the files of these workloads and no others, and reads changed ones into `reports`; `now` in epoch
  // seconds. Files have times of the wall clock, which is `wall_ahead_s` ahead of `now`. A report's time is
  // the file's, or `now` where that is not after the last one or lies in the future. A file that was last
  // written before the workload began belongs to an earlier run. `generation` is another number whenever
  // `found` has changed. Returns the faults, each once a run.
  std::vector<std::string> follow(const std::map<std::string, cgroup::FoundWorkload>& found,
                                  std::uint64_t generation, ProgressReports& reports, double now,
                                  double wall_ahead_s = 0);
  // Takes in the pending events of inotify; never blocks. `found` has the present run of each workload: a
  // restarted one is followed from now on.
  std::vector<std::string> process(const std::map<std::string, cgroup::FoundWorkload>& found,
                                   ProgressReports& reports, double now, double wall_ahead_s = 0);

 private:
  struct Watched;

  void keep_watching(const std::map<std::string, cgroup::FoundWorkload>& found,
                     std::vector<std::string>& messages);
  bool watch_way(Watched& watched, const os::WayToFile& way);
  void put_watch(Watched& watched, int& slot, int watch);
  void check(Watched& watched, bool changed, ProgressReports& reports, double now, double wall_ahead_s,
             std::vector<std::string>& messages);
  void unreachable(Watched& watched, const model::Error& error, std::vector<std::string>& messages);
  void take_event(int watch, std::uint32_t mask, const std::string& name, std::set<Watched*>& touched);
  static int on_event(sd_event_source* source, int fd, std::uint32_t events, void* userdata);

  std::filesystem::path proc_root_;
  os::FileDescriptor inotify_;
  std::map<std::string, std::unique_ptr<Watched>> workloads_;  // by id
  std::optional<std::uint64_t> followed_;                      // the generation that workloads_ is of
  std::map<int, std::set<Watched*>> users_;                    // of each watch: directories are shared
  JournalShares shares_;                                       // of faults
  os::EventSource source_;
  std::function<void()> changed_;
};

}  // namespace berth::daemon
