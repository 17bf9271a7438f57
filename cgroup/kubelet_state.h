// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/cpu_set.h"

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::cgroup {

// The vCPUs that kubelet's static CPU policy gave to containers alone, by the UID of their pod.
using ExclusiveOfKubelet = std::map<std::string, std::vector<model::CpuSet>>;

// Reads them from a cpu_manager_state (pkg/kubelet/cm/cpumanager/state/checkpoint.go of Kubernetes 1.18 and
// later), which is root's. Under another policy than "static" there are none. nullopt where there is no such
// file, or one of another form.
std::optional<ExclusiveOfKubelet> read_exclusive_of_kubelet(const std::filesystem::path& state);

// Whether the pod of this UID is of the namespace kube-system. Before the first container of a pod, kubelet
// makes a directory NAMESPACE_NAME_UID in `logs` (/var/log/pods), where only root can. false without it.
bool is_pod_of_the_system(const std::filesystem::path& logs, std::string_view uid);

}  // namespace berth::cgroup
