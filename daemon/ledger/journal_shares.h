// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include <sys/types.h>

namespace berth::daemon {

// Whether the journal may have another message about the workload; see Messenger::may_announce().
using MayAnnounce = std::function<bool(const std::string& workload)>;

// Limits the messages about workloads of one user in the journal, or the entries in the decision log. A user
// can make workloads without end, journald drops messages of a service that sends too many, and the log drops
// its oldest entries. Workloads where only root makes cgroups have no limit.
class JournalShares {
 public:
  static constexpr int kMost = 100;
  static constexpr double kPeriod_s = 60;
  // For workloads whose user is not known any more.
  static constexpr uid_t kUnknown = static_cast<uid_t>(-1);

  // `what`: a noun in the plural for the warning, such as "messages".
  explicit JournalShares(const char* what = "messages") : what_(what) {}

  // Whether another message about a workload of `user` (nullopt: root) may be sent at `now`, monotonic
  // seconds. Says in the log when it is the first one that may not.
  bool take(std::optional<uid_t> user, double now);

 private:
  struct Share {
    double since = 0;
    int sent = 0;
  };
  const char* what_;
  std::map<uid_t, Share> shares_;  // of the last period
};

}  // namespace berth::daemon
