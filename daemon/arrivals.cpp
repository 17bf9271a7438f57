// SPDX-License-Identifier: Apache-2.0
#include "daemon/arrivals.h"

#include <algorithm>

namespace berth::daemon {

bool Arrivals::Allowance::take(double now_s, double interval_s) {
  left = std::min(kMost, left + (now_s - at_s) / interval_s);
  at_s = now_s;
  if (left < 1) return false;
  left -= 1;
  return true;
}

bool Arrivals::add(bool by_user, double now_s, double interval_s) {
  if (due_) return false;
  due_ = (by_user ? of_users_ : of_root_).take(now_s, interval_s);
  return due_;
}

}  // namespace berth::daemon
