// SPDX-License-Identifier: Apache-2.0
#include "topology/gpu_watcher.h"

#include "os/worker.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

namespace berth::topology {

using Steady = std::chrono::steady_clock;

// Shared with the thread, which may outlive the watcher.
struct GpuWatcher::State {
  std::mutex mutex;
  std::condition_variable changed;
  bool stop = false;
  bool ended = false;
  std::vector<PciGpu> gpus;
  std::uint64_t list = 1;
  std::shared_ptr<const GpuReadings> latest;
  std::optional<Steady::time_point> asked_at;  // of the reading under way
};

GpuWatcher::GpuWatcher(ReadGpus read, std::vector<PciGpu> gpus, double interval_s)
    : state_(std::make_shared<State>()) {
  state_->gpus = std::move(gpus);
  const auto refused = os::start_thread(
      [state = state_, read = std::move(read), interval_s] { run(state, read, interval_s); });
  if (!refused) return;
  state_->ended = true;
  failure_ = "no thread can be had: " + refused.message();
}

GpuWatcher::~GpuWatcher() {
  std::unique_lock lock(state_->mutex);
  state_->stop = true;
  state_->changed.notify_all();
  state_->changed.wait_for(lock, std::chrono::seconds(1), [this] { return state_->ended; });
}

std::uint64_t GpuWatcher::set_gpus(std::vector<PciGpu> gpus) {
  const std::lock_guard lock(state_->mutex);
  if (gpus != state_->gpus) {
    state_->gpus = std::move(gpus);
    ++state_->list;
  }
  return state_->list;
}

std::shared_ptr<const GpuReadings> GpuWatcher::latest() const {
  const std::lock_guard lock(state_->mutex);
  return state_->latest;
}

double GpuWatcher::waiting_s() const {
  const std::lock_guard lock(state_->mutex);
  if (!state_->asked_at) return 0;
  return std::chrono::duration<double>(Steady::now() - *state_->asked_at).count();
}

void GpuWatcher::run(const std::shared_ptr<State>& state, const ReadGpus& read, double interval_s) {
  std::unique_lock lock(state->mutex);
  while (!state->stop) {
    const std::vector<PciGpu> gpus = state->gpus;
    const std::uint64_t list = state->list;
    state->asked_at = Steady::now();
    lock.unlock();
    GpuReadings made = read(gpus);
    made.list = list;
    auto readings = std::make_shared<const GpuReadings>(std::move(made));
    lock.lock();
    state->asked_at.reset();
    state->latest = std::move(readings);
    state->changed.wait_for(lock, std::chrono::duration<double>(interval_s), [&] { return state->stop; });
  }
  state->ended = true;
  state->changed.notify_all();
}

}  // namespace berth::topology
