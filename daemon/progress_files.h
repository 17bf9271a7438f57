// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/discovery.h"
#include "cgroup/file_descriptor.h"
#include "daemon/progress_file.h"
#include "daemon/progress_path.h"
#include "daemon/progress_reports.h"

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

// Reads the progress files of workloads whose rule names one (docs/progress.md): as soon as inotify(7) tells
// of a change, and at every tick what that did not. A file may come, go, be written in place, appended to or
// replaced at any time, and its directory too.
class ProgressFiles {
 public:
  explicit ProgressFiles(std::filesystem::path proc_root);
  ~ProgressFiles();
  ProgressFiles(const ProgressFiles&) = delete;
  ProgressFiles& operator=(const ProgressFiles&) = delete;

  // From here on `changed` is called on the loop's thread when process() has work.
  void attach(sd_event* event, std::function<void()> changed);
  // Only follow() reads from here on; before the loop ends.
  void detach();

  // Watches the files of these workloads and no others, and reads those that changed into `reports`; `now` in
  // epoch seconds. A report's time is the file's, or `now` where that is not after the last one. What was
  // last written before the workload began is an earlier run's. Returns what is wrong, each said once a run.
  std::vector<std::string> follow(const std::map<std::string, cgroup::FoundWorkload>& found,
                                  ProgressReports& reports, double now);
  // Takes in what inotify has to tell; never blocks. `found` tells which run of a workload it is that writes
  // now: a restarted one is followed from here on.
  std::vector<std::string> process(const std::map<std::string, cgroup::FoundWorkload>& found,
                                   ProgressReports& reports, double now);

 private:
  struct Watched;

  void keep_watching(const std::map<std::string, cgroup::FoundWorkload>& found,
                     std::vector<std::string>& messages);
  bool watch_way(Watched& watched, const WayToFile& way);
  void put_watch(Watched& watched, int& slot, int watch);
  void check(Watched& watched, bool changed, ProgressReports& reports, double now,
             std::vector<std::string>& messages);
  void unreachable(Watched& watched, const model::Error& error, std::vector<std::string>& messages);
  void take_event(int watch, std::uint32_t mask, const std::string& name, std::set<Watched*>& touched);
  static int on_event(sd_event_source* source, int fd, std::uint32_t events, void* userdata);

  std::filesystem::path proc_root_;
  cgroup::FileDescriptor inotify_;
  std::map<std::string, std::unique_ptr<Watched>> workloads_;  // by id
  std::map<int, std::set<Watched*>> users_;                    // of each watch: directories are shared
  sd_event_source* source_ = nullptr;
  std::function<void()> changed_;
};

}  // namespace berth::daemon
