// SPDX-License-Identifier: Apache-2.0
#include "cgroup/recognise.h"

#include "model/name.h"
#include "model/path.h"

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

bool is_kubepods(std::string_view name) {
  return name == "kubepods" || name == "kubepods.slice" || name == "kubelet-kubepods.slice";
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
  if (!is_container_id(name)) return {};
  const std::string_view parent = model::parent_path(path);
  if (model::last_component(parent) == "docker") return {Kind::docker, name};
  if (is_pod(model::last_component(parent)) && below_kubepods(parent)) return {Kind::cri, name};
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

std::optional<PodQos> pod_qos(std::string_view path) {
  if (container_of(path).id.empty()) return std::nullopt;
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

bool is_inner_container(std::string_view path) {
  if (model::last_component(path) != "container") return false;
  const Container outer = container_of(model::parent_path(path));
  return !outer.id.empty() && model::last_component(model::parent_path(path)).ends_with(".scope");
}

bool is_container_monitor(std::string_view path) {
  const std::string_view name = model::last_component(path);
  return name.ends_with(".scope") && (name.starts_with("libpod-conmon-") || name.starts_with("crio-conmon-"));
}

}  // namespace berth::cgroup
