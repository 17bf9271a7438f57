// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "topology/gpus.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace berth::topology {

// Reads GPUs on a thread of its own and hands back values: a call to a hanging driver never returns.
class GpuWatcher {
 public:
  // Reads at once, and again `interval_s` seconds after each reading. Never reads where there is a failure().
  GpuWatcher(ReadGpus read, std::vector<PciGpu> gpus, double interval_s);
  // Waits up to a second for the reading under way. A thread that is not back by then is left alone, with the
  // data that it needs.
  ~GpuWatcher();
  GpuWatcher(const GpuWatcher&) = delete;
  GpuWatcher& operator=(const GpuWatcher&) = delete;

  // Why it has no thread: the system refused one (pthread_create(3), EAGAIN).
  const std::optional<std::string>& failure() const { return failure_; }
  // Sets the GPUs of the next reading. Returns the number of this list; readings of the list carry it.
  // Earlier lists have smaller numbers.
  std::uint64_t set_gpus(std::vector<PciGpu> gpus);
  // The newest complete reading; null before there is one.
  std::shared_ptr<const GpuReadings> latest() const;
  // Age of the reading under way in seconds; 0 between two.
  double waiting_s() const;

 private:
  struct State;
  static void run(const std::shared_ptr<State>& state, const ReadGpus& read, double interval_s);

  std::shared_ptr<State> state_;
  std::optional<std::string> failure_;
};

}  // namespace berth::topology
