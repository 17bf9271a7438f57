// SPDX-License-Identifier: Apache-2.0
#include "daemon/serve/read_budget.h"

#include <algorithm>

namespace berth::daemon {

void ReadBudget::fill(Bucket& bucket, double size, double now) {
  bucket.left = std::min(size, bucket.left + size * std::max(0.0, now - bucket.at));
  bucket.at = now;
}

std::optional<double> ReadBudget::take(uid_t user, double steps, double now) {
  if (user == 0) return std::nullopt;
  steps = std::min(steps, kOfUser);
  // A user that has its whole share again need not be remembered.
  std::erase_if(users_, [now](const auto& item) { return now - item.second.at >= 1; });
  Bucket& own = users_.try_emplace(user, Bucket{kOfUser, now}).first->second;
  fill(own, kOfUser, now);
  fill(all_, kOfAll, now);
  const double wait = std::max((steps - own.left) / kOfUser, (steps - all_.left) / kOfAll);
  if (wait > 0) return wait;
  own.left -= steps;
  all_.left -= steps;
  return std::nullopt;
}

bool ReadBudget::take_unasked(double steps, double now) {
  steps = std::min(steps, kUnasked);
  fill(unasked_, kUnasked, now);
  if (unasked_.left < steps) return false;
  unasked_.left -= steps;
  return true;
}

}  // namespace berth::daemon
