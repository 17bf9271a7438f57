// SPDX-License-Identifier: Apache-2.0
// What the path of a cgroup tells about it; names as systemd, podman, docker and kubelet give them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace berth::cgroup {

// What a cgroup is, judged by its path.
enum class Kind { systemd_service, systemd_scope, podman, docker, cri, other };
// "systemd-service", "systemd-scope", "podman", "docker", "cri", "other".
const char* to_string(Kind kind);

// By the last component alone, but for "/docker/ID" and "/kubepods/.../podUID/ID" (cgroupfs drivers), where
// the ones before it decide.
Kind kind_of(std::string_view path);

// Name under which instances share a profile where no rule gives one: "web@1.service" is "web",
// "nginx.service" "nginx", a container the first 12 digits of its id, anything else its last component.
// systemd's escapes are resolved
// ("foo\x2dbar.service" is "foo-bar").
std::string service_name(std::string_view path);

// The unit of the system's systemd whose main cgroup this is, escapes kept; empty where none: what lies
// inside a service or scope is delegated (a container's inner group, the units of a user's own systemd).
std::string systemd_unit(std::string_view path);

// QoS class of the pod whose container this is (kubelet's naming, systemd and cgroupfs driver); nullopt for
// anything else, pod slices included.
enum class PodQos { guaranteed, burstable, best_effort };
std::optional<PodQos> pod_qos(std::string_view path);

// True for the group "container" that podman and CRI-O (with crun) make inside a container's own scope: it
// belongs to that.
bool is_inner_container(std::string_view path);

// True for the scope of conmon, which podman and CRI-O start beside each container to watch it: it lives as
// long, is matched by the same globs, and does none of the container's work.
bool is_container_monitor(std::string_view path);

}  // namespace berth::cgroup
