// SPDX-License-Identifier: Apache-2.0
#include "os/attempts.h"

#include <algorithm>

namespace berth::os {

bool Attempts::may_begin(const std::string& of, uid_t user) {
  std::erase_if(hung_, [](const Hung& hung) { return !hung.worker->is_busy(); });
  const auto of_user =
      std::count_if(hung_.begin(), hung_.end(), [user](const Hung& hung) { return hung.user == user; });
  if (hung_.size() >= kMost || (user != 0 && of_user >= static_cast<std::ptrdiff_t>(kMostOfUser)) ||
      std::any_of(hung_.begin(), hung_.end(), [&of](const Hung& hung) { return hung.of == of; }))
    return false;
  if (!worker_) worker_ = std::make_unique<Worker>();
  return true;
}

}  // namespace berth::os
