// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/model/generators.h"

#include "model/json.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace berth::model::testing {

namespace {

namespace gen = rc::gen;

int count_up_to(int highest) { return *gen::inRange(0, highest + 1); }
bool one_in(int n) { return *gen::inRange(0, n) == 0; }
std::uint64_t some_bytes() { return *gen::inRange<std::uint64_t>(0, (std::uint64_t{1} << 40) + 1); }

std::vector<Cpu> cpu_list(const TopologyShape& shape) {
  const int sockets = *gen::inRange(1, shape.max_sockets + 1);
  const int llcs = *gen::inRange(1, shape.max_llcs_per_socket + 1);
  const int cores = *gen::inRange(1, shape.max_cores_per_llc + 1);
  const int threads = *gen::inRange(1, shape.max_threads + 1);
  const bool has_llc = !one_in(5);
  const bool node_per_llc = one_in(3);
  const bool adjacent = *gen::arbitrary<bool>();
  const bool hybrid = one_in(4);
  const int all_cores = sockets * llcs * cores;
  std::vector<Cpu> cpus;
  for (int core = 0; core < all_cores; ++core)
    for (int thread = 0; thread < threads; ++thread) {
      Cpu cpu;
      cpu.cpu = adjacent ? core * threads + thread : thread * all_cores + core;
      cpu.core = core;
      const int llc = core / cores;
      if (has_llc) cpu.llc = llc;
      cpu.socket = core / (cores * llcs);
      cpu.numa = node_per_llc ? llc : cpu.socket;
      if (hybrid) cpu.efficiency = core % 2;
      if (!shape.all_usable && !cpus.empty()) {  // the first one stays usable
        cpu.online = !one_in(8);
        cpu.allowed = !one_in(8);
      }
      cpus.push_back(cpu);
    }
  return cpus;
}

NumaDistances distances_of(int nodes) {
  NumaDistances distances;
  if (one_in(2)) return distances;
  for (int node = 0; node < nodes; ++node) distances.nodes.push_back(node);
  for (int pair = 0; pair < nodes * nodes; ++pair)
    distances.values.push_back(*gen::element(10, 16, 21, 32, kMaxNumaDistance));
  return distances;
}

std::vector<Gpu> gpu_list(int nodes) {
  std::vector<Gpu> gpus;
  const int count = count_up_to(3);
  for (int index = 0; index < count; ++index) {
    Gpu gpu;
    gpu.id = "0000:" + std::to_string(10 + index) + ":00.0";
    gpu.vendor = *gen::element<std::string>("nvidia", "amd", "");
    gpu.model = *names();
    if (!one_in(3)) gpu.numa = *gen::inRange(0, nodes);
    if (!one_in(4)) gpu.memory_bytes = some_bytes();
    if (!one_in(4)) gpu.memory_used_bytes = std::min(gpu.memory_bytes.value_or(kMaxBytes), some_bytes());
    if (!one_in(4)) gpu.utilisation = *fractions();
    gpu.healthy = !one_in(4);
    if (!gpu.healthy) gpu.problem = *names();
    if (one_in(2)) gpu.other_processes = *gen::inRange(0, 5);
    gpus.push_back(gpu);
  }
  for (std::size_t b = 0; b < gpus.size(); ++b) {
    for (std::size_t a = 0; a < b; ++a) {
      if (one_in(2)) continue;
      const auto link = kGpuLinks[static_cast<std::size_t>(*gen::inRange(0, 6))];
      gpus[a].links.push_back({.id = gpus[b].id, .link = link});
      if (one_in(2)) gpus[b].links.push_back({.id = gpus[a].id, .link = link});
    }
  }
  return gpus;
}

std::vector<UsageSample> samples(int max_samples) {
  std::vector<UsageSample> usage;
  double time = *amounts(1e9);
  const int count = count_up_to(max_samples);
  for (int index = 0; index < count; ++index) {
    time += *amounts(60);
    UsageSample sample;
    sample.time = time;
    sample.cpu_cores = *amounts(8);
    if (!one_in(4)) sample.memory_bytes = some_bytes();
    if (one_in(2)) sample.progress = *fractions();
    if (one_in(2)) sample.runq_latency_us = *amounts(1e6);
    if (one_in(2)) sample.runq_latency_p50_us = *amounts(1e6);
    if (one_in(2)) sample.llc_mpki = *amounts(100);
    usage.push_back(sample);
  }
  return usage;
}

HeldLimit held_limit() {
  HeldLimit held;
  held.cause = *gen::element(HeldCause::extended, HeldCause::lent, HeldCause::preempted, HeldCause::lifted);
  held.since = *amounts(1e9);
  held.changed_at = held.since + *amounts(1e3);
  return held;
}

std::vector<ProgressReport> reports() {
  std::vector<ProgressReport> progress;
  double time = *amounts(1e9);
  const int count = count_up_to(5);
  for (int index = 0; index < count; ++index) {
    time += *amounts(60);
    progress.push_back({time, *fractions()});
  }
  return progress;
}

CpuSet some_of(const CpuSet& cpus, int most) {
  const int wanted = count_up_to(most);
  CpuSet chosen;
  const std::vector<int> all = cpus.to_vector();
  if (all.empty()) return chosen;
  for (int index = 0; index < wanted; ++index)
    chosen.insert(all[static_cast<std::size_t>(*gen::inRange(0, static_cast<int>(all.size())))]);
  return chosen;
}

Workload workload(const Snapshot& snapshot, const SnapshotShape& shape, CpuSet& free) {
  Workload made;
  made.id = *names() + "." + std::to_string(snapshot.workloads.size());
  made.service = one_in(3) ? made.id : *gen::element<std::string>("web", "db", "batch");
  made.workload_class = *gen::element(WorkloadClass::latency_sensitive, WorkloadClass::best_effort);
  if (!one_in(4)) made.vcpus = *gen::inRange(1, 5);
  made.memory_request_bytes = some_bytes();
  const bool exclusive = shape.exclusive_pins && made.workload_class == WorkloadClass::latency_sensitive;
  if (one_in(2)) {
    made.cpus = some_of(exclusive ? free : snapshot.topology.all(), 4);
    if (exclusive) free -= made.cpus;
    if (one_in(5)) made.leaf_since = *amounts(1e9);
    if (!made.cpus.empty() && one_in(2)) made.pinned_at = *amounts(1e9);
  }
  if (one_in(4)) made.allowed_cpus = some_of(snapshot.topology.all(), 8);
  if (one_in(3)) made.cpu_quota_cores = 0.01 + *amounts(16);
  if (one_in(3)) made.memory_high_bytes = some_bytes();
  made.priority = *gen::inRange(-5, 200);
  made.evictable = one_in(2);
  made.created = *amounts(1e9);
  if (one_in(3)) made.deadline = *amounts(1e9);
  if (one_in(4)) {
    SparkIdentity spark{"app-1", *gen::element(SparkRole::executor, SparkRole::driver), std::nullopt};
    if (spark.role == SparkRole::executor) spark.executor = *names();
    made.spark = spark;
  }
  if (one_in(6)) made.spared = "is shared by " + *names();
  for (const Gpu& gpu : snapshot.topology.gpus())
    if (one_in(4)) made.gpus.push_back(gpu.id);
  if (one_in(3)) {
    OriginalLimits original;
    if (one_in(2)) original.cpu_quota_cores = 0.01 + *amounts(16);
    if (one_in(2)) original.memory_high_bytes = some_bytes();
    made.original = original;
  }
  if (one_in(4)) made.held_cpu = held_limit();
  if (one_in(4)) made.held_memory = held_limit();
  made.fixed = {.cpu = one_in(6), .memory = one_in(6), .life = one_in(6), .memory_nodes = one_in(6)};
  if (one_in(6)) made.left_alone = "it owns vCPUs 1,3";
  if (one_in(4)) made.others[Attribute::cpu_burst] = CpuBurst{200'000};
  if (one_in(6)) made.fixed.others.insert(Attribute::cpu_burst);
  made.force = one_in(4);
  if (one_in(4)) made.isolation = *gen::element(Isolation::shared, Isolation::vcpus, Isolation::cores);
  if (one_in(6)) made.home = CpuSet{0, 2};
  made.shares = one_in(6);
  if (one_in(4)) made.user = 1000;
  if (one_in(4)) made.memory_nodes = CpuSet::parse("0-1").value();
  if (one_in(4)) made.evicted_at = *amounts(1e9);
  if (one_in(4)) made.straggled_at = *amounts(1e9);
  if (one_in(4)) made.pressed_at = *amounts(1e9);
  if (one_in(4)) made.progressed_at = *amounts(1e9);
  if (one_in(4)) made.cpu_throttled = *fractions();
  if (one_in(4)) made.cpu_lacked = *amounts(8);
  if (one_in(4)) made.cpu_period_us = 20'000;
  if (one_in(4)) made.cpu_pressure = *fractions();
  if (one_in(4)) made.cpi = *amounts(10);
  if (one_in(4)) made.llc_misses_per_s = *amounts(1e9);
  if (one_in(4)) made.cpu_time_s = *amounts(1e15);
  if (one_in(4)) made.cache_bytes = static_cast<std::uint64_t>(*gen::inRange(0, 1 << 30));
  if (one_in(3)) made.progress = reports();
  if (one_in(3)) made.told_cpus = CpuSet::parse("2,4").value();
  made.usage = samples(shape.max_samples);
  return made;
}

PendingWorkload pending(int index) {
  PendingWorkload made;
  made.id = "pending-" + std::to_string(index);
  made.service = one_in(2) ? made.id : "web";
  made.workload_class = *gen::element(WorkloadClass::latency_sensitive, WorkloadClass::best_effort);
  if (!one_in(4)) made.vcpus = *gen::inRange(1, 5);
  if (one_in(4)) made.isolation = *gen::element(Isolation::shared, Isolation::vcpus, Isolation::cores);
  made.memory_request_bytes = some_bytes();
  if (one_in(3)) made.room_cpu_cores = *amounts(8);
  if (one_in(3)) made.told_cpus = CpuSet::parse("0-1").value();
  if (one_in(3)) made.room_memory_bytes = some_bytes();
  if (one_in(2)) return made;
  made.gpus = *gen::inRange(1, 9);
  made.gpu_memory_bytes = some_bytes();
  if (one_in(2)) made.gpu_model = "NVIDIA *";
  made.gpu_exclusive = one_in(2);
  if (one_in(3)) made.told_gpus = {"0000:17:00.0", "0000:65:00.0"};
  return made;
}

std::optional<AdvertisedResource> advertised() {
  if (one_in(2)) return std::nullopt;
  return AdvertisedResource{
      1 + *fractions(),
      *gen::element(SchedulingState::schedule, SchedulingState::no_schedule, SchedulingState::evict)};
}

SparkApp spark_app(int index) {
  SparkApp app;
  app.id = "app-" + std::to_string(index);
  app.calculated_time_s = *amounts(1e5);
  app.shuffle_service = one_in(2);
  app.migration = one_in(2);
  const int stages = count_up_to(3);
  for (int id = 0; id < stages; ++id) {
    SparkStage stage;
    stage.id = id * 2;
    for (const SparkStage& earlier : app.stages)
      if (one_in(2)) stage.parents.push_back(earlier.id);
    stage.partitions = *gen::inRange(1, 5);
    stage.shuffle_write_bytes = some_bytes();
    stage.cached = one_in(2);
    if (one_in(2)) stage.job = id;
    const int tasks = count_up_to(stage.partitions);
    for (int task = 0; task < tasks; ++task) {
      stage.tasks.push_back({*names(), some_bytes(), *amounts(1e4)});
      if (one_in(2)) stage.tasks.back().kept_by = {*names()};
    }
    app.stages.push_back(stage);
  }
  const int running = count_up_to(2);
  for (int task = 0; task < running; ++task) app.running.push_back({*names(), *amounts(1e4)});
  return app;
}

Snapshot snapshot(const SnapshotShape& shape) {
  Snapshot made;
  made.host = one_in(5) ? "" : *names();
  made.time = *amounts(2e9);
  if (one_in(3)) made.straggler_seen_at = *amounts(2e9);
  if (one_in(3)) made.eviction_ended_at = *amounts(2e9);
  for (int i = count_up_to(2); i > 0; --i) made.spark_evicted["app-" + std::to_string(i)] = *amounts(2e9);
  if (*gen::arbitrary<bool>()) {
    made.recent_use = RecentUse{.samples = *gen::inRange(1, 300),
                                .cpu = *fractions(),
                                .memory = *fractions(),
                                .load1 = *amounts(100)};
  }
  if (one_in(2)) {
    for (int i = count_up_to(5); i > 0; --i)
      add_reading(made.memory_readings, {.time = made.time + 1.5 * (5 - i), .bytes = some_bytes()});
  }
  for (int i = count_up_to(3); i > 0; --i) made.eviction_durations_s.push_back(*amounts(100));
  made.load1 = *amounts(100);
  made.topology = *topologies(shape.topology);
  made.memory.total_bytes = some_bytes();
  made.memory.available_bytes = std::min(made.memory.total_bytes, some_bytes());
  made.memory.psi_full_avg10 = *amounts(100);
  made.advertised = {advertised(), advertised()};
  const int spans = count_up_to(3);
  for (int i = 0; i < spans; ++i)
    made.used_shares.push_back({.time = 300.0 * i, .cpu = *fractions(), .memory = *fractions()});
  for (const char* service : {"web", "db"}) {
    if (one_in(2)) continue;
    ServiceProfile profile;
    if (one_in(2)) profile.pressure = *fractions();
    if (one_in(2)) profile.model = InterferenceModel{*amounts(2) - 1, *amounts(1), *amounts(1)};
    if (one_in(2)) profile.learned = "learned by cpi from 312 observations";
    made.services.emplace(service, profile);
  }
  CpuSet free = made.topology.usable();
  const int workloads = count_up_to(shape.max_workloads);
  for (int index = 0; index < workloads; ++index) made.workloads.push_back(workload(made, shape, free));
  std::sort(made.workloads.begin(), made.workloads.end(),
            [](const Workload& a, const Workload& b) { return a.id < b.id; });
  for (const Workload& workload : made.workloads) {
    if (!one_in(3)) continue;
    BestEffortGroup& group = made.groups.emplace_back();
    group.id = workload.id;
    if (one_in(2)) {
      group.held = *gen::element(LowPriority::idle, LowPriority::weight);
      group.changed_at = *amounts(1e9);
    }
    if (one_in(2)) group.owner = *gen::element(LowPriority::idle, LowPriority::weight);
    group.fixed = one_in(4);
  }
  if (one_in(3)) {
    OtherGroup& other = made.others.emplace_back();
    other.id = "other.slice";
    if (one_in(2)) {
      other.held = CpuSet{0};
      other.changed_at = *amounts(1e9);
    }
    if (one_in(2)) other.allowed_cpus = made.topology.usable();
    if (one_in(2)) other.left_alone = "its owner set its vCPUs";
  }
  if (!made.workloads.empty() && !made.topology.gpus().empty() && one_in(2)) {
    std::vector<Gpu> gpus = made.topology.gpus();
    gpus.front().holder = made.workloads.front().id;
    made.topology = *Topology::make(made.topology.cpus(), gpus, made.topology.numa_distances());
  }
  const int waiting = count_up_to(2);
  for (int index = 0; index < waiting; ++index) made.pending.push_back(pending(index));
  if (one_in(4)) made.best_effort_cores[1] = {.cpus = CpuSet{2, 3}, .cores = 1, .fell_at = *amounts(1e9)};
  const int apps = count_up_to(2);
  for (int index = 0; index < apps; ++index) made.spark_apps.push_back(spark_app(index));
  return made;
}

}  // namespace

rc::Gen<double> amounts(double highest) {
  return gen::map(gen::pair(gen::inRange(0, 8), gen::arbitrary<std::uint64_t>()),
                  [highest](const std::pair<int, std::uint64_t>& drawn) {
                    if (drawn.first == 0) return 0.0;
                    if (drawn.first == 1) return highest;
                    const double fraction = static_cast<double>(drawn.second >> 11) * 0x1p-53;
                    return drawn.first < 4 ? std::floor(fraction * highest) : fraction * highest;
                  });
}

rc::Gen<double> fractions() { return amounts(1); }

rc::Gen<double> finite_doubles() {
  return gen::suchThat(gen::map(gen::arbitrary<std::uint64_t>(),
                                [](std::uint64_t bits) { return std::bit_cast<double>(bits); }),
                       [](double value) { return std::isfinite(value); });
}

rc::Gen<std::string> names() {
  const auto piece =
      gen::element<std::string>("a", "b", "Z", "0", "/", "-", "@", ".service", "\\x2d", "\"", " ", "\xC3\xA9",
                                "\xE6\xBC\xA2", "\xF0\x9F\x98\x80", "\x7e", ":", ",", "{", "]");
  return gen::map(gen::nonEmpty(gen::container<std::vector<std::string>>(piece)),
                  [](const std::vector<std::string>& pieces) {
                    std::string name;
                    for (const std::string& next : pieces) name += next;
                    return name;
                  });
}

rc::Gen<Topology> topologies(TopologyShape shape) {
  return gen::exec([shape] {
    std::vector<Cpu> cpus = cpu_list(shape);
    int nodes = 1;
    for (const Cpu& cpu : cpus) nodes = std::max(nodes, cpu.numa + 1);
    auto gpus = shape.gpus ? gpu_list(nodes) : std::vector<Gpu>();
    return *Topology::make(std::move(cpus), std::move(gpus), distances_of(nodes));
  });
}

rc::Gen<Snapshot> snapshots(SnapshotShape shape) {
  return gen::exec([shape] { return snapshot(shape); });
}

}  // namespace berth::model::testing
