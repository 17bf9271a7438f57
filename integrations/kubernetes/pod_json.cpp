// SPDX-License-Identifier: Apache-2.0
#include "integrations/kubernetes/node.h"
#include "integrations/kubernetes/pod.h"
#include "model/dns_name.h"
#include "model/hash.h"
#include "model/json.h"
#include "model/json_reader.h"
#include "model/json_text.h"
#include "model/plain_text.h"
#include "model/text.h"
#include "model/utc_text.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <fmt/core.h>

namespace berth::kubernetes {

namespace {

using model::Departure;
using model::JsonObject;
using model::JsonValue;
using nlohmann::json;

// The API takes no longer message in an Event.
constexpr std::size_t kMaxMessageBytes = 1000;
constexpr std::size_t kMaxUidBytes = 63;
constexpr const char* kRfc3339 = "%Y-%m-%dT%H:%M:%SZ";
constexpr const char* kSource = "berth-kube";

std::string event_name(const Pod& pod, const Departure& departure) {
  const std::uint64_t hash =
      model::fnv1a(fmt::format("{}\n{:.3f}\n{}\n{}", model::to_string(departure.kind), departure.time,
                               departure.workload, departure.decision));
  return fmt::format("{}.{:016x}", pod.uid, hash);
}

std::string message_for(const Departure& departure) {
  const std::string decision = departure.decision.empty() ? "" : fmt::format(" ({})", departure.decision);
  const std::string what =
      departure.kind == Departure::Kind::evict
          ? fmt::format("berth ends {}{}: ", departure.workload, decision)
          : fmt::format("{} should run on another node{}: ", departure.workload, decision);
  return model::plain_text(what + departure.reason, kMaxMessageBytes);
}

std::string read_name(const JsonValue& value) {
  std::string name = value.line();
  if (model::why_no_subdomain(name)) value.fail("is no name of an object");
  return name;
}

// The UID of the owner that controls the object; empty for another one.
std::string read_controller(const JsonValue& value) {
  JsonObject owner(value);
  owner.ignore_unknown();
  const auto controls = owner.nullable("controller");
  return controls && controls->boolean() ? read_name(owner.required("uid")) : std::string();
}

Pod read_pod(const JsonValue& value) {
  JsonObject object(value);
  object.ignore_unknown();
  const JsonValue metadata_value = object.required("metadata");
  JsonObject metadata(metadata_value);
  metadata.ignore_unknown();
  Pod pod;
  pod.space = read_name(metadata.required("namespace"));
  pod.name = read_name(metadata.required("name"));
  pod.uid = read_name(metadata.required("uid"));
  if (const auto owners = metadata.nullable("ownerReferences")) {
    owners->each([&pod](const JsonValue& owner) {
      if (std::string uid = read_controller(owner); !uid.empty()) pod.owner = std::move(uid);
    });
  }
  return pod;
}

// A mark is of base64; nothing else may stand in a query.
std::string read_mark(const JsonValue& value) {
  std::string mark = value.line();
  const auto allowed = [](char c) {
    return model::is_letter_or_digit(c) || c == '-' || c == '_' || c == '=';
  };
  if (!std::all_of(mark.begin(), mark.end(), allowed)) value.fail("is no mark of a list");
  return mark;
}

std::string_view without_slice(std::string_view slice) {
  return slice.substr(0, slice.size() - std::string_view(".slice").size());
}

// Whether systemd puts the slice below the one that is called `above` without its suffix; "" is the root.
bool is_slice_in(std::string_view slice, std::string_view above) {
  if (!slice.ends_with(".slice")) return false;
  const std::string_view stem = without_slice(slice);
  const std::size_t dash = stem.rfind('-');
  if (dash == std::string_view::npos) return above.empty() && !stem.empty();
  return !above.empty() && stem.substr(0, dash) == above;
}

bool is_kubelets_slice(std::string_view slice) {
  return slice == "kubepods.slice" || slice.ends_with("-kubepods.slice");
}

// The slice in "SLICE:RUNTIME:ID" at the root of the tree. nullopt for anything else.
std::optional<std::string_view> slice_of_notation(std::string_view workload) {
  const std::size_t colon = workload.find(':');
  if (colon == std::string_view::npos || workload.find('/') < colon) return std::nullopt;
  return workload.substr(0, colon);
}

std::optional<std::string> checked_uid(std::string uid) {
  if (uid.size() > kMaxUidBytes || uid.find('.') != std::string::npos || model::why_no_subdomain(uid))
    return std::nullopt;
  return uid;
}

// The UID in "ABOVE-podUID.slice".
std::optional<std::string> uid_in_slice(std::string_view pod, std::string_view above) {
  const std::string begin = fmt::format("{}-pod", above);
  if (above.empty() || !pod.ends_with(".slice") || !pod.starts_with(begin) ||
      pod.size() <= begin.size() + std::string_view(".slice").size())
    return std::nullopt;
  std::string uid(without_slice(pod).substr(begin.size()));
  // A hyphen in a slice's name would be another slice.
  std::replace(uid.begin(), uid.end(), '_', '-');
  return checked_uid(std::move(uid));
}

// The name above a pod in the slice of a notation: "kubepods-besteffort" of
// "kubepods-besteffort-podUID.slice". Empty where it is not of kubelet.
std::string_view kubelets_root_of(std::string_view pod) {
  const std::string_view above = pod.substr(0, std::min(pod.rfind("-pod"), pod.size()));
  for (const std::string_view qos : {"-besteffort", "-burstable", ""}) {
    if (!above.ends_with(qos)) continue;
    const std::string_view root = above.substr(0, above.size() - qos.size());
    if (root == "kubepods" || root.ends_with("-kubepods")) return above;
  }
  return {};
}

}  // namespace

std::optional<std::string> pod_uid_of(std::string_view workload) {
  const auto take = [&workload] {
    const std::string_view component = workload.substr(0, workload.find('/'));
    workload.remove_prefix(std::min(component.size() + 1, workload.size()));
    return component;
  };
  if (const auto pod = slice_of_notation(workload)) return uid_in_slice(*pod, kubelets_root_of(*pod));
  std::string_view root = take();
  // Slices repeat the names above them: "kubepods-burstable-pod....slice" is below
  // "kubepods-burstable.slice".
  std::string above;
  while (is_slice_in(root, above) && !is_kubelets_slice(root)) {
    above = without_slice(root);
    root = take();
  }
  if (is_slice_in(root, above) && is_kubelets_slice(root)) {
    above = without_slice(root);
    std::string_view pod = take();
    for (const std::string_view qos : {"besteffort", "burstable"}) {
      if (pod != fmt::format("{}-{}.slice", above, qos)) continue;
      above += fmt::format("-{}", qos);
      pod = take();
      break;
    }
    return uid_in_slice(pod, above);
  }
  if (above.empty() && root == "kubelet") root = take();
  if (!above.empty() || root != "kubepods") return std::nullopt;
  std::string_view pod = take();
  if (pod == "besteffort" || pod == "burstable") pod = take();
  if (!pod.starts_with("pod")) return std::nullopt;
  return checked_uid(std::string(pod.substr(3)));
}

model::Result<PodPage> parse_pods(std::string_view text) {
  const auto document = model::parse_json(text, kMaxAnswerValues);
  if (!document) return model::fail(document.error());
  model::ReadContext context;
  const JsonValue root(context, *document);
  PodPage page;
  {
    JsonObject object(root);
    object.ignore_unknown();
    const JsonValue kind_value = object.required("kind");
    const std::string kind = kind_value.line();
    if (kind != "PodList" && kind != "PartialObjectMetadataList") kind_value.fail("is no list of pods");
    if (const auto metadata_value = object.nullable("metadata")) {
      JsonObject metadata(*metadata_value);
      metadata.ignore_unknown();
      if (const auto next = metadata.nullable("continue")) page.next = read_mark(*next);
    }
    if (const auto items = object.nullable("items"))
      items->each([&page](const JsonValue& item) { page.pods.push_back(read_pod(item)); });
  }
  if (context.failed()) return model::fail(*context.error());
  return page;
}

std::string pods_path(const std::string& node, std::size_t limit, const std::string& next) {
  const std::string mark = next.empty() ? "" : "&continue=" + next;
  return fmt::format("/api/v1/pods?fieldSelector=spec.nodeName%3D{}&limit={}{}", node, limit, mark);
}

const char* event_reason(Departure::Kind kind) {
  return kind == Departure::Kind::evict ? "EvictedByBerth" : "RelocationNeeded";
}

std::string events_path(const Pod& pod) { return fmt::format("/api/v1/namespaces/{}/events", pod.space); }

std::string event_json(const Pod& pod, const Departure& departure, const std::string& node) {
  const std::string time = model::utc_text(departure.time, kRfc3339);
  return model::json_text({{"apiVersion", "v1"},
                           {"kind", "Event"},
                           {"metadata", {{"name", event_name(pod, departure)}, {"namespace", pod.space}}},
                           {"involvedObject",
                            {{"apiVersion", "v1"},
                             {"kind", "Pod"},
                             {"namespace", pod.space},
                             {"name", pod.name},
                             {"uid", pod.uid}}},
                           {"type", "Warning"},
                           {"reason", event_reason(departure.kind)},
                           {"message", message_for(departure)},
                           {"source", {{"component", kSource}, {"host", node}}},
                           {"reportingComponent", kSource},
                           {"reportingInstance", node},
                           {"firstTimestamp", time},
                           {"lastTimestamp", time},
                           {"count", 1}});
}

std::string eviction_path(const Pod& pod) {
  return fmt::format("/api/v1/namespaces/{}/pods/{}/eviction", pod.space, pod.name);
}

std::string eviction_json(const Pod& pod) {
  return model::json_text({{"apiVersion", "policy/v1"},
                           {"kind", "Eviction"},
                           {"metadata", {{"name", pod.name}, {"namespace", pod.space}}},
                           {"deleteOptions", {{"preconditions", {{"uid", pod.uid}}}}}});
}

}  // namespace berth::kubernetes
