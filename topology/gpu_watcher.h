// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "topology/gpu_reading.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace berth::topology {

// Reads GPUs on a thread of its own and hands back values: a driver that hangs keeps a call for ever.
class GpuWatcher {
 public:
  // Reads at once, and again `interval_s` seconds after each reading; never where there is a failure().
  GpuWatcher(ReadGpus read, std::vector<PciGpu> gpus, double interval_s);
  // Waits up to a second for the reading under way; a thread that is not back by then is left to itself, with
  // what it needs.
  ~GpuWatcher();
  GpuWatcher(const GpuWatcher&) = delete;
  GpuWatcher& operator=(const GpuWatcher&) = delete;

  // Why it has no thread: the system has none to give (pthread_create(3), EAGAIN).
  const std::optional<std::string>& failure() const { return failure_; }
  // Those that the next reading is of. Returns the number of this list, which readings of it bear; the lists
  // before have smaller ones.
  std::uint64_t set_gpus(std::vector<PciGpu> gpus);
  // The newest whole one; null before there is any.
  std::shared_ptr<const GpuReadings> latest() const;
  // Seconds for which the reading under way has been so; 0 between two.
  double waiting_s() const;

 private:
  struct State;
  static void run(const std::shared_ptr<State>& state, const ReadGpus& read, double interval_s);

  std::shared_ptr<State> state_;
  std::optional<std::string> failure_;
};

}  // namespace berth::topology
