// SPDX-License-Identifier: Apache-2.0
// Pods in the cgroup tree and at the API server, and berth's requests about them. Pure.
#pragma once

#include "model/error.h"
#include "model/node_state.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::kubernetes {

// The UID of the pod to which the workload belongs, by its path in the cgroup tree. nullopt for a workload
// that the host's own kubelet did not make: the path begins with kubelet's root ("kubepods.slice", also below
// other slices of systemd, or "kubepods", also below "kubelet"), where only root makes groups. A group deeper
// down may have any name. "SLICE:RUNTIME:ID" at the root of the tree counts, too.
std::optional<std::string> pod_uid_of(std::string_view workload);

struct Pod {
  std::string space;  // its namespace
  std::string name;
  std::string uid;
  std::string owner = {};  // the UID of its controller, a ReplicaSet or a Job for example; empty: it has none
  friend bool operator==(const Pod&, const Pod&) = default;
};

// A part of a list.
struct PodPage {
  std::vector<Pod> pods;
  std::string next;  // the mark of the next part; empty after the last one
};

// Reads a list of pods, whole or with metadata alone. Error invalid_input with the JSON path, also for a name
// that could not stand in a path.
model::Result<PodPage> parse_pods(std::string_view text);

// The path of a part of the list of a node's pods, with `limit` pods at most.
std::string pods_path(const std::string& node, std::size_t limit, const std::string& next);

// The Event on the pod that tells of the departure, and its path. The same departure always has the same
// name, so that the API server keeps it once (409 for a second one).
std::string events_path(const Pod& pod);
std::string event_json(const Pod& pod, const model::Departure& departure, const std::string& node);

// The words for the log, and the reason of the Event: "EvictedByBerth", "RelocationNeeded".
const char* event_reason(model::Departure::Kind kind);

// A request to the Eviction API (policy/v1), and its path. It is refused (409) if another pod has the name by
// then.
std::string eviction_path(const Pod& pod);
std::string eviction_json(const Pod& pod);

}  // namespace berth::kubernetes
