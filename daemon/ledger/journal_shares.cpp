// SPDX-License-Identifier: Apache-2.0
#include "daemon/ledger/journal_shares.h"

#include "os/log.h"

#include <fmt/core.h>

namespace berth::daemon {

bool JournalShares::take(std::optional<uid_t> user, double now) {
  if (!user) return true;
  std::erase_if(shares_, [now](const auto& item) { return now - item.second.since >= kPeriod_s; });
  Share& share = shares_.try_emplace(*user, Share{now, 0}).first->second;
  if (share.sent > kMost) return false;
  if (++share.sent <= kMost) return true;
  os::log_warning(
      "{} had {} {} within {:.0f} s; berth leaves out more of them for the rest of that time",
      *user == kUnknown ? std::string("workloads that ended") : fmt::format("workloads of uid {}", *user),
      kMost, what_, kPeriod_s);
  return false;
}

}  // namespace berth::daemon
