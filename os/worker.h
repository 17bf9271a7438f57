// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace berth::os {

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

  // Starts the thread, unless there is one. False where the host has none to give now (EAGAIN of
  // pthread_create(3)): its table of processes may be full.
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

}  // namespace berth::os
