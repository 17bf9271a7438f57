// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/metrics.h"

#include "model/json.h"

#include <utility>

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

namespace berth::daemon {

namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

class Families {
 public:
  void gauge(std::string name, std::string help, std::optional<double> value, Labels labels = {}) {
    add(std::move(name), std::move(help), MetricType::Gauge, value, std::move(labels));
  }
  void counter(std::string name, std::string help, double value, Labels labels = {}) {
    add(std::move(name), std::move(help), MetricType::Counter, value, std::move(labels));
  }
  std::string text() const { return prometheus::TextSerializer().Serialize(families_); }

 private:
  // The samples of a family must be added one after the other.
  void add(std::string name, std::string help, MetricType type, std::optional<double> value, Labels labels) {
    if (!value) return;
    if (families_.empty() || families_.back().name != name) {
      families_.push_back({std::move(name), std::move(help), type, {}});
    }
    ClientMetric sample;
    sample.label = std::move(labels);
    (type == MetricType::Counter ? sample.counter.value : sample.gauge.value) = *value;
    families_.back().metric.push_back(std::move(sample));
  }

  std::vector<MetricFamily> families_;
};

void add_daemon(Families& families, const StatusReport& status) {
  families.gauge("berth_build_info", "Always 1; the version of berthd is its label.", 1,
                 {{"version", status.version}});
  families.gauge("berth_enforcing", "1 while berthd carries out what it decides, 0 while it only observes.",
                 status.mode == "enforce" ? 1 : 0);
  families.counter("berth_ticks_total", "Ticks since berthd started.",
                   static_cast<double>(status.ticks.count));
  families.counter("berth_ticks_woken_by_pressure_total", "Ticks that ran early because of pressure.",
                   static_cast<double>(status.woken_by_pressure));
  families.counter("berth_tick_cpu_seconds_total", "CPU time that all ticks took.",
                   status.ticks.total_cpu_ms / 1000);
  families.gauge("berth_last_tick_duration_seconds", "Time that the last tick took.",
                 status.ticks.last_wall_ms / 1000);
  families.counter("berth_placements_total", "Times that workloads which appeared were placed between ticks.",
                   static_cast<double>(status.placements.count));
  families.counter("berth_placement_cpu_seconds_total", "CPU time that these took.",
                   status.placements.total_cpu_ms / 1000);
  // As every client library of Prometheus names them.
  families.counter("process_cpu_seconds_total", "CPU time of berthd, user and system.", status.process_cpu_s);
  families.gauge("process_resident_memory_bytes", "Resident memory of berthd.",
                 static_cast<double>(status.memory_rss_bytes));
  families.gauge("process_start_time_seconds", "Start of berthd, in seconds since 1970.", status.started);
  families.gauge("berth_config_error", "1 if the last reload was rejected, so that the older settings stay.",
                 status.config_error ? 1 : 0);
  families.gauge("berth_sampling_cpu_cores", "Cores that sampling uses, in berthd and in the kernel.",
                 status.sampling.cpu);
  families.gauge("berth_sampling_bpf_cpu_cores", "The part of them that eBPF uses at context switches.",
                 status.sampling.bpf_cpu);
  for (std::size_t kind = 0; kind < kCulpritKinds; ++kind) {
    families.counter("berth_blamed_wait_seconds_total",
                     "Time that threads waited for a vCPU, by what ran there, while berthctl blame asks.",
                     status.sampling.blamed_s.at(kind),
                     {{"culprit", to_string(static_cast<CulpritKind>(kind))}});
  }
  for (const auto& capability : status.capabilities) {
    families.gauge("berth_capability", "1 if the host offers it, 0 if not; berthctl status says why.",
                   capability.available ? 1 : 0, {{"name", capability.name}});
  }
}

void add_advertised(Families& families, const model::OversellFindings& findings,
                    const model::Advertised& advertised) {
  const auto each = [&](const char* name, const char* help, auto figure) {
    for (const bool cpu : {true, false}) {
      const auto& said = cpu ? advertised.cpu : advertised.memory;
      families.gauge(name, help,
                     figure(cpu ? findings.cpu : findings.memory, said.value_or(model::AdvertisedResource())),
                     {{"resource", cpu ? "cpu" : "memory"}});
    }
  };
  using Found = model::OversoldResource;
  using Said = model::AdvertisedResource;
  each("berth_oversell_factor", "Advertised amount, as a multiple of the real one.",
       [](const Found&, const Said& said) { return said.factor; });
  each("berth_oversell_utilisation_ratio", "Share of the real amount that is in use.",
       [](const Found& found, const Said&) { return found.utilisation; });
  each("berth_takes_work", "1 while the node takes new work, 0 while it does not.",
       [](const Found&, const Said& said) { return said.state == model::SchedulingState::schedule ? 1 : 0; });
  families.gauge("berth_workloads_to_evict", "Best-effort workloads that would have to end to free memory.",
                 findings.evict_count);
}

void add_gpus(Families& families, const std::vector<GpuReport>& gpus) {
  const auto each = [&](const char* name, const char* help, auto figure) {
    for (const auto& report : gpus) {
      families.gauge(name, help, figure(report),
                     {{"gpu", report.gpu.id}, {"vendor", report.gpu.vendor}, {"model", report.gpu.model}});
    }
  };
  using Figure = std::optional<double>;
  const auto bytes = [](const std::optional<std::uint64_t>& amount) {
    return amount ? Figure(static_cast<double>(*amount)) : std::nullopt;
  };
  each("berth_gpu_healthy", "1 if the GPU may get new work, 0 if not; berthctl status says why.",
       [](const GpuReport& report) { return report.gpu.healthy ? 1 : 0; });
  each("berth_gpu_memory_bytes", "Memory of the GPU.",
       [&](const GpuReport& report) { return bytes(report.gpu.memory_bytes); });
  each("berth_gpu_memory_used_bytes", "Memory of the GPU that is in use.",
       [&](const GpuReport& report) { return bytes(report.gpu.memory_used_bytes); });
  each("berth_gpu_utilisation_ratio", "Share of time in which the GPU was busy, as its driver says.",
       [](const GpuReport& report) { return report.gpu.utilisation; });
  each("berth_gpu_workloads", "Workloads that use the GPU.",
       [](const GpuReport& report) { return static_cast<double>(report.workloads.size()); });
  each("berth_gpu_other_processes", "Processes that use the GPU and belong to no workload.",
       [](const GpuReport& report) {
         return report.gpu.other_processes ? Figure(*report.gpu.other_processes) : std::nullopt;
       });
}

void add_node(Families& families, const StatusReport& status) {
  const auto count = [&](model::WorkloadClass workload_class, std::uint32_t number) {
    families.gauge("berth_workloads", "Workloads that berth manages.", number,
                   {{"class", model::to_string(workload_class)}});
  };
  count(model::WorkloadClass::latency_sensitive, status.workloads.latency_sensitive);
  count(model::WorkloadClass::best_effort, status.workloads.best_effort);
  families.gauge("berth_left_alone_workloads", "Workloads that berth leaves alone, of both classes.",
                 status.workloads.left_alone);
  families.gauge("berth_node_score", "Interference score of the node; 0 if no workload disturbs another.",
                 status.score_node);
  for (const auto& [domain, cores] : status.best_effort_domains) {
    families.gauge("berth_best_effort_vcpus",
                   "vCPUs that best-effort work may use in a domain where services share.",
                   static_cast<double>(cores.cpus.size()), {{"domain", std::to_string(domain)}});
  }
  const auto held = [&](model::HeldCause cause, std::size_t number) {
    families.gauge("berth_held_limits", "CPU quotas and memory limits that berth holds, by cause.",
                   static_cast<double>(number), {{"cause", model::to_string(cause)}});
  };
  held(model::HeldCause::extended, status.held.extended);
  held(model::HeldCause::lent, status.held.lent);
  held(model::HeldCause::preempted, status.held.preempted);
  held(model::HeldCause::lifted, status.held.lifted);
  families.gauge("berth_stragglers", "Workloads that will not finish before their deadline.",
                 static_cast<double>(status.stragglers));
  families.gauge("berth_relocations",
                 "Workloads that will miss their deadline and that this node cannot help.",
                 static_cast<double>(status.relocations));
  const auto step = [&](const char* name, std::uint64_t number) {
    families.counter("berth_evictions_total", "Steps of evictions since berthd started, by step.",
                     static_cast<double>(number), {{"step", name}});
  };
  step("decommission", status.evictions.decommission);
  step("terminate", status.evictions.terminate);
  step("kill", status.evictions.kill);
  step("end", status.evictions.ended);
  for (const auto& [what, number] : status.decisions) {
    families.counter("berth_decisions_total", "Entries of the decision log since berthd started.",
                     static_cast<double>(number), {{"kind", what.first}, {"result", what.second}});
  }
  families.gauge("berth_evictions_under_way", "Workloads that are being evicted.",
                 static_cast<double>(status.evictions.under_way));
  if (status.oversell) add_advertised(families, *status.oversell, status.advertised);
  families.gauge("berth_reservations", "Admitted workloads that have not come yet.",
                 static_cast<double>(status.reservations));
  const auto dropped = [&](const char* receiver, std::uint64_t number) {
    families.counter("berth_dropped_messages_total",
                     "Messages dropped because their receiver did not take them in time.",
                     static_cast<double>(number), {{"receiver", receiver}});
  };
  dropped("journal", status.dropped_to_journal);
  dropped("systemd", status.dropped_to_systemd);
  if (const auto& interrupts = status.interrupts) {
    const auto add = [&](const char* place, std::size_t number) {
      families.gauge("berth_interrupts", "Interrupts that had or have a vCPU which an instance owns.",
                     static_cast<double>(number), {{"place", place}});
    };
    add("moved", interrupts->moved);
    add("refused", interrupts->refused);
    add("others", interrupts->others);
  }
  families.gauge("berth_undo_records", "Attributes that berth has changed and not restored.",
                 static_cast<double>(status.undo_records));
}

std::optional<double> scaled(const std::optional<double>& figure, double factor) {
  if (!figure) return std::nullopt;
  return *figure * factor;
}

Labels labels_of(const WorkloadFigures& workload) {
  return {{"workload", workload.id},
          {"service", workload.service},
          {"class", model::to_string(workload.workload_class)}};
}

void add_workloads(Families& families, const std::vector<WorkloadFigures>& workloads) {
  const auto each = [&](const char* name, const char* help, auto figure) {
    for (const auto& workload : workloads) families.gauge(name, help, figure(workload), labels_of(workload));
  };
  for (const auto& workload : workloads) {
    if (!workload.cpu_time_s) continue;
    families.counter("berth_workload_cpu_usage_seconds_total", "CPU time since its cgroup was made.",
                     *workload.cpu_time_s, labels_of(workload));
  }
  for (const auto& workload : workloads) {
    if (!workload.isolation) continue;
    auto labels = labels_of(workload);
    labels.push_back({"isolation", model::to_string(*workload.isolation)});
    families.gauge("berth_workload_isolation_info", "Always 1; the isolation of the service is its label.", 1,
                   std::move(labels));
  }
  using Figures = WorkloadFigures;
  using Figure = std::optional<double>;
  each("berth_workload_cpu_cores", "Mean cores used over the last tick.",
       [](const Figures& w) { return w.cpu_cores; });
  const auto bytes = [](const std::optional<std::uint64_t>& amount) {
    return amount ? Figure(static_cast<double>(*amount)) : std::nullopt;
  };
  each("berth_workload_memory_bytes", "Memory in use.",
       [&](const Figures& w) { return bytes(w.memory_bytes); });
  each("berth_workload_vcpus", "vCPUs that the workload asks for.",
       [](const Figures& w) { return w.vcpus ? Figure(*w.vcpus) : std::nullopt; });
  each("berth_workload_pinned_vcpus", "vCPUs to which berth pinned it; 0 if it is not pinned.",
       [](const Figures& w) { return Figure(static_cast<double>(w.pinned_vcpus)); });
  each("berth_workload_score", "Interference score of the instance where it is placed.",
       [](const Figures& w) { return w.score; });
  each("berth_workload_cpu_pressure_ratio",
       "Share of the last 10 s in which some of its tasks waited for a CPU (PSI some avg10).",
       [](const Figures& w) { return scaled(w.cpu_pressure_some_avg10, 0.01); });
  each("berth_workload_service_pressure_ratio", "Mean use of its service's instances per vCPU asked for.",
       [](const Figures& w) { return w.service_pressure; });
  each("berth_workload_cpu_quota_cores", "CPU quota.", [](const Figures& w) { return w.cpu_quota_cores; });
  each("berth_workload_cpu_quota_original_cores", "CPU quota before berth changed it.",
       [](const Figures& w) { return w.original_cpu_quota_cores; });
  each("berth_workload_cpu_throttled_ratio", "Share of the last tick in which its CPU quota throttled it.",
       [](const Figures& w) { return w.cpu_throttled; });
  each("berth_workload_memory_high_bytes", "Memory limit (memory.high), above which the kernel reclaims.",
       [&](const Figures& w) { return bytes(w.memory_high_bytes); });
  each("berth_workload_memory_high_original_bytes", "Memory limit (memory.high) before berth changed it.",
       [&](const Figures& w) { return bytes(w.original_memory_high_bytes); });
  each("berth_workload_progress_ratio", "Progress of its task.", [](const Figures& w) { return w.progress; });
  each("berth_workload_runq_latency_seconds",
       "Time that its tasks wait on a run queue before they run; the last tick's 99th percentile.",
       [](const Figures& w) { return scaled(w.runq_latency_us, 1e-6); });
  each("berth_workload_runq_latency_p50_seconds", "Median of that time over the last tick.",
       [](const Figures& w) { return scaled(w.runq_latency_p50_us, 1e-6); });
  each("berth_workload_llc_mpki", "Misses of the last-level cache per thousand instructions.",
       [](const Figures& w) { return w.llc_mpki; });
}

}  // namespace

std::string metrics_text(const StatusReport& status, const std::vector<WorkloadFigures>& workloads) {
  Families families;
  add_daemon(families, status);
  add_node(families, status);
  add_gpus(families, status.gpus);
  add_workloads(families, workloads);
  return families.text();
}

std::vector<WorkloadFigures> workload_figures(const Tick& tick) {
  std::vector<WorkloadFigures> list;
  for (const auto& workload : tick.observer.snapshot().workloads) {
    WorkloadFigures figures;
    figures.id = workload.id;
    figures.service = workload.service;
    figures.workload_class = workload.workload_class;
    figures.isolation = isolation_of(tick, workload);
    figures.cpu_time_s = workload.cpu_time_s;
    figures.vcpus = vcpus_asked_for(tick, workload);
    const Limits limits = limits_of(workload, tick.holdings);
    figures.cpu_quota_cores = limits.cpu_quota_cores;
    figures.original_cpu_quota_cores = limits.original.cpu_quota_cores;
    figures.memory_high_bytes = limits.memory_high_bytes;
    figures.original_memory_high_bytes = limits.original.memory_high_bytes;
    figures.cpu_throttled = workload.cpu_throttled;
    if (const auto* pin = find_held(tick.holdings.of(model::Attribute::cpus), workload.id)) {
      figures.pinned_vcpus = pin->cpus().size();
    }
    if (const auto* instance = placed_instance(tick.plan, workload.id)) {
      figures.score = instance->score;
      figures.service_pressure = instance->pressure;
    }
    const auto reading = tick.observer.readings().find(workload.id);
    if (reading != tick.observer.readings().end()) {
      figures.cpu_pressure_some_avg10 = reading->second.cpu_pressure_some_avg10;
    }
    if (!workload.usage.empty()) {
      const auto& sample = workload.usage.back();
      figures.cpu_cores = sample.cpu_cores;
      figures.memory_bytes = sample.memory_bytes;
      figures.progress = sample.progress;
      figures.runq_latency_us = sample.runq_latency_us;
      figures.runq_latency_p50_us = sample.runq_latency_p50_us;
      figures.llc_mpki = sample.llc_mpki;
    }
    list.push_back(std::move(figures));
  }
  return list;
}

}  // namespace berth::daemon
