// SPDX-License-Identifier: Apache-2.0
#include "daemon/observe/allowed_cpus.h"

#include "model/path.h"

#include <utility>

namespace berth::daemon {

namespace {

std::optional<model::CpuSet> read_cpus(const cgroup::Cgroup& cgroup, const char* file) {
  const auto text = cgroup.read(file);
  if (!text) return std::nullopt;
  auto cpus = model::CpuSet::parse(*text);
  if (!cpus) return std::nullopt;
  return std::move(*cpus);
}

// cpuset.cpus within the parent's vCPUs. Where none is left, the kernel takes the parent's (cgroup-v2,
// "Cpuset").
std::optional<model::CpuSet> narrowed(std::optional<model::CpuSet> parent, const model::CpuSet& configured) {
  if (configured.empty()) return parent;
  if (!parent) return configured;
  return parent->intersects(configured) ? *parent & configured : parent;
}

}  // namespace

model::CpuSet AllowedCpus::root_cpus() const {
  const auto root = cgroup::Cgroup::open(root_, "");
  return root ? read_cpus(**root, "cpuset.cpus.effective").value_or(model::CpuSet()) : model::CpuSet();
}

const AllowedCpus::Files& AllowedCpus::files(const std::string& path) {
  if (const auto known = read_.find(path); known != read_.end()) return known->second;
  Files files;
  if (const auto cgroup = cgroup::Cgroup::open(root_, path)) {
    files.configured = read_cpus(**cgroup, "cpuset.cpus");
    files.effective = read_cpus(**cgroup, "cpuset.cpus.effective");
  }
  return read_.emplace(path, std::move(files)).first->second;
}

AllowedCpus::Permitted AllowedCpus::permitted(const std::string& path, const HeldValues& pins) {
  if (path.empty()) return {files(path).effective, false};
  const Permitted above = permitted(std::string(model::parent_path(path)), pins);
  if (const auto pin = pins.find(path); pin != pins.end()) {
    return {narrowed(above.cpus, pin->second.original_cpus()), true};
  }
  const Files& own = files(path);
  if (above.below_pin) return {narrowed(above.cpus, own.configured.value_or(model::CpuSet())), true};
  // A group without the controller has its parent's vCPUs.
  return {own.effective ? own.effective : above.cpus, false};
}

std::optional<model::CpuSet> AllowedCpus::of(const std::string& workload, const model::CpuSet& configured,
                                             const HeldValues& pins, const model::CpuSet& usable) {
  if (const auto parent = model::parent_path(workload); !parent_ || parent != *parent_) {
    parent_ = std::string(parent);
    by_parent_ = permitted(*parent_, pins);
    restricted_ = by_parent_.cpus && !usable.is_subset_of(*by_parent_.cpus);
  }
  if (configured.empty()) return restricted_ ? by_parent_.cpus : std::nullopt;
  auto allowed = narrowed(by_parent_.cpus, configured);
  if (!allowed || usable.is_subset_of(*allowed)) return std::nullopt;
  return allowed;
}

}  // namespace berth::daemon
