// SPDX-License-Identifier: Apache-2.0
#include "cgroup/hierarchy.h"

#include "cgroup/cgroup.h"
#include "os/log.h"
#include "os/mounts.h"

#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <sstream>
#include <string_view>
#include <system_error>

#include <fmt/core.h>
#include <libcgroup.h>
#include <linux/magic.h>
#include <sys/vfs.h>

namespace berth::cgroup {

namespace {

// Better ones are lower: the usual places first, parts of the tree last.
int rank(const os::Mount& mount) {
  if (mount.root != "/") return 3;
  if (mount.point == "/sys/fs/cgroup") return 0;
  if (mount.point == "/sys/fs/cgroup/unified") return 1;
  return 2;
}

std::set<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  std::set<std::string> found;
  for (std::string word; stream >> word;) found.insert(word);
  return found;
}

model::Capability controller(const Hierarchy& hierarchy, const std::string& name,
                             const std::string& without) {
  model::Capability capability{name + "-controller", hierarchy.controllers.contains(name), {}};
  if (capability.available) {
    capability.detail = fmt::format("offered by {}", hierarchy.root.string());
    return capability;
  }
  const auto v1 = hierarchy.v1_mounts.find(name);
  const std::string why = v1 != hierarchy.v1_mounts.end()
                              ? fmt::format("on cgroup v1 at {}, which berth leaves alone", v1->second)
                              : fmt::format("not in {}/cgroup.controllers", hierarchy.root.string());
  capability.detail = fmt::format("{}; {}", why, without);
  return capability;
}

model::Capability pressure(const Hierarchy& hierarchy) {
  model::Capability capability{"psi", false, {}};
  const char* without = "berth shows no pressure";
  const auto root = Cgroup::open(hierarchy.root, "");
  const auto text = root ? (*root)->read("cpu.pressure") : tl::unexpected<model::Error>(root.error());
  if (text) {
    capability.available = text->starts_with("some ");
    capability.detail = capability.available ? "pressure stall information per cgroup"
                                             : fmt::format("cpu.pressure is not understood; {}", without);
  } else if (text.error().errno_value() == EOPNOTSUPP) {
    capability.detail =
        fmt::format("switched off at boot (psi=1 on the kernel command line starts it); {}", without);
  } else if (text.error().errno_value() == ENOENT) {
    capability.detail =
        fmt::format("no cpu.pressure in {}: the kernel lacks PSI or it was not started (psi=1); {}",
                    hierarchy.root.string(), without);
  } else {
    capability.detail = fmt::format("{}; {}", text.error().message(), without);
  }
  return capability;
}

bool is_host(const std::filesystem::path& proc_root) {
  return (proc_root / "").lexically_normal() == "/proc/";
}

// libcgroup's own logger writes to standard output.
void take_message(void*, int, const char* format, va_list arguments) {
  std::array<char, 512> text{};
  if (std::vsnprintf(text.data(), text.size(), format, arguments) < 0) return;
  std::string_view line(text.data());
  if (line.ends_with('\n')) line.remove_suffix(1);
  os::log_warning("libcgroup: {}", line);
}

tl::unexpected<model::Error> failed(const char* what, int code) {
  return model::fail(model::ErrorKind::unavailable,
                     fmt::format("libcgroup: {}: {}", what, cgroup_strerror(code)));
}

}  // namespace

bool is_kernels_own(const std::filesystem::path& directory) {
  struct statfs status {};
  return statfs(directory.c_str(), &status) == 0 && status.f_type == CGROUP2_SUPER_MAGIC;
}

model::Result<Hierarchy> find_hierarchy(const std::filesystem::path& given,
                                        const std::filesystem::path& proc_root) {
  // Elsewhere than in /proc there is no host whose controllers could be listed.
  return find_hierarchy(given, proc_root, is_host(proc_root) ? mounted_controllers : ListControllers());
}

model::Result<Hierarchy> find_hierarchy(const std::filesystem::path& given,
                                        const std::filesystem::path& proc_root,
                                        const ListControllers& list_controllers) {
  const std::filesystem::path table = proc_root / "self" / "mountinfo";
  const auto mounts = os::read_mounts(proc_root);
  const os::Mount* best = nullptr;
  Hierarchy hierarchy;
  hierarchy.proc_root = proc_root;
  bool given_is_mount = false;
  std::set<std::string> on_v1;  // mount points
  if (mounts) {
    for (const os::Mount& mount : mounts->mounts) {
      if (mount.type == "cgroup2") {
        if (best == nullptr || rank(mount) < rank(*best)) best = &mount;
        given_is_mount =
            given_is_mount || (given / "").lexically_normal() == std::filesystem::path(mount.point) / "";
      } else if (mount.type == "cgroup") {
        on_v1.insert(mount.point);
      }
    }
  }
  // On a host without cgroup v1 there is nothing to ask.
  const auto controllers_by_name =
      list_controllers && !on_v1.empty() ? list_controllers() : ControllerMounts();
  if (!controllers_by_name) {
    os::log_warning("controllers on cgroup v1 are not known: {}", controllers_by_name.error().message());
  } else {
    for (const auto& [name, point] : *controllers_by_name) {
      if (on_v1.contains(point)) hierarchy.v1_mounts.emplace(name, point);
    }
  }

  if (given.empty()) {
    if (!mounts) {
      return model::fail(model::ErrorKind::unavailable,
                         fmt::format("no cgroup v2 tree: {} cannot be read", table.string()));
    }
    if (best == nullptr) {
      return model::fail(
          model::ErrorKind::unavailable,
          fmt::format("no cgroup v2 tree: {} lists no file system of type cgroup2{}", table.string(),
                      on_v1.empty() ? "" : ", only cgroup v1, which berth does not use"));
    }
    hierarchy.root = best->point;
  } else {
    hierarchy.root = given;
    // A tree that is no mount of this host says nothing about what this host keeps on v1.
    if (!given_is_mount) hierarchy.v1_mounts.clear();
  }

  // Elsewhere than in /proc, the host is one of ordinary files.
  if (is_host(proc_root) && !is_kernels_own(hierarchy.root)) {
    return model::fail(model::ErrorKind::unavailable,
                       fmt::format("{} is no cgroup v2 tree: it is on a file system of another kind",
                                   hierarchy.root.string()));
  }
  const auto root = Cgroup::open(hierarchy.root, "");
  const auto controllers =
      root ? (*root)->read("cgroup.controllers") : tl::unexpected<model::Error>(root.error());
  if (!controllers) {
    return model::fail(
        model::ErrorKind::unavailable,
        fmt::format("{} is no cgroup v2 tree: {}", hierarchy.root.string(), controllers.error().message()));
  }
  hierarchy.controllers = words(*controllers);
  hierarchy.hybrid = !hierarchy.v1_mounts.empty();
  return hierarchy;
}

std::vector<model::Capability> capabilities(const Hierarchy& hierarchy) {
  model::Capability tree{"cgroup-v2", true, {}};
  if (hierarchy.hybrid) {
    std::string offered;
    for (const std::string& name : hierarchy.controllers) offered += (offered.empty() ? "" : ", ") + name;
    tree.detail = fmt::format("hybrid: v2 at {} with {}, the rest on cgroup v1, which berth leaves alone",
                              hierarchy.root.string(), offered.empty() ? "no controllers" : offered);
  } else {
    tree.detail = fmt::format("unified, at {}", hierarchy.root.string());
  }
  return {std::move(tree), controller(hierarchy, "cpuset", "berth plans pins and cannot apply them"),
          controller(hierarchy, "cpu", "berth knows no quotas and sets none; use of CPU is still measured"),
          controller(hierarchy, "memory", "berth sees no memory use of workloads and sets no limit"),
          pressure(hierarchy)};
}

model::Result<std::map<std::string, std::string>> mounted_controllers() {
  cgroup_set_logger(take_message, CGROUP_LOG_WARNING, nullptr);
  std::map<std::string, std::string> found;
  const int initialised = cgroup_init();
  if (initialised == ECGROUPNOTMOUNTED) return found;
  if (initialised != 0) return failed("reading the mounted controllers", initialised);
  void* handle = nullptr;
  cgroup_mount_point mount{};
  int code = cgroup_get_controller_begin(&handle, &mount);
  for (; code == 0; code = cgroup_get_controller_next(&handle, &mount)) {
    const std::string_view name(&mount.name[0]);
    // A v1 hierarchy without a controller is listed by its name.
    if (!name.starts_with("name=")) found.emplace(name, &mount.path[0]);
  }
  cgroup_get_controller_end(&handle);
  if (code != ECGEOF) return failed("listing the mounted controllers", code);
  return found;
}

}  // namespace berth::cgroup
