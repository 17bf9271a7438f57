// SPDX-License-Identifier: Apache-2.0
#include "integrations/extender/documents.h"
#include "model/json.h"
#include "model/json_reader.h"
#include "model/json_text.h"
#include "model/number.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/core.h>

namespace berth::extender {

namespace {

using model::JsonObject;
using model::JsonValue;
using model::WorkloadClass;
using nlohmann::json;

constexpr std::array<std::string_view, 2> kGpus{"nvidia.com/gpu", "amd.com/gpu"};
// The first of these labels names the service; pods of one service are instances of it.
constexpr std::array<std::string_view, 2> kServiceLabels{"app.kubernetes.io/name", "app"};
constexpr double kMostVcpus = 100'000;
// Limits of the API server: of a UID and of a label's value; of a pod's name.
constexpr std::size_t kMaxLabelBytes = 63;
constexpr std::size_t kMaxPodNameBytes = 253;

struct Names {
  std::string cpu;
  std::string memory;
};

// Amounts of one container, or of all.
struct Amounts {
  double cpu = 0;
  double memory = 0;
  double best_effort_cpu = 0;  // thousandths of a core
  double best_effort_memory = 0;
  double gpus = 0;

  template <typename Merge>
  Amounts merged(const Amounts& other, Merge merge) const {
    return {merge(cpu, other.cpu), merge(memory, other.memory), merge(best_effort_cpu, other.best_effort_cpu),
            merge(best_effort_memory, other.best_effort_memory), merge(gpus, other.gpus)};
  }
  Amounts operator+(const Amounts& other) const {
    return merged(other, [](double a, double b) { return a + b; });
  }
  Amounts most(const Amounts& other) const {
    return merged(other, [](double a, double b) { return std::max(a, b); });
  }
};

// `text` of the value, unless it is longer than Kubernetes permits.
std::string limited(const JsonValue& value, std::string text, std::size_t most) {
  if (text.size() <= most) return text;
  value.fail(fmt::format("{} bytes, more than the {} that Kubernetes permits", text.size(), most));
  return {};
}

double read_quantity(const JsonValue& value) {
  const auto amount = parse_quantity(value.line());
  if (!amount) value.fail("is no amount");
  return amount.value_or(0);
}

Amounts read_amounts(const JsonValue& value, const Names& names) {
  Amounts amounts;
  value.each_member([&](const std::string& name, const JsonValue& amount) {
    if (name == "cpu") amounts.cpu = read_quantity(amount);
    if (name == "memory") amounts.memory = read_quantity(amount);
    if (name == names.cpu) amounts.best_effort_cpu = read_quantity(amount);
    if (name == names.memory) amounts.best_effort_memory = read_quantity(amount);
    if (std::find(kGpus.begin(), kGpus.end(), name) != kGpus.end()) amounts.gpus += read_quantity(amount);
  });
  return amounts;
}

struct Container {
  Amounts amounts;
  bool sidecar = false;  // an init container that goes on running
};

// The requests in the `resources` of a container or of a pod. The API server has filled them in from limits.
Amounts read_requests(JsonObject& object, const Names& names) {
  const auto resources_value = object.nullable("resources");
  if (!resources_value) return {};
  JsonObject resources(*resources_value);
  resources.ignore_unknown();
  const auto requests = resources.nullable("requests");
  return requests ? read_amounts(*requests, names) : Amounts();
}

Container read_container(const JsonValue& value, const Names& names) {
  JsonObject object(value);
  object.ignore_unknown();
  Container container;
  if (const auto restart = object.nullable("restartPolicy")) container.sidecar = restart->line() == "Always";
  container.amounts = read_requests(object, names);
  return container;
}

// As the scheduler counts: containers run together, init containers one after the other before them, and each
// of these beside the sidecars before it. A pod may have resources of its own, which its containers share:
// the larger amount counts.
Amounts read_needs(JsonObject& spec, const Names& names) {
  Amounts together;
  if (const auto containers = spec.nullable("containers"))
    containers->each(
        [&](const JsonValue& item) { together = together + read_container(item, names).amounts; });
  Amounts sidecars;
  Amounts before;
  if (const auto containers = spec.nullable("initContainers")) {
    containers->each([&](const JsonValue& item) {
      const Container container = read_container(item, names);
      before = before.most(sidecars + container.amounts);
      if (container.sidecar) sidecars = sidecars + container.amounts;
    });
  }
  Amounts needs = before.most(together + sidecars).most(read_requests(spec, names));
  if (const auto overhead = spec.nullable("overhead")) needs = needs + read_amounts(*overhead, names);
  return needs;
}

std::uint64_t bytes_of(double amount) {
  return static_cast<std::uint64_t>(std::min(amount, static_cast<double>(model::kMaxBytes)));
}

int vcpus_of(double cores) { return static_cast<int>(std::clamp(std::ceil(cores - 1e-9), 1.0, kMostVcpus)); }

std::optional<model::PendingWorkload> request_of(const Amounts& needs, bool guaranteed) {
  model::PendingWorkload request;
  request.gpus = static_cast<int>(std::min(needs.gpus, kMostVcpus));
  const bool whole = needs.cpu >= 1 && std::abs(needs.cpu - std::round(needs.cpu)) < 1e-9;
  if (needs.best_effort_cpu > 0 || needs.best_effort_memory > 0) {
    request.workload_class = WorkloadClass::best_effort;
    request.vcpus = vcpus_of(needs.best_effort_cpu / 1000);
    request.memory_request_bytes = bytes_of(needs.best_effort_memory);
    return request;
  }
  if (!(guaranteed && whole) && request.gpus == 0) return std::nullopt;
  // As berthd takes them: whole CPUs of a Guaranteed pod are its own.
  request.workload_class =
      guaranteed && whole ? WorkloadClass::latency_sensitive : WorkloadClass::best_effort;
  request.vcpus = vcpus_of(needs.cpu);
  request.memory_request_bytes = bytes_of(needs.memory);
  return request;
}

struct Metadata {
  std::string name;
  std::string uid;
  std::string service;
};

Metadata read_metadata(const JsonValue& value) {
  JsonObject object(value);
  object.ignore_unknown();
  Metadata metadata;
  const JsonValue pod = object.required("name");
  const JsonValue uid = object.required("uid");
  const auto space = object.nullable("namespace");
  metadata.uid = limited(uid, uid.name(), kMaxLabelBytes);
  metadata.name = (space ? limited(*space, space->line(), kMaxLabelBytes) : "default") + "/" +
                  limited(pod, pod.name(), kMaxPodNameBytes);
  if (const auto labels = object.nullable("labels")) {
    std::array<std::string, kServiceLabels.size()> found;
    labels->each_member([&](const std::string& name, const JsonValue& label) {
      for (std::size_t i = 0; i < kServiceLabels.size(); ++i)
        if (name == kServiceLabels[i]) found[i] = limited(label, label.line(), kMaxLabelBytes);
    });
    for (std::size_t i = found.size(); i-- > 0;)
      if (!found[i].empty()) metadata.service = found[i];
  }
  return metadata;
}

bool is_guaranteed(JsonObject& pod) {
  const auto value = pod.nullable("status");
  if (!value) return false;
  JsonObject status(*value);
  status.ignore_unknown();
  const auto qos = status.nullable("qosClass");
  return qos && qos->line() == "Guaranteed";
}

Pod read_pod(const JsonValue& value, const Names& names) {
  JsonObject object(value);
  object.ignore_unknown();
  const Metadata metadata = read_metadata(object.required("metadata"));
  const JsonValue spec_value = object.required("spec");
  JsonObject spec(spec_value);
  spec.ignore_unknown();
  const Amounts needs = read_needs(spec, names);
  Pod pod{.uid = metadata.uid, .request = request_of(needs, is_guaranteed(object))};
  if (pod.request) {
    pod.request->id = metadata.name;
    pod.request->service = metadata.service.empty() ? metadata.name : metadata.service;
  }
  return pod;
}

Question read_question(const JsonValue& root, const Names& names) {
  JsonObject object(root);
  object.ignore_unknown();
  Question question;
  question.pod = read_pod(object.required("Pod"), names);
  const auto nodes = object.nullable("NodeNames");
  if (!nodes) {
    root.fail("has whole nodes and no NodeNames: set nodeCacheCapable in the scheduler's configuration");
    return question;
  }
  nodes->each([&](const JsonValue& node) {
    question.nodes.push_back(node.name());
    if (question.nodes.size() > kMaxNodes) node.fail("is one node too many");
  });
  return question;
}

constexpr std::size_t kMaxBytes = 64;
constexpr double kMost = 16 * 1152921504606846976.0;  // 16Ei

constexpr std::array<std::pair<std::string_view, double>, 15> kUnits{{{"Ki", 1024.0},
                                                                      {"Mi", 1048576.0},
                                                                      {"Gi", 1073741824.0},
                                                                      {"Ti", 1099511627776.0},
                                                                      {"Pi", 1125899906842624.0},
                                                                      {"Ei", 1152921504606846976.0},
                                                                      {"n", 1e-9},
                                                                      {"u", 1e-6},
                                                                      {"m", 1e-3},
                                                                      {"k", 1e3},
                                                                      {"M", 1e6},
                                                                      {"G", 1e9},
                                                                      {"T", 1e12},
                                                                      {"P", 1e15},
                                                                      {"E", 1e18}}};

}  // namespace

model::Result<Question> parse_question(std::string_view text, const std::string& domain) {
  const auto document = model::parse_json(text, kMaxQuestionValues);
  if (!document) return model::fail(document.error());
  model::ReadContext context;
  Question question = read_question(JsonValue(context, *document),
                                    {.cpu = domain + "/be-cpu", .memory = domain + "/be-memory"});
  if (context.failed()) return model::fail(*context.error());
  return question;
}

std::string to_json(const Filtered& filtered) {
  return model::json_text({{"NodeNames", filtered.passed}, {"FailedNodes", filtered.failed}, {"Error", ""}});
}

std::string to_json(const std::vector<Points>& points) {
  json list = json::array();
  for (const Points& of : points) list.push_back({{"Host", of.node}, {"Score", of.score}});
  return model::json_text(list);
}

std::string error_json(const std::string& message) { return model::json_text({{"Error", message}}); }

std::optional<double> parse_quantity(std::string_view text) {
  if (text.size() > kMaxBytes) return std::nullopt;
  double unit = 1;
  for (const auto& [suffix, size] : kUnits) {
    if (!text.ends_with(suffix)) continue;
    text.remove_suffix(suffix.size());
    unit = size;
    break;
  }
  const auto number = model::to_number<double>(text);
  if (!number || !std::isfinite(*number) || *number < 0 || *number * unit > kMost) return std::nullopt;
  return *number * unit;
}

}  // namespace berth::extender
