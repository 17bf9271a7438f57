// SPDX-License-Identifier: Apache-2.0
#include "os/file_descriptor.h"

#include <limits>

#include <sys/resource.h>

namespace berth::os {

std::size_t raised_file_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::numeric_limits<std::size_t>::max();
  const rlimit raised{limit.rlim_max, limit.rlim_max};
  if (limit.rlim_cur < limit.rlim_max && setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  return limit.rlim_cur;
}

}  // namespace berth::os
