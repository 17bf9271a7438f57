// SPDX-License-Identifier: Apache-2.0
// Reads the path of a cgroup, whose components systemd, podman, docker and kubelet name.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace berth::cgroup {

// The kind of a cgroup, judged by its path.
enum class Kind { systemd_service, systemd_scope, podman, docker, cri, other };
// "systemd-service", "systemd-scope", "podman", "docker", "cri", "other".
const char* to_string(Kind kind);

// Judges by the last component alone. Only for "/docker/ID" and "/kubepods/.../podUID/ID" (cgroupfs drivers;
// also "crio-ID" and "kata_ID") do the components before it decide. Kubelet's group may lie below another one
// (--cgroup-root).
Kind kind_of(std::string_view path);

// The name under which instances share a profile where no rule gives one. "web@1.service" is "web",
// "nginx.service" is "nginx". A container has the first 12 digits of its id. A guest of libvirt has its own
// name, without the number that changes with each start. Anything else has its last component. systemd's
// escapes are resolved ("foo\x2dbar.service" is "foo-bar").
std::string service_name(std::string_view path);

// The unit of the system's systemd whose main cgroup this is, escapes kept; empty where none. A cgroup inside
// a service or scope is delegated and has none (a container's inner group, the units of a user's own
// systemd).
std::string systemd_unit(std::string_view path);

// QoS class of a container's pod (kubelet's naming, systemd and cgroupfs driver). nullopt for anything else,
// pod slices included.
enum class PodQos { guaranteed, burstable, best_effort };
std::optional<PodQos> pod_qos(std::string_view path);

// The pod of a container.
struct PodPlace {
  std::string name;   // equal for all containers of one pod on this host, and for no others
  std::string group;  // path of the pod's own cgroup, in which its containers are; empty where it has none
  friend bool operator==(const PodPlace&, const PodPlace&) = default;
};
// By kubelet's naming, as pod_qos(). nullopt for anything but a container of a pod.
std::optional<PodPlace> pod_of(std::string_view path);

// The UID of the pod of a container, as the API server has it; of a static pod, kubelet's hash of its
// manifest. Empty for anything but a container of a pod.
std::string pod_uid(std::string_view path);

// Whether the path is that of a container of Podman, Docker or a runtime of Kubernetes.
bool is_container(std::string_view path);

// Whether others than the host's administrator may choose the programs that run there, by any component of
// the path: a container, a pod, a guest, a job of a batch system, or the groups of a user's sessions
// ("user-1000.slice").
bool runs_programs_of_others(std::string_view path);

// Whether it is a vCPU of a guest of libvirt: "SCOPE/libvirt/vcpu0". libvirt writes its cpuset.cpus.
bool is_guest_vcpu(std::string_view path);

// Whether it is a job of Slurm: "slurmstepd.scope/job_7", also "NODE_slurmstepd.scope/job_7".
bool is_slurm_job(std::string_view path);

// Whether a runtime writes the cpuset.cpus of such a group. Beside is_container(), is_guest_vcpu() and
// is_slurm_job() these are no containers for the other functions:
// - LXC, LXD and Incus: "lxc.payload.NAME" (src/lxc/cgroups);
// - Nomad: its reserved cores and the tasks (client/lib/cgroupslib);
// - systemd-nspawn: its machines;
// - Podman without systemd: "libpod_parent/libpod-ID".
bool has_cpuset_of_runtime(std::string_view path);

// Whether kubelet writes the cpu.weight of this group again: that of all pods of a QoS class every minute
// (UpdateCgroups() in pkg/kubelet/cm/qos_container_manager_linux.go), and that of all pods whenever it
// starts, until it succeeds (enforceNodeAllocatableCgroups() in node_container_manager_linux.go).
bool is_weighed_by_kubelet(std::string_view path);

// True for the group "container" that podman and CRI-O (with crun) make inside a container's own scope. It
// belongs to that container.
bool is_inner_container(std::string_view path);

// True for the group of conmon, which podman and CRI-O start beside each container to watch it. The same
// globs match it and it lives as long, but it does none of the container's work.
bool is_container_monitor(std::string_view path);

}  // namespace berth::cgroup
