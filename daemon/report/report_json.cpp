// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/report_json.h"

#include "daemon/report/advertising.h"
#include "model/attribute.h"
#include "model/best_effort.h"
#include "model/json.h"
#include "model/json_text.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

namespace berth::daemon {

namespace {

using nlohmann::json;

// For a std::optional or a Maybe.
template <typename Optional>
json nullable(const Optional& value) {
  return value ? json(*value) : json(nullptr);
}

json log_entries(const std::vector<LogEntry>& entries) {
  json list = json::array();
  for (const auto& entry : entries) {
    list.push_back({{"time", entry.time},
                    {"decision", entry.decision},
                    {"mode", entry.mode},
                    {"kind", entry.kind},
                    {"workload", entry.workload},
                    {"attribute", entry.attribute},
                    {"old", entry.old_value},
                    {"new", entry.new_value},
                    {"policy", entry.policy},
                    {"reason", entry.reason},
                    {"result", entry.result},
                    {"error", nullable(entry.error)}});
  }
  return list;
}

json unplaceable_list(const std::vector<model::WorkloadFinding>& findings) {
  json list = json::array();
  for (const auto& finding : findings)
    list.push_back({{"workload", finding.workload}, {"reason", finding.reason}});
  return list;
}

json unused_list(const std::vector<cgroup::UnusedRule>& rules) {
  json list = json::array();
  for (const auto& rule : rules) {
    list.push_back(
        {{"rule", rule.origin},
         {"match", rule.match},
         {"reason",
          rule.overtaken
              ? "earlier rules match all of its cgroups, and apply; one without a class makes no workload"
          : rule.inner ? "it matches only parts of containers, and not their scopes"
                       : "no cgroup matches"}});
  }
  return list;
}

json owned_list(const std::vector<model::OwnedCpus>& all) {
  json list = json::array();
  for (const auto& owned : all) {
    list.push_back({{"owner", owned.owner.empty() ? json(nullptr) : json(owned.owner)},
                    {"cpus", owned.cpus.to_string()},
                    {"how", model::to_string(owned.how)},
                    {"reason", model::to_text(owned)}});
  }
  return list;
}

json warning_list(const std::vector<model::ServiceWarning>& warnings) {
  json list = json::array();
  for (const auto& warning : warnings) {
    list.push_back({{"workload", warning.workload},
                    {"cause", model::to_string(warning.cause)},
                    {"vcpus", nullable(warning.vcpus)},
                    {"reason", warning.reason}});
  }
  return list;
}

json links_of(const model::Gpu& gpu) {
  json links = json::object();
  for (const model::GpuPeer& peer : gpu.links) links[peer.id] = model::to_string(peer.link);
  return links;
}

json gpu_list(const std::vector<GpuReport>& reports) {
  json list = json::array();
  for (const auto& [gpu, workloads] : reports) {
    list.push_back({{"id", gpu.id},
                    {"vendor", gpu.vendor},
                    {"model", gpu.model},
                    {"numa", nullable(gpu.numa)},
                    {"memory_bytes", nullable(gpu.memory_bytes)},
                    {"memory_used_bytes", nullable(gpu.memory_used_bytes)},
                    {"utilisation", nullable(gpu.utilisation)},
                    {"healthy", gpu.healthy},
                    {"problem", nullable(gpu.problem)},
                    {"holder", nullable(gpu.holder)},
                    {"workloads", workloads},
                    {"other_processes", nullable(gpu.other_processes)}});
    if (!gpu.links.empty()) list.back()["links"] = links_of(gpu);
  }
  return list;
}

json interrupts_json(const InterruptsReport& report) {
  return {{"cpus", report.off.to_string()},  {"moved", report.moved},
          {"refused", report.refused},       {"others", report.others},
          {"irqbalance", report.irqbalance}, {"problem", nullable(report.problem)}};
}

json sampling_json(const SamplingReport& report) {
  json figures = json::array();
  for (const auto& way : report.figures) {
    figures.push_back(
        {{"figure", way.figure}, {"way", way.way}, {"available", way.available}, {"detail", way.detail}});
  }
  json blame = nullptr;
  if (report.blame)
    blame = {{"bpf_cpu", report.blame->bpf_cpu},
             {"read_cpu", report.blame->read_cpu},
             {"ends_in_s", nullable(report.blame_ends_in_s)}};
  return {{"configured_interval_s", report.configured_interval_s},
          {"max_cpu", report.max_cpu},
          {"history", report.history},
          {"cpu", report.cpu},
          {"bpf_cpu", nullable(report.bpf_cpu)},
          {"read_cpu_ms", report.read_cpu_ms},
          {"blame", std::move(blame)},
          {"figures", std::move(figures)}};
}

json advertised_json(const model::OversoldResource& found,
                     const std::optional<model::AdvertisedResource>& advertised) {
  const auto said = advertised.value_or(model::AdvertisedResource());
  return {{"state", model::to_string(said.state)},
          {"factor", said.factor},
          {"capacity", found.capacity},
          {"advertised", said.factor * found.capacity},
          {"requested", found.request},
          {"requested_latency_sensitive", found.latency_sensitive_request},
          {"best_effort", model::best_effort_amount(found, said.factor)},
          {"peak", found.peak},
          {"utilisation", found.utilisation}};
}

// Its members are those of a state document.
json advertised_json(const model::OversellFindings& findings, const model::Advertised& advertised) {
  return {{"cpu", advertised_json(findings.cpu, advertised.cpu)},
          {"memory", advertised_json(findings.memory, advertised.memory)},
          {"evict_count", findings.evict_count},
          {"score", findings.score}};
}

// As many of the first ones as their limit of bytes has room for: their names may be long.
json departures_json(const std::vector<model::Departure>& departures) {
  json list = json::array();
  std::size_t bytes = 0;
  for (const auto& departure : departures) {
    json item = {{"kind", model::to_string(departure.kind)},
                 {"time", departure.time},
                 {"workload", departure.workload},
                 {"decision", departure.decision},
                 {"reason", departure.reason},
                 {"wanted", departure.wanted}};
    bytes += model::json_text(item).size() + 1;
    if (bytes > model::kMaxDeparturesBytes) break;
    list.push_back(std::move(item));
  }
  return list;
}

std::string pinned_cpus(const Tick& tick, const std::string& id) {
  const auto* pin = find_held(tick.holdings.of(model::Attribute::cpus), id);
  return pin == nullptr ? std::string() : pin->cpus().to_string();
}

json cause_json(const std::optional<model::HeldCause>& cause) {
  return cause ? json(model::to_string(*cause)) : json(nullptr);
}

std::vector<std::string> overridden_keys(const Tick& tick, const std::string& id) {
  const auto found = tick.observer.found().find(id);
  if (found == tick.observer.found().end()) return {};
  return tick.overrides.keys(id, found->second.cgroup->id());
}

}  // namespace

std::vector<GpuReport> gpu_reports(const model::Snapshot& snapshot) {
  std::vector<GpuReport> reports;
  for (const auto& gpu : snapshot.topology.gpus()) reports.push_back({gpu, {}});
  if (reports.empty()) return reports;
  for (const auto& workload : snapshot.workloads) {
    for (auto& report : reports) {
      if (std::find(workload.gpus.begin(), workload.gpus.end(), report.gpu.id) != workload.gpus.end())
        report.workloads.push_back(workload.id);
    }
  }
  return reports;
}

std::optional<int> vcpus_asked_for(const Tick& tick, const model::Workload& workload) {
  if (workload.vcpus || (tick.left_alone.count(workload.id) == 0 && !workload.left_alone))
    return workload.vcpus;
  const auto found = tick.observer.found().find(workload.id);
  if (found == tick.observer.found().end()) return std::nullopt;
  model::Workload asked;
  asked.id = workload.id;
  asked.vcpus = found->second.identity.vcpus;
  tick.overrides.apply(asked, found->second.cgroup->id());
  return asked.vcpus;
}

const std::string* why_left_alone(const Tick& tick, const model::Workload& workload) {
  const auto found = tick.left_alone.find(workload.id);
  if (found != tick.left_alone.end()) return &found->second.reason;
  return workload.left_alone ? &*workload.left_alone : nullptr;
}

const model::PlacedInstance* placed_instance(const model::Plan& plan, const std::string& id) {
  if (!plan.findings.interference) return nullptr;
  const auto& instances = plan.findings.interference->instances;
  const auto found = instances.find(id);
  return found == instances.end() ? nullptr : &found->second;
}

std::optional<model::Isolation> isolation_of(const Tick& tick, const model::Workload& workload) {
  if (workload.workload_class != model::WorkloadClass::latency_sensitive) return std::nullopt;
  return workload.isolation.value_or(tick.isolation);
}

std::vector<model::ServiceWarning> warnings_of(const model::Plan& plan, const std::string& id) {
  std::vector<model::ServiceWarning> warnings;
  if (!plan.findings.interference) return warnings;
  const auto& all = plan.findings.interference->warnings;
  auto warning = std::lower_bound(all.begin(), all.end(), id, [](const auto& it, const std::string& wanted) {
    return it.workload < wanted;
  });
  for (; warning != all.end() && warning->workload == id; ++warning) warnings.push_back(*warning);
  return warnings;
}

json others_json(const model::OtherWork& others) {
  return {{"cpus", others.cpus.to_string()},
          {"confined", others.confined},
          {"unconfined", unplaceable_list(others.unconfined)}};
}

std::string status_json(const StatusReport& report) {
  json capabilities = json::array();
  for (const auto& capability : report.capabilities) {
    capabilities.push_back(
        {{"name", capability.name}, {"available", capability.available}, {"detail", capability.detail}});
  }
  return model::json_text(
      {{"schema", "berth.status/1"},
       {"version", report.version},
       {"host", report.host},
       {"mode", report.mode},
       {"enforce_problem", nullable(report.enforce_problem)},
       {"started", report.started},
       {"tick",
        {{"count", report.ticks.count},
         {"woken_by_pressure", report.woken_by_pressure},
         {"interval_s", report.interval_s},
         {"last_wall_ms", report.ticks.last_wall_ms},
         {"mean_cpu_ms", report.ticks.mean_cpu_ms()}}},
       {"placement",
        {{"count", report.placements.count},
         {"last_wall_ms", report.placements.last_wall_ms},
         {"mean_cpu_ms", report.placements.mean_cpu_ms()}}},
       {"sampling", sampling_json(report.sampling)},
       {"interference",
        {{"learn", report.learns},
         {"shared_domain", report.shared_domain == model::DomainKind::llc ? "llc" : "socket"}}},
       {"capabilities", std::move(capabilities)},
       {"workloads",
        {{"latency-sensitive", report.workloads.latency_sensitive},
         {"best-effort", report.workloads.best_effort},
         {"left_alone", report.workloads.left_alone}}},
       {"score_node", nullable(report.score_node)},
       {"best_effort_cpus", report.best_effort_cpus},
       {"unplaceable", unplaceable_list(report.unplaceable)},
       {"owned_cpus", owned_list(report.owned_cpus)},
       {"others", others_json(report.others)},
       {"warnings", warning_list(report.warnings)},
       {"reserved_cpus", report.reserved.to_string()},
       {"shared_reserved_cpus", report.shared_reserved.to_string()},
       {"absent_reserved_cpus", report.absent_reserved.to_string()},
       {"gpus", gpu_list(report.gpus)},
       {"stragglers", report.stragglers},
       {"relocations", report.relocations},
       {"evictions",
        {{"under_way", report.evictions.under_way},
         {"decommission", report.evictions.decommission},
         {"terminate", report.evictions.terminate},
         {"kill", report.evictions.kill},
         {"end", report.evictions.ended}}},
       {"held_limits",
        {{"extended", report.held.extended},
         {"lent", report.held.lent},
         {"preempted", report.held.preempted},
         {"lifted", report.held.lifted}}},
       {"interrupts", report.interrupts ? interrupts_json(*report.interrupts) : json(nullptr)},
       {"advertised", report.oversell ? advertised_json(*report.oversell, report.advertised) : json(nullptr)},
       {"reservations", report.reservations},
       {"undo_records", report.undo_records},
       {"dropped_messages", {{"journal", report.dropped_to_journal}, {"systemd", report.dropped_to_systemd}}},
       {"overridden_workloads", report.overridden},
       {"memory_rss_bytes", report.memory_rss_bytes},
       {"trial", trial_json(report.trial)},
       {"config",
        {{"file", report.config_file},
         {"loaded", report.config_loaded},
         {"mode", report.config_mode},
         {"error", nullable(report.config_error)},
         {"unused_rules", unused_list(report.unused_rules)}}},
       {"last_actions", log_entries(report.last_actions)}});
}

std::string state_json(const model::Plan& plan, const model::Advertised& advertised,
                       const std::vector<model::Departure>& departures, const char* mode, double interval_s) {
  json document = {{"schema", "berth.state/1"},
                   {"host", plan.host},
                   {"time", plan.time + plan.wall_ahead_s},
                   {"mode", mode},
                   {"interval_s", interval_s}};
  if (plan.findings.oversell) document.update(advertised_json(*plan.findings.oversell, advertised));
  document["departures"] = departures_json(departures);
  return model::json_text(document);
}

namespace {

// Of best-effort work: that of its group, if it is a low one.
json priority_json(const model::Snapshot& snapshot, const model::Workload& workload) {
  if (workload.workload_class != model::WorkloadClass::best_effort) return nullptr;
  const auto* group = model::group_of(snapshot, workload.id);
  const auto priority = group != nullptr ? model::priority_of(*group) : std::nullopt;
  return priority ? json(to_string(*priority)) : json(nullptr);
}

const model::SharedInstance* shared_instance(const model::Plan& plan, const std::string& id) {
  if (!plan.findings.interference) return nullptr;
  const auto& shared = plan.findings.interference->shared;
  const auto found = shared.find(id);
  return found == shared.end() ? nullptr : &found->second;
}

}  // namespace

std::string workloads_json(const Tick& tick) {
  const Observer& observer = tick.observer;
  json list = json::array();
  for (const auto& workload : observer.snapshot().workloads) {
    const auto found = observer.found().find(workload.id);
    const auto reading = observer.readings().find(workload.id);
    if (found == observer.found().end() || reading == observer.readings().end()) continue;
    const std::string* left_alone = why_left_alone(tick, workload);
    const bool managed = left_alone == nullptr;
    const auto* instance = placed_instance(tick.plan, workload.id);
    const auto* shared = shared_instance(tick.plan, workload.id);
    const auto isolation = isolation_of(tick, workload);
    const Limits limits = limits_of(workload, tick.holdings);
    json item = {{"id", workload.id},
                 {"service", workload.service},
                 {"class", model::to_string(workload.workload_class)},
                 {"kind", cgroup::to_string(found->second.kind)},
                 {"matched_by", found->second.matched_by},
                 {"vcpus", nullable(vcpus_asked_for(tick, workload))},
                 {"isolation", isolation ? json(model::to_string(*isolation)) : json(nullptr)},
                 {"home", shared == nullptr ? json(nullptr) : json(shared->home.to_string())},
                 {"overridden", overridden_keys(tick, workload.id)},
                 {"pinned_cpus", pinned_cpus(tick, workload.id)},
                 {"effective_cpus", reading->second.effective_cpus.to_string()},
                 {"cpu_priority", priority_json(observer.snapshot(), workload)},
                 {"cpu_cores", nullptr},
                 {"memory_bytes", nullptr},
                 {"pressure", instance == nullptr ? json(nullptr) : json(instance->pressure)},
                 {"cpu_pressure_some_avg10", nullable(reading->second.cpu_pressure_some_avg10)},
                 {"score", instance != nullptr ? json(instance->score)
                           : shared != nullptr ? json(shared->score)
                                               : json(nullptr)},
                 {"cpu_quota", nullable(limits.cpu_quota_cores)},
                 {"cpu_quota_original", nullable(limits.original.cpu_quota_cores)},
                 {"cpu_held", cause_json(limits.cpu_cause)},
                 {"cpu_throttled", nullable(workload.cpu_throttled)},
                 {"memory_high_bytes", nullable(limits.memory_high_bytes)},
                 {"memory_high_original_bytes", nullable(limits.original.memory_high_bytes)},
                 {"memory_held", cause_json(limits.memory_cause)},
                 {"progress", nullptr},
                 {"runq_latency_us", nullptr},
                 {"runq_latency_p50_us", nullptr},
                 {"llc_mpki", nullptr},
                 {"gpus", workload.gpus},
                 {"priority", workload.priority},
                 {"user", nullable(workload.user)},
                 {"managed", managed},
                 {"left_alone_reason", managed ? json(nullptr) : json(*left_alone)},
                 {"warnings", warning_list(warnings_of(tick.plan, workload.id))}};
    if (!workload.usage.empty()) {
      const auto& sample = workload.usage.back();
      item["cpu_cores"] = sample.cpu_cores;
      item["memory_bytes"] = nullable(sample.memory_bytes);
      item["progress"] = nullable(sample.progress);
      item["runq_latency_us"] = nullable(sample.runq_latency_us);
      item["runq_latency_p50_us"] = nullable(sample.runq_latency_p50_us);
      item["llc_mpki"] = nullable(sample.llc_mpki);
    }
    list.push_back(std::move(item));
  }
  return model::json_text({{"schema", "berth.workloads/1"},
                           {"time", observer.snapshot().time + observer.snapshot().wall_ahead_s},
                           {"workloads", std::move(list)}});
}

std::string log_json(const std::vector<LogEntry>& entries) {
  return model::json_text({{"schema", "berth.log/1"}, {"entries", log_entries(entries)}});
}

std::string explain_json(const model::Explanation& explanation, const std::vector<LogEntry>& entries) {
  auto document = model::json_of(model::to_json(explanation));
  if (explanation.decision) document["decision"]["entries"] = log_entries(entries);
  return model::json_text(document);
}

std::string restore_json(const cgroup::RestoreReport& report) {
  json restored = json::array();
  for (const auto& change : report.restored) {
    restored.push_back({{"workload", change.workload},
                        {"attribute", model::control_file(change.attribute())},
                        {"before", cgroup::to_text(change.before)},
                        {"after", cgroup::to_text(change.after)}});
  }
  json left = json::array();
  for (const auto& kept : report.left) {
    left.push_back({{"workload", kept.workload},
                    {"attribute", model::control_file(kept.attribute)},
                    {"reason", kept.reason}});
  }
  for (const auto& leaf : report.leaves) {
    if (leaf.problem) {
      left.push_back({{"workload", leaf.leaf}, {"attribute", "cgroup.procs"}, {"reason", *leaf.problem}});
    } else {
      restored.push_back({{"workload", leaf.leaf},
                          {"attribute", "cgroup.procs"},
                          {"before", leaf.leaf},
                          {"after", leaf.origin}});
    }
  }
  const auto& back = report.interrupts;
  for (const auto& interrupt : back.left) {
    left.push_back(
        {{"workload", interrupt.name}, {"attribute", "smp_affinity_list"}, {"reason", interrupt.reason}});
  }
  return model::json_text({{"schema", "berth.restore/1"},
                           {"interrupts", back.restored.size()},
                           {"restored", std::move(restored)},
                           {"left", std::move(left)},
                           {"gone", report.gone}});
}

std::optional<WorkloadView> workload_view(const Tick& tick, const std::string& id) {
  const auto* workload = find_workload(tick.observer.snapshot(), id);
  const auto found = tick.observer.found().find(id);
  if (workload == nullptr || found == tick.observer.found().end()) return std::nullopt;
  WorkloadView view;
  view.id = id;
  view.service = workload->service;
  view.workload_class = model::to_string(workload->workload_class);
  view.kind = cgroup::to_string(found->second.kind);
  view.matched_by = found->second.matched_by;
  view.vcpus = static_cast<std::uint32_t>(vcpus_asked_for(tick, *workload).value_or(0));
  view.pinned_cpus = pinned_cpus(tick, id);
  if (const auto* left_alone = why_left_alone(tick, *workload)) {
    view.managed = false;
    view.left_alone_reason = *left_alone;
  }
  if (!workload->usage.empty()) {
    view.cpu_cores = workload->usage.back().cpu_cores;
    view.memory_bytes = workload->usage.back().memory_bytes;
    view.progress = workload->usage.back().progress;
  }
  if (const auto* instance = placed_instance(tick.plan, id)) view.score = instance->score;
  const Limits limits = limits_of(*workload, tick.holdings);
  view.cpu_quota = limits.cpu_quota_cores;
  view.memory_high = limits.memory_high_bytes;
  view.original_cpu_quota = limits.original.cpu_quota_cores;
  view.original_memory_high = limits.original.memory_high_bytes;
  if (limits.cpu_cause) view.cpu_held = model::to_string(*limits.cpu_cause);
  if (limits.memory_cause) view.memory_held = model::to_string(*limits.memory_cause);
  return view;
}

std::string blame_json(const BlameReport& report) {
  std::vector<std::pair<CulpritName, double>> blames(report.answer.blames.begin(),
                                                     report.answer.blames.end());
  std::stable_sort(blames.begin(), blames.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  json culprits = json::array();
  double waited_ms = 0;
  for (const auto& [culprit, ms] : blames) {
    culprits.push_back({{"kind", to_string(culprit.kind)},
                        {"name", culprit.name.empty() ? json(nullptr) : json(culprit.name)},
                        {"ms", ms}});
    waited_ms += ms;
  }
  const auto& since = report.answer.since;
  const json document = {
      {"schema", "berth.blame/1"},
      {"time", report.time},
      {"service", report.service},
      {"since", since ? json(*since + report.wall_ahead_s) : json(nullptr)},
      {"problem", report.answer.problem.empty() ? json(nullptr) : json(report.answer.problem)},
      {"ends_in_s", nullable(report.ends_in_s)},
      {"workloads", report.answer.workloads},
      {"waited_ms", waited_ms},
      {"culprits", std::move(culprits)},
  };
  return model::json_text(document);
}

std::vector<WorkloadView> workload_views(const Tick& tick) {
  std::vector<WorkloadView> views;
  views.reserve(tick.observer.snapshot().workloads.size());
  for (const auto& workload : tick.observer.snapshot().workloads) {
    if (auto view = workload_view(tick, workload.id)) views.push_back(std::move(*view));
  }
  return views;
}

}  // namespace berth::daemon
