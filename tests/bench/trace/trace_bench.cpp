// SPDX-License-Identifier: Apache-2.0
// bench-trace [FILE]: records an hour of a busy host at one tick a second, with 200 workloads, and replays
// it. Prints the size of a day, the CPU time of recording as a share of a core, and the time of the replays.
// With FILE, the trace is also written there.
#include "model/json.h"
#include "replay/difference.h"
#include "replay/side.h"
#include "tests/unit/policies/hosts.h"
#include "trace/reader.h"
#include "trace/recorder.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <fstream>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

namespace {

namespace model = berth::model;
namespace trace = berth::trace;
namespace replay = berth::replay;
namespace testing = berth::policies::testing;

constexpr int kServices = 60;
constexpr int kBatch = 130;
constexpr int kTasks = 10;
constexpr int kIdle = 40;  // of the batch
constexpr int kTicks = 3600;
constexpr int kHistory = 60;
constexpr double kBegin = 1'790'000'000;

double cpu_s() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double wall_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A host of 2 sockets x 4 LLCs x 8 cores x 2 threads whose load moves all the time.
class Host {
 public:
  Host() {
    snapshot_ = testing::snapshot_of(testing::host({.sockets = 2, .llcs_per_socket = 4, .cores_per_llc = 8}));
    snapshot_.host = "bench";
    snapshot_.time = kBegin;
    snapshot_.memory = {.total_bytes = std::uint64_t{1} << 40, .available_bytes = std::uint64_t{1} << 39};
    for (int i = 0; i < kBatch; ++i) {
      auto workload = testing::best_effort(fmt::format("kubepods.slice/batch-{:04}.slice", i));
      workload.cpu_quota_cores = 1.5;
      workload.evictable = i % 2 == 0;
      snapshot_.workloads.push_back(std::move(workload));
    }
    for (int i = 0; i < kServices; ++i) {
      auto workload = testing::latency_sensitive(fmt::format("system.slice/web-{:04}.service", i), 1, i);
      workload.service = fmt::format("service-{}", i % 10);
      snapshot_.workloads.push_back(std::move(workload));
    }
    for (int i = 0; i < kTasks; ++i) {
      auto workload = testing::latency_sensitive(fmt::format("task.slice/task-{:04}.scope", i), 1, i);
      workload.cpu_quota_cores = 1;
      workload.deadline = kBegin + 1800 + 120 * i;
      snapshot_.workloads.push_back(std::move(workload));
    }
    for (auto& workload : snapshot_.workloads) {
      workload.created = kBegin - 1000;
      workload.memory_request_bytes = std::uint64_t{2} << 30;
      workload.cpu_time_s = 100;
    }
  }

  const model::Snapshot& tick() {
    ++tick_;
    snapshot_.time = kBegin + tick_ + real(0, 0.002);
    snapshot_.load1 = real(20, 40);
    snapshot_.memory.available_bytes = (std::uint64_t{1} << 39) + whole(1 << 20) * 4096;
    snapshot_.memory.psi_full_avg10 = tick_ % 600 < 60 ? real(0, 5) : 0;
    snapshot_.recent_use =
        model::RecentUse{std::min(tick_, 300), real(0.3, 0.6), real(0.4, 0.5), real(20, 40)};
    if (tick_ % 300 == 0) snapshot_.used_shares.push_back({snapshot_.time, real(0.3, 0.6), real(0.4, 0.5)});
    int index = 0;
    const model::UsageWindow* like = nullptr;
    for (auto& workload : snapshot_.workloads) {
      move(workload, index++);
      add_sample(workload, index <= kIdle, like);
      like = &workload.usage;
    }
    return snapshot_;
  }

 private:
  double real(double low, double high) { return std::uniform_real_distribution<double>(low, high)(random_); }
  std::uint64_t whole(std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>(0, most)(random_);
  }

  // Runs end, tasks report.
  void move(model::Workload& workload, int index) {
    const bool task = index >= kBatch + kServices;
    if (index < kBatch && whole(3600) == 0) {
      workload.created = snapshot_.time;
      workload.usage.clear();
    }
    if (!task || tick_ % 30 != 0) return;
    const double before = workload.progress.empty() ? 0 : workload.progress.back().fraction;
    workload.progress.push_back({snapshot_.time, std::min(1.0, before + real(0, 0.016))});
    if (workload.progress.size() > 8) workload.progress.erase(workload.progress.begin());
    workload.progressed_at = snapshot_.time;
  }

  void add_sample(model::Workload& workload, bool idle, const model::UsageWindow* like) {
    model::UsageSample sample;
    sample.time = snapshot_.time;
    sample.memory_bytes = (std::uint64_t{1} << 30);
    if (!idle) {
      sample.cpu_cores = real(0.1, 1);
      sample.memory_bytes = (std::uint64_t{1} << 30) + whole(1 << 16) * 4096;
      sample.runq_latency_us = real(5, 500);
      sample.runq_latency_p50_us = real(1, 5);
      sample.llc_mpki = real(0, 20);
      workload.cpi = real(0.5, 2);
      workload.llc_misses_per_s = real(1e5, 1e7);
    }
    *workload.cpu_time_s += sample.cpu_cores;
    workload.cache_bytes = (std::uint64_t{1} << 26) + (idle ? 0 : whole(100) * 4096);
    workload.usage.add(sample, kHistory, like);
  }

  model::Snapshot snapshot_;
  int tick_ = 0;
  std::mt19937_64 random_{7};
};

struct Cost {
  double daemon_s = 0;    // CPU time: the answers to the recorder
  double recorder_s = 0;  // CPU time: reading them, finding changes, compressing
  std::uint64_t text_bytes = 0;
};

template <typename Value>
void check(const model::Result<Value>& result) {
  if (!result) throw std::runtime_error(result.error().message());
}

std::string record(Cost& cost) {
  std::string bytes;
  trace::Writer writer([&bytes](std::string_view more) {
    bytes += more;
    return model::Result<void>();
  });
  auto recorder = trace::Recorder::begin(writer.lines(), {"bench", "bench", kBegin, kHistory});
  check(recorder);
  Host host;
  for (int i = 0; i < kTicks; ++i) {
    const model::Snapshot& snapshot = host.tick();
    const bool whole = recorder->wants_whole(snapshot.time);
    const double begun = cpu_s();
    const std::string text =
        whole ? model::to_json(snapshot) : model::to_json_since(snapshot, recorder->last_time());
    const double asked = cpu_s();
    auto parsed = model::parse_snapshot(text);
    check(parsed);
    check(recorder->add(std::move(parsed->snapshot), text, whole));
    cost.daemon_s += asked - begun;
    cost.recorder_s += cpu_s() - asked;
    cost.text_bytes += text.size();
  }
  check(recorder->end());
  check(writer.end());
  return bytes;
}

struct Replayed {
  double wall_s = 0;
  std::uint64_t ticks = 0;
  std::uint64_t decisions = 0;
  std::uint64_t differences = 0;
};

Replayed replay_trace(const std::string& bytes, int sides) {
  const double begun = wall_s();
  std::size_t at = 0;
  auto reader = trace::Reader::open([&](char* buffer, std::size_t size) {
    const std::size_t count = std::min(size, bytes.size() - at);
    std::memcpy(buffer, bytes.data() + at, count);
    at += count;
    return model::Result<std::size_t>(count);
  });
  check(reader);
  berth::policies::PolicySettings other;
  other.straggler.max_growth = 3;
  other.interference.weighting = berth::policies::Weighting::request;
  replay::Side first{{}};
  replay::Side second{other};
  replay::Differences differences(1000);
  Replayed result;
  while (reader->next()) {
    if (sides == 0) continue;
    const auto& decided = first.step(reader->snapshot());
    result.decisions += decided.size();
    if (sides > 1) differences.add(decided, second.step(reader->snapshot()));
  }
  if (reader->cut()) throw std::runtime_error(*reader->cut());
  result.ticks = reader->ticks();
  result.differences = differences.all();
  result.wall_s = wall_s() - begun;
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  Cost cost;
  const std::string bytes = record(cost);
  if (argc > 1) std::ofstream(argv[1], std::ios::binary) << bytes;
  constexpr double kMiB = 1 << 20;
  const double ticks = kTicks;
  fmt::print("{} workloads, {} ticks of one second\n", kBatch + kServices + kTasks, kTicks);
  fmt::print(
      "answers of berthd: {:.0f} KiB a tick; trace: {:.1f} KiB a tick, {:.1f} MiB an hour, {:.0f} MiB a "
      "day\n",
      static_cast<double>(cost.text_bytes) / ticks / 1024, static_cast<double>(bytes.size()) / ticks / 1024,
      static_cast<double>(bytes.size()) / kMiB, static_cast<double>(bytes.size()) / kMiB * 86400 / ticks);
  fmt::print("recording: {:.2f} % of a core in berthd, {:.2f} % in berthctl, without the bus\n",
             cost.daemon_s / ticks * 100, cost.recorder_s / ticks * 100);
  for (const int sides : {0, 1, 2}) {
    const Replayed replayed = replay_trace(bytes, sides);
    constexpr const char* kNames[] = {"read only", "replay", "replay --compare"};
    fmt::print("{}: {:.2f} s for {} ticks, {} decisions, {} differences\n", kNames[sides], replayed.wall_s,
               replayed.ticks, replayed.decisions, replayed.differences);
  }
  return 0;
}
