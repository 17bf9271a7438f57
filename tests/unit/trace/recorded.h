// SPDX-License-Identifier: Apache-2.0
// A small host whose ticks are recorded in memory.
#pragma once

#include "model/json.h"
#include "trace/reader.h"
#include "trace/recorder.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth::trace::test {

constexpr int kHistory = 10;

inline model::Snapshot host_at(int tick) {
  model::Snapshot snapshot;
  snapshot.host = "node-a";
  snapshot.time = 1'790'000'000.0 + tick;
  snapshot.load1 = tick % 7;
  snapshot.memory.total_bytes = std::uint64_t{1} << 34;
  snapshot.memory.available_bytes = snapshot.memory.total_bytes / 2;
  std::vector<model::Cpu> cpus(2);
  cpus[1].cpu = cpus[1].core = 1;
  snapshot.topology = model::Topology::make(cpus).value();
  for (const std::string id : {"batch/x", "web/a"}) {
    if (id == "batch/x" && tick % 50 < 10) continue;  // it comes and goes
    model::Workload workload;
    workload.id = workload.service = id;
    workload.created = 1'790'000'000.0 + tick / 50 * 50;
    if (id == "web/a") workload.created = 1000;
    workload.priority = tick / 20;
    workload.cpu_time_s = tick * 0.5;
    const int first = id == "web/a" ? 0 : tick / 50 * 50 + 10;
    for (int i = std::max(first, tick - kHistory + 1); i <= tick; ++i) {
      model::UsageSample sample;
      sample.time = 1'790'000'000.0 + i;
      sample.cpu_cores = (i * 37 % 100) / 100.0;
      sample.memory_bytes = static_cast<std::uint64_t>(i) << 20;
      workload.usage.push_back(sample);
    }
    snapshot.workloads.push_back(std::move(workload));
  }
  return snapshot;
}

// Records snapshots as berthctl does. Each must be later than the one before. Throws what fails.
class InMemory {
 public:
  explicit InMemory(int history = kHistory)
      : writer_([this](std::string_view more) {
          bytes_ += more;
          return model::Result<void>();
        }),
        recorder_(checked(Recorder::begin(writer_.lines(), {"0.1.0", "node-a", 1'790'000'000, history}))) {}

  void add(const model::Snapshot& snapshot) {
    const bool whole = recorder_.wants_whole(snapshot.time);
    const std::string text =
        whole ? model::to_json(snapshot) : model::to_json_since(snapshot, recorder_.last_time());
    const auto added = recorder_.add(model::parse_snapshot(text).value().snapshot, text, whole);
    if (checked(added) != Recorder::Added::tick) throw std::runtime_error("the tick was not written");
  }
  void end() {
    checked(recorder_.end());
    checked(writer_.end());
  }
  const std::string& bytes() const { return bytes_; }

 private:
  static void checked(const model::Result<void>& result) {
    if (!result) throw std::runtime_error(result.error().message());
  }
  template <typename T>
  static T checked(model::Result<T> result) {
    if (!result) throw std::runtime_error(result.error().message());
    return std::move(*result);
  }

  std::string bytes_;
  Writer writer_;
  Recorder recorder_;
};

// The bytes of a trace of so many ticks. `ended`: with its last line.
inline std::string record(int ticks, bool ended = true) {
  InMemory trace;
  for (int tick = 0; tick < ticks; ++tick) trace.add(host_at(tick));
  if (ended) trace.end();
  return trace.bytes();
}

// Hands out `step` bytes at a time. `bytes` must outlive it.
inline Reader::Source source_of(std::string_view bytes, std::size_t step = 1000) {
  return [bytes, step, at = std::size_t{0}](char* buffer, std::size_t size) mutable {
    const std::size_t count = std::min({step, size, bytes.size() - at});
    std::memcpy(buffer, bytes.data() + at, count);
    at += count;
    return model::Result<std::size_t>(count);
  };
}

}  // namespace berth::trace::test
