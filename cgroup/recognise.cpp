// SPDX-License-Identifier: Apache-2.0
#include "cgroup/recognise.h"

#include "model/name.h"
#include "model/path.h"
#include "model/text.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace berth::cgroup {

namespace {

constexpr std::size_t kContainerId = 64;  // hex digits of a container's full id
constexpr std::size_t kShortId = 12;      // as `podman ps` and `docker ps` show it

std::string_view first_component(std::string_view path) { return path.substr(0, path.find('/')); }

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

bool is_container_id(std::string_view text) {
  return text.size() == kContainerId &&
         std::all_of(text.begin(), text.end(), [](char c) { return hex_digit(c) >= 0; });
}

// Whether it is named by a container's full id, by whatever runtime: "ID", "nerdctl-ID.scope".
bool ends_in_container_id(std::string_view name) {
  if (constexpr std::string_view kScope = ".scope"; name.ends_with(kScope)) name.remove_suffix(kScope.size());
  return name.size() >= kContainerId && is_container_id(name.substr(name.size() - kContainerId));
}

// The slice of a user's sessions, or the user's own systemd. Root's are root's.
bool is_of_a_login(std::string_view name) {
  const bool slice = name.starts_with("user-") && name.ends_with(".slice");
  const bool manager = name.starts_with("user@") && name.ends_with(".service");
  return (slice || manager) && name != "user-0.slice" && name != "user@0.service";
}

// The id in "PREFIXID.scope"; empty where the name is something else ("crio-conmon-ID.scope").
std::string_view scope_id(std::string_view name, std::string_view prefix) {
  constexpr std::string_view suffix = ".scope";
  if (!name.starts_with(prefix) || !name.ends_with(suffix)) return {};
  const std::string_view id = name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
  return is_container_id(id) ? id : std::string_view();
}

struct Container {
  Kind kind = Kind::other;
  std::string_view id;
};

// kubelet's own group, also below a root of another name (--cgroup-root): with systemd's driver the slice
// repeats the names above it ("prod-kubepods.slice").
bool is_kubepods(std::string_view name) {
  return name == "kubepods" || name == "kubepods.slice" || name.ends_with("-kubepods.slice");
}

// The pod directory or slice of a container's path: "pod" and the pod's uid, behind the QoS class in a
// slice's name.
bool is_pod(std::string_view name) {
  if (name.ends_with(".slice"))
    return name.find("kubepods-") != std::string_view::npos && name.find("-pod") != name.npos;
  return name.starts_with("pod") && name.size() > 3;
}

bool below_kubepods(std::string_view path) {
  for (std::string_view rest = path; !rest.empty(); rest = model::parent_path(rest)) {
    if (is_kubepods(model::last_component(rest))) return true;
  }
  return false;
}

// "SLICE:RUNTIME:ID", as a runtime names a group to which kubelet gave systemd's notation, and that it makes
// without systemd.
struct Notation {
  std::string_view slice;
  std::string_view id;
};

std::optional<Notation> notation_of(std::string_view name) {
  const std::size_t first = name.find(':');
  if (first == std::string_view::npos) return std::nullopt;
  const std::size_t second = name.find(':', first + 1);
  if (second == std::string_view::npos || second == first + 1) return std::nullopt;
  const Notation made{name.substr(0, first), name.substr(second + 1)};
  if (!made.slice.ends_with(".slice") || !is_pod(made.slice) || !is_container_id(made.id))
    return std::nullopt;
  return made;
}

// The id of a pod's container in the name of its group, below the pod's: "ID" (containerd), "crio-ID"
// (CRI-O), "kata_ID" (Kata: the virtual machine of a whole pod). Empty for anything else.
std::string_view id_in_pod(std::string_view name) {
  for (const std::string_view prefix : {"crio-", "kata_"}) {
    if (!name.starts_with(prefix)) continue;
    name.remove_prefix(prefix.size());
    break;
  }
  return is_container_id(name) ? name : std::string_view();
}

Container container_of(std::string_view path) {
  const std::string_view name = model::last_component(path);
  struct Prefix {
    std::string_view text;
    Kind kind;
  };
  static constexpr Prefix kPrefixes[] = {{"libpod-", Kind::podman},
                                         {"docker-", Kind::docker},
                                         {"cri-containerd-", Kind::cri},
                                         {"crio-", Kind::cri}};
  for (const Prefix& prefix : kPrefixes) {
    if (const auto id = scope_id(name, prefix.text); !id.empty()) return {prefix.kind, id};
  }
  if (const auto notation = notation_of(name)) return {Kind::cri, notation->id};
  const std::string_view parent = model::parent_path(path);
  if (is_container_id(name) && model::last_component(parent) == "docker") return {Kind::docker, name};
  if (!is_pod(model::last_component(parent)) || !below_kubepods(parent)) return {};
  if (const auto id = id_in_pod(name); !id.empty()) return {Kind::cri, id};
  return {};
}

// The name that libvirt's guest has in "machine-DRIVER\x2dNUMBER\x2dNAME.scope", escapes kept, or, without
// systemd-machined, in "DRIVER-NUMBER-NAME.libvirt-DRIVER". The number rises with each start of the guest.
// Empty for anything else.
std::string_view guest_name(std::string_view name) {
  const auto take = [&name](std::string_view text) {
    if (!name.starts_with(text)) return false;
    name.remove_prefix(text.size());
    return true;
  };
  const bool scope = take("machine-");
  const std::string_view dash = scope ? "\\x2d" : "-";
  for (const std::string_view driver : {"qemu", "lxc", "ch"}) {
    if (!take(driver)) continue;
    const std::string suffix = scope ? ".scope" : std::string(".libvirt-").append(driver);
    if (!take(dash) || !name.ends_with(suffix)) return {};
    name.remove_suffix(suffix.size());
    const std::size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
    name.remove_prefix(digits);
    return digits > 0 && take(dash) ? name : std::string_view();
  }
  return {};
}

// systemd escapes a byte of a name as "\xHH".
std::string unescape(std::string_view name) {
  std::string text;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '\\' && i + 3 < name.size() && name[i + 1] == 'x' && hex_digit(name[i + 2]) >= 0 &&
        hex_digit(name[i + 3]) >= 0) {
      const int code = hex_digit(name[i + 2]) * 16 + hex_digit(name[i + 3]);
      // Control characters stay escaped: the name is shown on terminals.
      if (code >= 0x20 && code != 0x7f) {
        text += static_cast<char>(code);
        i += 3;
        continue;
      }
    }
    text += name[i];
  }
  // Escaped bytes may be anything, but a service must be a valid name everywhere.
  return model::is_name(text) ? text : std::string(name);
}

// systemd puts '_' before a unit's name where it would clash with a control file ("_cgroup.service").
std::string_view unit_name(std::string_view component) {
  return component.starts_with('_') ? component.substr(1) : component;
}

std::string_view without_suffix(std::string_view name) { return name.substr(0, name.rfind('.')); }

// Whether `slice` is in its place in systemd's tree: "a-b.slice" lies in "a.slice", "a.slice" in `parent`'s
// root ("").
bool is_slice_in(std::string_view slice, std::string_view parent) {
  if (!slice.ends_with(".slice")) return false;
  const std::string_view stem = without_suffix(slice);
  const std::size_t dash = stem.rfind('-');
  if (dash == std::string_view::npos) return parent.empty() && !stem.empty();
  return parent.ends_with(".slice") && without_suffix(parent) == stem.substr(0, dash);
}

}  // namespace

const char* to_string(Kind kind) {
  switch (kind) {
    case Kind::systemd_service:
      return "systemd-service";
    case Kind::systemd_scope:
      return "systemd-scope";
    case Kind::podman:
      return "podman";
    case Kind::docker:
      return "docker";
    case Kind::cri:
      return "cri";
    case Kind::other:
      break;
  }
  return "other";
}

Kind kind_of(std::string_view path) {
  if (const Container container = container_of(path); !container.id.empty()) return container.kind;
  const std::string_view name = model::last_component(path);
  if (name.ends_with(".service")) return Kind::systemd_service;
  if (name.ends_with(".scope")) return Kind::systemd_scope;
  return Kind::other;
}

std::string service_name(std::string_view path) {
  if (const Container container = container_of(path); !container.id.empty()) {
    return std::string(container.id.substr(0, kShortId));
  }
  std::string_view name = model::last_component(path);
  if (const std::string_view guest = guest_name(name); !guest.empty()) return unescape(guest);
  const Kind kind = kind_of(path);
  if (kind == Kind::other) return unescape(name);
  name = without_suffix(unit_name(name));
  if (const std::size_t at = name.find('@');
      kind == Kind::systemd_service && at != std::string_view::npos && at > 0) {
    name = name.substr(0, at);
  }
  return name.empty() ? std::string(model::last_component(path)) : unescape(name);
}

std::string systemd_unit(std::string_view path) {
  std::string_view parent;
  std::string_view rest = path;
  while (!rest.empty()) {
    const std::string_view component = first_component(rest);
    const std::string_view unit = unit_name(component);
    const bool last = component.size() == rest.size();
    if (unit.ends_with(".slice")) {
      if (!is_slice_in(unit, parent)) return {};
    } else if (!last || !(unit.ends_with(".service") || unit.ends_with(".scope")) ||
               without_suffix(unit).empty()) {
      return {};
    }
    if (last) return std::string(unit);
    parent = unit;
    rest.remove_prefix(component.size() + 1);
  }
  return {};
}

bool is_weighed_by_kubelet(std::string_view path) {
  const std::string_view name = model::last_component(path);
  if (is_kubepods(name)) return true;
  for (const std::string_view qos : {"besteffort", "burstable"}) {
    if (name == qos) return model::last_component(model::parent_path(path)) == "kubepods";
    const std::string slice = "kubepods-" + std::string(qos) + ".slice";
    if (name == slice || name.ends_with('-' + slice)) return true;
  }
  return false;
}

std::optional<PodQos> pod_qos(std::string_view path) {
  if (container_of(path).id.empty()) return std::nullopt;
  if (const auto notation = notation_of(model::last_component(path))) {
    const std::string_view pod = notation->slice.substr(0, notation->slice.rfind("-pod"));
    if (pod.ends_with("kubepods-besteffort")) return PodQos::best_effort;
    if (pod.ends_with("kubepods-burstable")) return PodQos::burstable;
    if (is_kubepods(std::string(pod).append(".slice"))) return PodQos::guaranteed;
    return std::nullopt;
  }
  const std::string_view pod_path = model::parent_path(path);
  const std::string_view pod = model::last_component(pod_path);
  if (!is_pod(pod) || !below_kubepods(pod_path)) return std::nullopt;
  const std::string_view group = model::last_component(model::parent_path(pod_path));
  const auto is_class = [&](std::string_view name) {
    return group == name || (group.ends_with(".slice") &&
                             without_suffix(group).ends_with(std::string("kubepods-").append(name)));
  };
  if (is_class("besteffort")) return PodQos::best_effort;
  if (is_class("burstable")) return PodQos::burstable;
  if (is_kubepods(group)) return PodQos::guaranteed;
  return std::nullopt;
}

std::optional<PodPlace> pod_of(std::string_view path) {
  if (!pod_qos(path)) return std::nullopt;
  const std::string_view parent = model::parent_path(path);
  if (const auto notation = notation_of(model::last_component(path))) {
    std::string name(parent);
    if (!name.empty()) name += '/';
    return PodPlace{.name = name.append(notation->slice), .group = ""};
  }
  return PodPlace{.name = std::string(parent), .group = std::string(parent)};
}

std::string pod_uid(std::string_view path) {
  constexpr std::string_view kPod = "pod";
  constexpr std::string_view kSlice = ".slice";
  const auto pod = pod_of(path);
  if (!pod) return {};
  std::string_view name = model::last_component(pod->name);
  // A slice's name has each dash of the UID as "_".
  const bool slice = name.ends_with(kSlice);
  if (slice) {
    name.remove_suffix(kSlice.size());
    name.remove_prefix(name.rfind("-pod") + 1);
  }
  std::string uid(name.substr(kPod.size()));
  if (slice) std::replace(uid.begin(), uid.end(), '_', '-');
  return uid;
}

bool is_container(std::string_view path) {
  const Kind kind = kind_of(path);
  return kind == Kind::podman || kind == Kind::docker || kind == Kind::cri;
}

bool runs_programs_of_others(std::string_view path) {
  for (std::string_view rest = path; !rest.empty(); rest = model::parent_path(rest)) {
    const std::string_view name = model::last_component(rest);
    if (has_cpuset_of_runtime(rest) || is_kubepods(name) || name == "machine.slice" || is_of_a_login(name) ||
        name.ends_with(".libvirt-lxc") || ends_in_container_id(name))
      return true;
  }
  return false;
}

bool is_guest_vcpu(std::string_view path) {
  constexpr std::string_view kVcpu = "vcpu";
  std::string_view name = model::last_component(path);
  if (!name.starts_with(kVcpu) || model::last_component(model::parent_path(path)) != "libvirt") return false;
  name.remove_prefix(kVcpu.size());
  return model::is_digits(name) &&
         !guest_name(model::last_component(model::parent_path(model::parent_path(path)))).empty();
}

namespace {

// Nomad reserves cores in one slice, and makes the scope of a task in it or in the slice beside it.
bool is_of_nomad(std::string_view path) {
  constexpr std::string_view kReserved = "nomad.slice/reserve.slice";
  const std::string_view parent = model::parent_path(path);
  return path == kReserved ||
         ((parent == kReserved || parent == "nomad.slice/share.slice") && path.ends_with(".scope"));
}

// Of a machine, by its scope or by the unit that the host boots it with. Guests of libvirt have names of the
// same kind.
bool is_of_nspawn(std::string_view path) {
  const std::string_view name = model::last_component(path);
  if (model::last_component(model::parent_path(path)) != "machine.slice") return false;
  return (name.starts_with("machine-") && name.ends_with(".scope") && guest_name(name).empty()) ||
         (name.starts_with("systemd-nspawn@") && name.ends_with(".service"));
}

// "libpod_parent/libpod-ID", also with a pod's group between.
bool is_of_podman_without_systemd(std::string_view path) {
  constexpr std::string_view kPrefix = "libpod-";
  constexpr std::string_view kParent = "libpod_parent";
  const std::string_view name = model::last_component(path);
  if (!name.starts_with(kPrefix) || !is_container_id(name.substr(kPrefix.size()))) return false;
  const std::string_view parent = model::parent_path(path);
  return model::last_component(parent) == kParent ||
         (is_container_id(model::last_component(parent)) &&
          model::last_component(model::parent_path(parent)) == kParent);
}

}  // namespace

bool is_slurm_job(std::string_view path) {
  constexpr std::string_view kJob = "job_";
  constexpr std::string_view kScope = "slurmstepd.scope";
  const std::string_view name = model::last_component(path);
  const std::string_view scope = model::last_component(model::parent_path(path));
  if (!name.starts_with(kJob) || !scope.ends_with(kScope)) return false;
  const std::string_view node = scope.substr(0, scope.size() - kScope.size());
  return (node.empty() || node.ends_with('_')) && model::is_digits(name.substr(kJob.size()));
}

bool has_cpuset_of_runtime(std::string_view path) {
  constexpr std::string_view kLxc = "lxc.payload.";
  const std::string_view name = model::last_component(path);
  return is_container(path) || is_guest_vcpu(path) || (name.starts_with(kLxc) && name.size() > kLxc.size()) ||
         is_slurm_job(path) || is_of_nomad(path) || is_of_nspawn(path) || is_of_podman_without_systemd(path);
}

bool is_inner_container(std::string_view path) {
  if (model::last_component(path) != "container") return false;
  const Container outer = container_of(model::parent_path(path));
  return !outer.id.empty() && model::last_component(model::parent_path(path)).ends_with(".scope");
}

bool is_container_monitor(std::string_view path) {
  const std::string_view name = model::last_component(path);
  if (name.ends_with(".scope")) return name.starts_with("libpod-conmon-") || name.starts_with("crio-conmon-");
  constexpr std::string_view prefix = "crio-conmon-";
  return name.starts_with(prefix) && is_container_id(name.substr(prefix.size()));
}

}  // namespace berth::cgroup
