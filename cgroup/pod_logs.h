// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

namespace berth::cgroup {

// Whether the pod of this UID is of the namespace kube-system. Before the first container of a pod, kubelet
// makes a directory NAMESPACE_NAME_UID in `logs` (/var/log/pods), where only root can. false without it.
bool is_pod_of_the_system(const std::filesystem::path& logs, std::string_view uid);

}  // namespace berth::cgroup
