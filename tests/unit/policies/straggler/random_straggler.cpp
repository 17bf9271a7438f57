// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/policies/straggler/random_straggler.h"

#include "tests/unit/policies/draws.h"
#include "tests/unit/policies/hosts.h"

#include <algorithm>
#include <string>

namespace berth::policies::testing {

namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

class Drawer : private Draws {
 public:
  using Draws::Draws;

  RandomCase draw() {
    RandomCase result{.snapshot = snapshot_of(host({.sockets = number(1, 2),
                                                    .llcs_per_socket = number(1, 2),
                                                    .cores_per_llc = number(1, 5),
                                                    .threads_per_core = number(1, 2)})),
                      .settings = {}};
    model::Snapshot& snapshot = result.snapshot;
    free_ = snapshot.topology.usable();
    snapshot.memory.total_bytes = chance(0.9) ? bytes(64) : 0;
    if (chance(0.6)) snapshot.straggler_seen_at = snapshot.time - number(-5, 60);
    StragglerSettings& settings = result.settings.straggler;
    if (chance(0.5)) {
      settings = {.max_growth = 1 + 3 * fraction(),
                  .expected_utilisation = 0.05 + 0.85 * fraction(),
                  .preempt_floor_cores = 0.01 + fraction(),
                  .restore_hold_s = 60.0 * fraction(),
                  .restore_step = 0.01 + 0.5 * fraction()};
    }
    if (chance(0.3)) result.settings.safety.min_change = 0.2 * fraction();
    InterferenceSettings& domains = result.settings.interference;
    domains.isolation = model::Isolation::vcpus;
    domains.allow_cross_socket = chance(0.2);
    domains.shared_domain = chance(0.8) ? model::DomainKind::llc : model::DomainKind::socket;
    domains.be_min_cpus = number(1, 3);
    if (chance(0.2)) domains.reserved_cpus.insert(0);
    domains.reserved = chance(0.5) ? Reserved::strict : Reserved::shared;
    const bool calm = chance(0.4);
    const int count = number(1, 12);
    for (int i = 0; i < count; ++i) snapshot.workloads.push_back(workload(snapshot, i, calm));
    for (int i = number(-3, 2); i > 0; --i) {
      model::PendingWorkload pending;
      pending.id = "pending-" + std::to_string(i);
      pending.workload_class =
          chance(0.7) ? model::WorkloadClass::latency_sensitive : model::WorkloadClass::best_effort;
      if (chance(0.8)) pending.vcpus = number(1, 3);
      if (chance(0.5)) pending.memory_request_bytes = bytes(4);
      if (chance(0.3)) pending.room_cpu_cores = number(0, 3);
      if (chance(0.3)) pending.room_memory_bytes = bytes(4);
      snapshot.pending.push_back(std::move(pending));
    }
    return result;
  }

 private:
  std::uint64_t bytes(double most_gib) {
    return static_cast<std::uint64_t>(most_gib * kGiB * fraction()) + 1;
  }

  model::Workload workload(const model::Snapshot& snapshot, int index, bool calm) {
    model::Workload made;
    made.id = "w" + std::to_string(number(0, 9)) + "-" + std::to_string(index);
    made.service = made.id;
    if (chance(0.4)) made.workload_class = model::WorkloadClass::latency_sensitive;
    const bool sensitive = made.workload_class == model::WorkloadClass::latency_sensitive;
    made.priority = number(0, 2);
    if (chance(0.6)) made.vcpus = number(1, 3);
    if (chance(0.55)) made.cpu_quota_cores = 0.01 + (chance(0.05) ? 100 : 4) * fraction();
    if (chance(0.4)) made.memory_request_bytes = bytes(8);
    if (chance(0.5)) made.memory_high_bytes = bytes(chance(0.1) ? 0.03 : 8);
    if (sensitive && made.vcpus && chance(0.6)) {
      for (int i = number(1, 4); i > 0 && !free_.empty(); --i) {
        const int cpu =
            free_.to_vector()[static_cast<std::size_t>(number(0, static_cast<int>(free_.size()) - 1))];
        made.cpus.insert(cpu);
        free_.erase(cpu);
      }
      if (chance(0.5)) made.pinned_at = snapshot.time - number(-2, 40);
    }
    if (chance(0.1)) made.allowed_cpus = model::CpuSet::range(0, number(0, 8));
    for (int i = number(0, 3); i > 0; --i) {
      model::UsageSample sample;
      sample.time = snapshot.time - i;
      sample.cpu_cores = made.cpu_quota_cores ? *made.cpu_quota_cores * fraction() : 3 * fraction();
      sample.memory_bytes =
          made.memory_high_bytes
              ? static_cast<std::uint64_t>(static_cast<double>(*made.memory_high_bytes) * fraction())
              : bytes(4);
      if (chance(0.05)) sample.progress = fraction();
      made.usage.push_back(sample);
    }
    if (chance(0.8)) made.deadline = snapshot.time + number(-20, 300);
    if (sensitive && chance(0.85)) made.progress = progress(snapshot.time, calm);
    if (chance(0.4)) draw_held(snapshot, made);
    if (!made.progress.empty() && chance(0.3)) made.progressed_at = snapshot.time - number(-5, 700);
    made.fixed = {.cpu = chance(0.15), .memory = chance(0.15)};
    if (chance(0.3)) made.straggled_at = snapshot.time - number(-2, 60);
    if (chance(0.3)) made.pressed_at = snapshot.time - number(-2, 60);
    if (chance(0.2)) made.cpu_throttled = chance(0.5) ? 0.0 : fraction();
    return made;
  }

  std::vector<model::ProgressReport> progress(double now, bool calm) {
    std::vector<model::ProgressReport> reports;
    const int count = number(0, 6);
    double time = now - (chance(0.8) ? 10 : 40) * count;
    double fraction_done = calm ? 0.8 : 0.3 * fraction();
    for (int i = 0; i < count; ++i) {
      reports.push_back({time, std::min(1.0, fraction_done)});
      time += chance(0.97) ? number(1, 10) : 0;
      fraction_done += calm ? 0.04 : (chance(0.03) ? -0.05 : 0.1) * fraction() * fraction();
      fraction_done = std::max(0.0, fraction_done);
    }
    return reports;
  }

  model::HeldLimit held(const model::Snapshot& snapshot, bool sensitive) {
    model::HeldLimit limit;
    const bool fits = chance(0.85);
    if (sensitive == fits) {
      limit.cause = model::HeldCause::extended;
    } else {
      limit.cause = chance(0.5) ? model::HeldCause::lent : model::HeldCause::preempted;
    }
    limit.since = snapshot.time - number(0, 5) * 20;
    limit.changed_at = limit.since + number(0, 20);
    return limit;
  }

  void draw_held(const model::Snapshot& snapshot, model::Workload& made) {
    const bool sensitive = made.workload_class == model::WorkloadClass::latency_sensitive;
    const bool cpu = chance(0.7);
    const bool memory = chance(0.5);
    model::OriginalLimits original;
    original.cpu_quota_cores = made.cpu_quota_cores;
    original.memory_high_bytes = made.memory_high_bytes;
    if (cpu) {
      made.held_cpu = held(snapshot, sensitive);
      original.cpu_quota_cores.reset();
      if (chance(0.7))
        original.cpu_quota_cores =
            made.cpu_quota_cores.value_or(1) * (sensitive ? 0.2 + 0.8 * fraction() : 1 + 4 * fraction());
    }
    if (memory) {
      made.held_memory = held(snapshot, sensitive);
      original.memory_high_bytes.reset();
      const double now = static_cast<double>(made.memory_high_bytes.value_or(1 << 20));
      if (chance(0.7))
        original.memory_high_bytes =
            static_cast<std::uint64_t>(now * (sensitive ? 0.2 + 0.8 * fraction() : 1 + 4 * fraction()));
    }
    made.original = original;
  }

  model::CpuSet free_;
};

}  // namespace

RandomCase random_straggler_case(std::uint64_t seed) {
  RandomCase drawn = Drawer(seed).draw();
  std::sort(drawn.snapshot.workloads.begin(), drawn.snapshot.workloads.end(),
            [](const auto& a, const auto& b) { return a.id < b.id; });
  return drawn;
}

}  // namespace berth::policies::testing
