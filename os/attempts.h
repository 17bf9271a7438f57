// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "os/worker.h"

#include <cstddef>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <sys/types.h>

namespace berth::os {

// Runs jobs that a user can hold up without end, each with a limited wait. An example is reading
// /proc/PID/cmdline: it needs the memory lock of the process, which a page fault on an unanswered FUSE file
// can keep.
//
// A job that is not done in time stays on its thread, and the next job gets another thread. So one that hangs
// holds up no other. The number of such threads has a limit, and of those of one user, too.
class Attempts {
 public:
  static constexpr Worker::Patience kPatience{500};  // long enough for a busy host, and short for a loop
  static constexpr std::size_t kMost = 8;
  static constexpr std::size_t kMostOfUser = 2;  // root has no limit of its own

  // The job's result. nullopt where it is not done after kPatience. Also nullopt, at once, while an earlier
  // job `of` the same thing hangs, or too many do. `user` can hold the job up. The job must own all that it
  // uses, and must not throw.
  template <typename Job>
  auto run(const std::string& of, uid_t user, Job job) -> std::optional<std::invoke_result_t<Job&>> {
    if (!may_begin(of, user)) return std::nullopt;
    auto result = worker_->run(std::move(job), kPatience);
    if (!result) hung_.push_back({of, user, std::exchange(worker_, nullptr)});
    return result;
  }

 private:
  struct Hung {
    std::string of;
    uid_t user = 0;
    std::unique_ptr<Worker> worker;
  };
  // Forgets jobs that have ended. Makes a worker if it returns true.
  bool may_begin(const std::string& of, uid_t user);

  std::unique_ptr<Worker> worker_;  // idle
  std::list<Hung> hung_;
};

}  // namespace berth::os
