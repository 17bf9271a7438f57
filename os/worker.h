// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include <sys/types.h>

namespace berth::os {

// Starts a thread that is never joined. All signals are blocked in it: the main thread takes them. Error: the
// host has no thread to give now (EAGAIN of pthread_create(3)), as its table of processes may be full.
std::error_code start_thread(std::function<void()> run);

// Runs one job at a time on a thread of its own, for calls that can take longer than the caller may wait:
// D-Bus calls, and writes that the kernel holds.
class Worker {
 public:
  using Patience = std::chrono::milliseconds;

  Worker() = default;
  Worker(Worker&&) = default;
  Worker& operator=(Worker&&) = delete;
  // Does not wait for a job that still runs.
  ~Worker();

  // Starts the thread, unless there is one. False where the host has none to give now.
  bool can_run();
  // The job's result. nullopt where the job still runs after `patience`, or was not begun: an earlier one
  // still runs, or can_run() is false. An earlier job is waited for only once: each later call then returns
  // at once, until that job has ended. So the job must own all that it uses, and must not throw.
  template <typename Job>
  auto run(Job job, Patience patience) -> std::optional<std::invoke_result_t<Job&>> {
    auto result = std::make_shared<std::optional<std::invoke_result_t<Job&>>>();
    if (!begin([job = std::move(job), result]() mutable { result->emplace(job()); }, patience)) return {};
    return std::move(*result);
  }

  // Whether a job still runs.
  bool is_busy() const;
  // Makes the next call wait again for a job that was given up.
  void wait_again() { given_up_ = false; }

 private:
  struct Shared;
  // True where the job has ended.
  bool begin(std::function<void()> job, Patience patience);

  std::shared_ptr<Shared> shared_;
  bool given_up_ = false;
};

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
