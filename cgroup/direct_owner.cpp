// SPDX-License-Identifier: Apache-2.0
#include "cgroup/direct_owner.h"

#include "model/cpu_set.h"

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <utility>

#include <fmt/core.h>

namespace berth::cgroup {

namespace {

bool has_word(const std::string& words, std::string_view word) {
  std::size_t begin = 0;
  while (begin < words.size()) {
    const std::size_t end = words.find_first_of(" \n", begin);
    const std::size_t length = (end == std::string::npos ? words.size() : end) - begin;
    if (std::string_view(words).substr(begin, length) == word) return true;
    begin += length + 1;
  }
  return false;
}

// The outermost group that does not pass the controller down; empty where none can be named.
std::string withholder(const std::filesystem::path& root, const std::string& path, const char* controller) {
  std::size_t end = 0;
  while (end != std::string::npos) {
    const std::string ancestor = path.substr(0, end);
    const auto group = Cgroup::open(root, ancestor);
    if (!group) return {};
    const auto passed = (*group)->read("cgroup.subtree_control");
    if (!passed) return {};
    if (!has_word(*passed, controller)) return "/" + ancestor;
    end = path.find('/', end == 0 ? 0 : end + 1);
  }
  return {};
}

model::Error missing_controller(const std::filesystem::path& root, const Cgroup& cgroup,
                                Attribute attribute) {
  const char* name = controller(attribute);
  std::string message = fmt::format("cgroup \"{}\" has no {}: the {} controller is not enabled for it",
                                    cgroup.path(), control_file(attribute), name);
  const auto top = Cgroup::open(root, "");
  const auto offered = top ? (*top)->read("cgroup.controllers") : model::fail(top.error());
  if (offered && !has_word(*offered, name)) {
    message += "; the v2 hierarchy does not have it at all (in use by cgroup v1, or disabled at boot)";
  } else if (const std::string above = withholder(root, cgroup.path(), name); !above.empty()) {
    message +=
        fmt::format("; cgroup.subtree_control of {} lacks it, and berth does not change that file", above);
  }
  return {model::ErrorKind::unavailable, std::move(message)};
}

// Every CPU the kernel could ever bring online; nullopt where that cannot be read.
std::optional<std::string> possible_cpus(const std::filesystem::path& sys_root) {
  std::ifstream file(sys_root / "devices/system/cpu/possible");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const auto cpus = model::CpuSet::parse(text);
  if (!cpus || cpus->empty()) return std::nullopt;
  return cpus->to_string();
}

model::Result<void> read_back(const Cgroup& cgroup, Attribute attribute, const std::string& value) {
  const auto now = read_attribute(cgroup, attribute);
  if (!now) return model::fail(now.error());
  if (*now == value) return {};
  return model::fail(model::ErrorKind::io,
                     fmt::format("cgroup \"{}\": {} reads \"{}\" after \"{}\" was written", cgroup.path(),
                                 control_file(attribute), *now, value));
}

model::Error no_group() { return {model::ErrorKind::gone, "the cgroup no longer exists"}; }

}  // namespace

model::Result<std::string> write_attribute(const Cgroup& cgroup, Attribute attribute,
                                           const std::string& value, const std::filesystem::path& sys_root) {
  const auto written = cgroup.write(control_file(attribute), value);
  if (written) {
    if (const auto same = read_back(cgroup, attribute, value); !same) return model::fail(same.error());
    return value;
  }
  if (attribute != Attribute::cpus || !value.empty() || written.error().errno_value() != ENOSPC) {
    return model::fail(written.error());
  }
  const auto all = possible_cpus(sys_root);
  if (!all) return model::fail(written.error());
  if (const auto widened = cgroup.write(control_file(attribute), *all); !widened) {
    return model::fail(widened.error());
  }
  return *all;
}

std::optional<std::string> burst_above(const Cgroup& cgroup, const std::string& cpu_max) {
  const auto limit = parse_cpu_max(cpu_max);
  const auto burst = cgroup.read("cpu.max.burst");
  if (!limit || !limit->quota_us || !burst) return std::nullopt;
  std::uint64_t burst_us = 0;
  std::from_chars(burst->data(), burst->data() + burst->size(), burst_us);
  if (burst_us <= *limit->quota_us) return std::nullopt;
  return fmt::format("cpu.max.burst is {} us, and the kernel takes no quota below it", burst_us);
}

model::Result<void> check_granted(const Cgroup& cgroup, const std::string& cpus,
                                  const std::filesystem::path& cgroup_root) {
  const auto wanted = model::CpuSet::parse(cpus);
  const auto text = cgroup.read("cpuset.cpus.effective");
  if (!wanted || !text) return {};  // nothing to hold it against
  const auto granted = model::CpuSet::parse(*text);
  // The kernel grants a subset of the group's cpulist. So the two are equal where the subset holds all of it.
  if (!granted || wanted->is_subset_of(*granted)) return {};
  std::string message =
      fmt::format("cgroup \"{}\": asked for vCPUs {}, granted {}", cgroup.path(), cpus, granted->to_string());
  for (std::string path = cgroup.path(); !path.empty();) {
    const std::size_t slash = path.rfind('/');
    path.resize(slash == std::string::npos ? 0 : slash);
    const auto above = Cgroup::open(cgroup_root, path);
    const auto limit = above ? (*above)->read("cpuset.cpus") : model::fail(above.error());
    const auto limit_cpus = limit ? model::CpuSet::parse(*limit) : model::fail(limit.error());
    if (limit_cpus && !limit_cpus->empty() && !wanted->is_subset_of(*limit_cpus)) {
      return model::fail(model::ErrorKind::io,
                         fmt::format("{}; /{} is limited to {}", message, path, limit_cpus->to_string()));
    }
  }
  return model::fail(model::ErrorKind::io, message + "; are the others online?");
}

DirectOwner::DirectOwner(std::filesystem::path cgroup_root, std::filesystem::path sys_root)
    : cgroup_root_(std::move(cgroup_root)), sys_root_(std::move(sys_root)) {}

std::string DirectOwner::attainable(Attribute /*attribute*/, const std::string& value) const { return value; }

model::Result<Original> DirectOwner::original(const Target& target, Attribute attribute) {
  const auto value = current(target, attribute);
  if (!value) return model::fail(value.error());
  return Original{*value, {}};
}

model::Result<std::string> DirectOwner::current(const Target& target, Attribute attribute) {
  if (target.cgroup == nullptr) return model::fail(no_group());
  return read_attribute(*target.cgroup, attribute);
}

model::Result<void> DirectOwner::set(const Target& target, Attribute attribute, const std::string& value) {
  if (target.cgroup == nullptr) return model::fail(no_group());
  const Cgroup& cgroup = *target.cgroup;
  if (!cgroup.has(control_file(attribute))) {
    if (!cgroup.is_current()) return model::fail(no_group());
    return model::fail(missing_controller(cgroup_root_, cgroup, attribute));
  }
  if (const auto written = write_attribute(cgroup, attribute, value, sys_root_); !written) {
    const auto burst = attribute == Attribute::cpu_quota ? burst_above(cgroup, value) : std::nullopt;
    return model::fail(burst ? written.error().context(*burst) : written.error());
  }
  return attribute == Attribute::cpus ? check_granted(cgroup, value, cgroup_root_) : model::Result<void>();
}

model::Result<std::string> DirectOwner::reset(const Target& target, Attribute attribute,
                                              const Original& original) {
  const auto now = current(target, attribute);
  if (!now || *now == original.value) return now;
  if (!target.cgroup->has(control_file(attribute))) {
    return model::fail(missing_controller(cgroup_root_, *target.cgroup, attribute));
  }
  return write_attribute(*target.cgroup, attribute, original.value, sys_root_);
}

model::Result<void> DirectOwner::relinquish(const Target& /*target*/, Attribute /*attribute*/,
                                            const Original& /*original*/, const std::string& /*written*/) {
  return {};
}

model::Result<bool> DirectOwner::merged(const Target& /*target*/, Attribute /*attribute*/,
                                        const Original& /*original*/, const std::string& /*written*/,
                                        const std::string& /*current*/) {
  return false;
}

}  // namespace berth::cgroup
