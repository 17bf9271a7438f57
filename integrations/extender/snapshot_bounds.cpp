// SPDX-License-Identifier: Apache-2.0
#include "integrations/extender/snapshot_bounds.h"

#include "policies/vcpus/node.h"
#include "policies/vcpus/pin_check.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/core.h>

namespace berth::extender {

namespace {

using model::ErrorKind;
using model::WorkloadClass;

// Bytes that one of each takes in a Host and its copy, with all tables that refer to it.
constexpr std::size_t kHostBytes = 4096;
constexpr std::size_t kVcpuBytes = 224;
constexpr std::size_t kNumaNodeBytes = 1024;
constexpr std::size_t kGpuBytes = 1024;
constexpr std::size_t kInstanceBytes = 384;
constexpr std::size_t kClaimBytes = 96;
constexpr std::size_t kServiceBytes = 224;

std::size_t numa_nodes(const model::Topology& topology) {
  std::set<int> nodes;
  for (const model::Cpu& cpu : topology.cpus()) nodes.insert(cpu.numa);
  for (const model::Gpu& gpu : topology.gpus())
    if (gpu.numa) nodes.insert(*gpu.numa);
  return nodes.size();
}

std::size_t instances(const model::Snapshot& snapshot) {
  return static_cast<std::size_t>(std::count_if(
      snapshot.workloads.begin(), snapshot.workloads.end(),
      [](const auto& workload) { return workload.workload_class == WorkloadClass::latency_sensitive; }));
}

std::size_t allowed_sets(const model::Snapshot& snapshot) {
  return static_cast<std::size_t>(std::count_if(snapshot.workloads.begin(), snapshot.workloads.end(),
                                                [](const auto& it) { return it.allowed_cpus.has_value(); }));
}

// Instances whose vCPUs have to be searched for, running and pending.
std::size_t searched(const model::Snapshot& snapshot, const policies::Node& node,
                     const policies::InterferenceSettings& settings) {
  model::CpuSet owned;
  std::size_t count = 0;
  for (const model::Workload& workload : snapshot.workloads) {
    if (workload.workload_class != WorkloadClass::latency_sensitive || !workload.vcpus) continue;
    if (workload.shares || owned.intersects(workload.cpus) ||
        !policies::check_pin(node, settings, workload).stands()) {
      ++count;
    } else {
      owned |= workload.cpus;
    }
  }
  return count + static_cast<std::size_t>(
                     std::count_if(snapshot.pending.begin(), snapshot.pending.end(), [](const auto& pending) {
                       return pending.workload_class == WorkloadClass::latency_sensitive;
                     }));
}

model::Result<void> beyond(const std::string& host, const std::string& what) {
  return model::fail(ErrorKind::refused, fmt::format("host {}: {}; the host counts as unknown until it "
                                                     "sends a smaller one",
                                                     host, what));
}

constexpr std::string_view kSpace = " \t\r\n";

// The index after the text that begins with the quotation mark at `at`, or the end of the document.
std::size_t end_of_text(std::string_view document, std::size_t at) {
  for (++at; at < document.size(); ++at) {
    if (document[at] == '\\')
      ++at;
    else if (document[at] == '"')
      return at + 1;
  }
  return document.size();
}

// The index of the first character that is no space.
std::size_t after_space(std::string_view document, std::size_t at) {
  const std::size_t found = document.find_first_not_of(kSpace, at);
  return found == std::string_view::npos ? document.size() : found;
}

// A text without escapes at the index.
std::optional<std::string_view> plain_text_at(std::string_view document, std::size_t at) {
  if (at >= document.size() || document[at] != '"') return std::nullopt;
  const std::size_t end = end_of_text(document, at);
  const std::string_view text = document.substr(at + 1, end - at - 1);
  if (text.empty() || text.back() != '"') return std::nullopt;
  const std::string_view inside = text.substr(0, text.size() - 1);
  if (inside.empty() || inside.size() > kMaxHostNameBytes || inside.find('\\') != std::string_view::npos)
    return std::nullopt;
  return inside;
}

}  // namespace

model::Result<void> check_text(std::string_view text) {
  if (text.size() > kMaxSnapshotBytes)
    return model::fail(ErrorKind::refused, fmt::format("it has {} bytes, and {} are "
                                                       "the most; sampling.history of its host can be less",
                                                       text.size(), kMaxSnapshotBytes));
  const auto values = static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return c == ',' || c == '[' || c == '{'; }));
  if (values > kMaxSnapshotValues)
    return model::fail(ErrorKind::refused, fmt::format("it has about {} values, and {} are the most; "
                                                       "sampling.history of its host can be less",
                                                       values, kMaxSnapshotValues));
  return {};
}

model::Result<void> check_bounds(const model::Snapshot& snapshot, const policies::PolicySettings& settings) {
  if (snapshot.host.empty() || snapshot.host.size() > kMaxHostNameBytes)
    return model::fail(ErrorKind::refused, fmt::format("the name of its host has {} bytes, and a node's "
                                                       "name has 1 to {}",
                                                       snapshot.host.size(), kMaxHostNameBytes));
  const model::Topology& topology = snapshot.topology;
  struct Bound {
    const char* what;
    std::size_t number;
    std::size_t most;
  };
  const std::size_t nodes = numa_nodes(topology);
  for (const Bound& bound :
       {Bound{"vCPUs", topology.cpus().size(), kMaxVcpus},
        Bound{"threads on one core", static_cast<std::size_t>(topology.max_threads_per_core()),
              kMaxThreadsOfCore},
        Bound{"NUMA nodes", nodes, kMaxNumaNodes}, Bound{"GPUs", topology.gpus().size(), kMaxGpus},
        Bound{"workloads", snapshot.workloads.size(), kMaxWorkloads},
        Bound{"latency-sensitive workloads", instances(snapshot), kMaxInstances},
        Bound{"pending workloads", snapshot.pending.size(), kMaxPending},
        Bound{"services", snapshot.services.size(), kMaxServices},
        Bound{"workloads with allowed vCPUs times NUMA nodes", allowed_sets(snapshot) * nodes,
              kMaxAllowedSets},
        Bound{"bytes that would be kept", kept_bytes(snapshot), kMaxHostBytes}}) {
    if (bound.number > bound.most)
      return beyond(snapshot.host,
                    fmt::format("it has {} {}, and {} are the most", bound.number, bound.what, bound.most));
  }
  const policies::Node node(topology, settings.interference.shared_domain);
  const std::size_t searches = searched(snapshot, node, settings.interference);
  const std::size_t domains = node.regions().size();
  const std::uint64_t steps = std::uint64_t{searches} * domains * topology.cpus().size();
  if (steps > kMaxSearchSteps)
    return beyond(snapshot.host,
                  fmt::format("{} latency-sensitive workloads have no pin that stands, on {} vCPUs in {} "
                              "domains; a search takes {} steps, and {} are the most",
                              searches, topology.cpus().size(), domains, steps, kMaxSearchSteps));
  return {};
}

std::size_t kept_bytes(const model::Snapshot& snapshot) {
  const model::Topology& topology = snapshot.topology;
  // Sets and tables by number reach to the highest one.
  const auto numbers =
      topology.cpus().empty() ? std::size_t{0} : static_cast<std::size_t>(topology.cpus().back().cpu) + 1;
  const std::size_t set = numbers / 8 + 8;
  std::size_t bytes = kHostBytes + snapshot.host.size() + numbers * sizeof(int);
  bytes += topology.cpus().size() * kVcpuBytes;
  bytes += numa_nodes(topology) * (kNumaNodeBytes + 6 * set);
  for (const model::Gpu& gpu : topology.gpus())
    bytes += kGpuBytes + 4 * (gpu.id.size() + gpu.model.size()) + (gpu.holder ? 2 * gpu.holder->size() : 0);
  for (const model::Workload& workload : snapshot.workloads) {
    if (workload.allowed_cpus) bytes += kClaimBytes + 2 * set;
    if (workload.workload_class == WorkloadClass::latency_sensitive)
      bytes += kInstanceBytes + 4 * workload.service.size();
  }
  for (const model::PendingWorkload& pending : snapshot.pending)
    bytes += kInstanceBytes + 2 * set + 4 * pending.service.size() + 2 * pending.id.size();
  for (const auto& [name, profile] : snapshot.services) bytes += kServiceBytes + name.size();
  return bytes;
}

std::optional<std::string_view> named_host(std::string_view document) {
  std::size_t level = 0;
  for (std::size_t at = 0; at < document.size();) {
    const char c = document[at];
    if (c == '{' || c == '[') ++level;
    if ((c == '}' || c == ']') && level > 0) --level;
    if (c != '"') {
      ++at;
      continue;
    }
    const std::size_t end = end_of_text(document, at);
    const bool is_host = level == 1 && document.substr(at, end - at) == "\"host\"";
    at = after_space(document, end);
    if (is_host && at < document.size() && document[at] == ':')
      return plain_text_at(document, after_space(document, at + 1));
  }
  return std::nullopt;
}

std::optional<double> SenderRate::wait_s(std::string_view host, double now_s) {
  while (!in_order_.empty() && in_order_.front().first <= now_s) {
    until_s_.erase(in_order_.front().second);
    in_order_.pop_front();
  }
  const auto found = until_s_.find(host);
  return found == until_s_.end() ? std::nullopt : std::optional(found->second - now_s);
}

void SenderRate::count(std::string_view host, double now_s) {
  if (pause_s_ <= 0 || wait_s(host, now_s)) return;
  const double until_s = now_s + pause_s_;
  until_s_.emplace(host, until_s);
  in_order_.emplace_back(until_s, host);
  if (in_order_.size() <= most_names_) return;
  until_s_.erase(in_order_.front().second);
  in_order_.pop_front();
}

}  // namespace berth::extender
