// SPDX-License-Identifier: Apache-2.0
#include "cgroup/direct_owner.h"

#include "cgroup/cpuset_owners.h"
#include "model/cpu_set.h"
#include "model/path.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <utility>

#include <fmt/core.h>
#include <sys/stat.h>

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
  const char* since = row_of(attribute).since;
  if (since != nullptr && cgroup.has("cpu.weight")) {  // so the cpu controller is there
    return {model::ErrorKind::unavailable,
            fmt::format("cgroup \"{}\" has no {}: the kernel is older than Linux {}", cgroup.path(),
                        control_file(attribute), since)};
  }
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

// Every CPU (`what` is "cpu") or NUMA node ("node") that is "online", or that the kernel could ever bring
// online ("possible"); nullopt where that cannot be read.
std::optional<model::CpuSet> all_of(const std::filesystem::path& sys_root, const char* what,
                                    const char* state) {
  std::ifstream file(sys_root / "devices/system" / what / state);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  auto cpus = model::CpuSet::parse(text);
  if (!cpus || cpus->empty()) return std::nullopt;
  return std::move(*cpus);
}

model::Error differs(const Cgroup& cgroup, const Value& written, const Value& read) {
  return {model::ErrorKind::io,
          fmt::format("cgroup \"{}\": {} reads \"{}\" after \"{}\" was written", cgroup.path(),
                      control_file(attribute_of(written)), to_text(read), to_text(written))};
}

model::Result<void> read_back(const Cgroup& cgroup, const Value& value) {
  const auto now = read_value(cgroup, attribute_of(value));
  if (!now) return model::fail(now.error());
  if (*now == value) return {};
  return model::fail(differs(cgroup, value, *now));
}

// The kernel refuses the weight while the group is idle, and sets its own when the group stops being idle.
model::Result<Value> write_priority(const Cgroup& cgroup, const CpuIdle& priority) {
  if (const auto written = cgroup.write("cpu.idle", priority.idle ? "1" : "0"); !written)
    return model::fail(written.error());
  if (!priority.idle) {
    const auto weighed = cgroup.write("cpu.weight", fmt::format("{}", priority.weight));
    if (!weighed) return model::fail(weighed.error());
  }
  if (const auto same = read_back(cgroup, priority); !same) return model::fail(same.error());
  return priority;
}

// Of writes within which the kernel works on. Those of a user's groups leave room for others.
constexpr std::size_t kMostUnderWay = 8;
constexpr std::size_t kMostOfUser = 3;

model::Error no_group() { return {model::ErrorKind::gone, "the cgroup no longer exists"}; }

}  // namespace

model::Result<Value> write_value(const Cgroup& cgroup, const Value& value,
                                 const std::filesystem::path& sys_root) {
  if (const auto* priority = std::get_if<CpuIdle>(&value)) return write_priority(cgroup, *priority);
  const char* file = control_file(attribute_of(value));
  const auto written = cgroup.write(file, to_text(value));
  if (written) {
    if (const auto same = read_back(cgroup, value); !same) return model::fail(same.error());
    return value;
  }
  const bool nodes = value == Value(MemoryNodes());
  if ((!nodes && value != Value(model::CpuSet())) || written.error().errno_value() != ENOSPC) {
    return model::fail(written.error());
  }
  auto all = all_of(sys_root, nodes ? "node" : "cpu", "possible");
  if (!all) return model::fail(written.error());
  if (!nodes) *all -= partitions_beside(cgroup, all_of(sys_root, "cpu", "online").value_or(*all));
  if (all->empty()) return model::fail(written.error());
  if (const auto widened = cgroup.write(file, all->to_string()); !widened)
    return model::fail(widened.error());
  if (nodes) return MemoryNodes{std::move(*all)};
  return std::move(*all);
}

std::optional<std::string> burst_above(const Cgroup& cgroup, const Value& value) {
  const auto* burst = std::get_if<CpuBurst>(&value);
  const auto* limit = std::get_if<CpuMax>(&value);
  if (burst == nullptr && limit == nullptr) return std::nullopt;
  const auto other = read_value(cgroup, burst != nullptr ? Attribute::cpu_quota : Attribute::cpu_burst);
  if (!other) return std::nullopt;
  const auto quota_us = burst != nullptr ? std::get<CpuMax>(*other).quota_us : limit->quota_us;
  const std::uint64_t burst_us = burst != nullptr ? burst->us : std::get<CpuBurst>(*other).us;
  if (!quota_us || burst_us <= *quota_us) return std::nullopt;
  return burst != nullptr
             ? fmt::format("the quota is {} us, and the kernel takes no burst above it", *quota_us)
             : fmt::format("cpu.max.burst is {} us, and the kernel takes no quota below it", burst_us);
}

model::Result<void> lower_burst_to(const Cgroup& cgroup, const Value& quota) {
  const auto* limit = std::get_if<CpuMax>(&quota);
  if (limit == nullptr || !burst_above(cgroup, quota)) return {};
  return cgroup.write(control_file(Attribute::cpu_burst), to_text(CpuBurst{*limit->quota_us}));
}

model::Result<void> check_granted(const Cgroup& cgroup, const model::CpuSet& cpus,
                                  const std::filesystem::path& cgroup_root) {
  const auto text = cgroup.read("cpuset.cpus.effective");
  if (!text) return {};  // nothing to hold it against
  const auto granted = model::CpuSet::parse(*text);
  // The kernel grants a subset of the group's cpulist. So the two are equal where the subset holds all of it.
  if (!granted || cpus.is_subset_of(*granted)) return {};
  std::string message = fmt::format("cgroup \"{}\": asked for vCPUs {}, granted {}", cgroup.path(),
                                    cpus.to_string(), granted->to_string());
  for (std::string path = cgroup.path(); !path.empty();) {
    path.resize(model::parent_path(path).size());
    const auto above = Cgroup::open(cgroup_root, path);
    const auto limit = above ? (*above)->read("cpuset.cpus") : model::fail(above.error());
    const auto limit_cpus = limit ? model::CpuSet::parse(*limit) : model::fail(limit.error());
    if (limit_cpus && !limit_cpus->empty() && !cpus.is_subset_of(*limit_cpus)) {
      return model::fail(model::ErrorKind::io,
                         fmt::format("{}; /{} is limited to {}", message, path, limit_cpus->to_string()));
    }
  }
  return model::fail(model::ErrorKind::io, message + "; are the others online?");
}

DirectOwner::DirectOwner(std::filesystem::path cgroup_root, std::filesystem::path sys_root,
                         WriteLimit write_limit, std::chrono::milliseconds patience)
    : cgroup_root_(std::move(cgroup_root)),
      sys_root_(std::move(sys_root)),
      write_limit_(std::move(write_limit)),
      patience_(patience) {}

model::Result<void> DirectOwner::write_memory_high(const Cgroup& cgroup, const std::string& text) {
  return cgroup.write(control_file(Attribute::memory_high), text);
}

model::Result<void> check_granted(const Cgroup& cgroup, const MemoryNodes& bound) {
  const auto text = cgroup.read("cpuset.mems.effective");
  const auto granted = text ? model::CpuSet::parse(*text) : model::fail(text.error());
  if (!granted || bound.nodes.is_subset_of(*granted)) return {};
  return model::fail(
      model::ErrorKind::io,
      fmt::format("cgroup \"{}\": asked for memory of NUMA nodes {}, granted {}; do all of them "
                  "have memory, and do the cgroups above permit them?",
                  cgroup.path(), bound.nodes.to_string(), granted->to_string()));
}

Value DirectOwner::attainable(const Value& value) const { return value; }

model::Result<Original> DirectOwner::original(const Target& target, Attribute attribute) {
  const auto value = current(target, attribute);
  if (!value) return model::fail(value.error());
  return Original{*value, {}};
}

model::Result<Value> DirectOwner::current(const Target& target, Attribute attribute) {
  if (target.cgroup == nullptr) return model::fail(no_group());
  return read_value(*target.cgroup, attribute);
}

model::Result<void> DirectOwner::set(const Target& target, const Value& value) {
  if (target.cgroup == nullptr) return model::fail(no_group());
  const Cgroup& cgroup = *target.cgroup;
  const Attribute attribute = attribute_of(value);
  if (!cgroup.has(control_file(attribute))) {
    if (!cgroup.is_current()) return model::fail(no_group());
    return model::fail(missing_controller(cgroup_root_, cgroup, attribute));
  }
  const auto* nodes = std::get_if<MemoryNodes>(&value);
  if (nodes != nullptr || attribute == Attribute::memory_high) {
    if (const auto set = set_slowly(cgroup, value); !set) return model::fail(set.error());
    return nodes != nullptr ? check_granted(cgroup, *nodes) : model::Result<void>();
  }
  if (const auto written = write_value(cgroup, value, sys_root_); !written) {
    const auto burst = burst_above(cgroup, value);
    return model::fail(burst ? written.error().context(*burst) : written.error());
  }
  const auto* cpus = std::get_if<model::CpuSet>(&value);
  return cpus != nullptr ? check_granted(cgroup, *cpus, cgroup_root_) : model::Result<void>();
}

// The kernel puts these values in force, and then works on within the write. It reclaims what lies above a
// limit (memory_high_write() in mm/memcontrol.c), or moves pages to the nodes (cpuset_write_resmask() in
// kernel/cgroup/cpuset.c). That can take minutes where pages have to go to a slow disk.
model::Result<Value> DirectOwner::set_slowly(const Cgroup& cgroup, const Value& value) {
  const Attribute attribute = attribute_of(value);
  std::erase_if(under_way_, [](const auto& item) { return !item.second.worker.is_busy(); });
  struct stat status {};
  const uid_t owner = fstat(cgroup.fd(), &status) == 0 ? status.st_uid : 0;
  const auto of_owner = static_cast<std::size_t>(std::ranges::count_if(
      under_way_, [owner](const auto& item) { return owner != 0 && item.second.owner == owner; }));
  const std::pair key(cgroup.id(), attribute);
  if (!under_way_.contains(key) && (under_way_.size() >= kMostUnderWay || of_owner >= kMostOfUser)) {
    return model::fail(
        model::ErrorKind::transient,
        fmt::format("the kernel still reclaims or moves memory of {} other cgroups; berth tries again",
                    under_way_.size()));
  }
  const auto write = [cgroup = cgroup.shared_from_this(), value, sys_root = sys_root_,
                      limit = write_limit_]() -> model::Result<void> {
    if (attribute_of(value) == Attribute::memory_high) return limit(*cgroup, to_text(value));
    if (const auto written = write_value(*cgroup, value, sys_root); !written)
      return model::fail(written.error());
    return {};
  };
  SlowWrite& slow = under_way_[key];
  slow.owner = owner;
  os::Worker& worker = slow.worker;
  if (!worker.can_run()) {
    return model::fail(model::ErrorKind::transient,
                       "the host has no thread for the write now, as its table of processes may be full; "
                       "berth tries again");
  }
  const auto written = worker.run(write, patience_);
  if (written && !*written) return model::fail(written->error());
  auto now = read_value(cgroup, attribute);
  const bool cleared = written && value == Value(MemoryNodes());
  if (!now || *now == value || cleared) return now;
  if (written) return model::fail(differs(cgroup, value, *now));
  return model::fail(model::ErrorKind::transient,
                     fmt::format("the kernel still {} memory of cgroup \"{}\"",
                                 attribute == Attribute::memory_high ? "reclaims" : "moves", cgroup.path()));
}

bool DirectOwner::is_busy(const Target& target, Attribute attribute) const {
  if (target.cgroup == nullptr) return false;
  const auto write = under_way_.find({target.cgroup->id(), attribute});
  return write != under_way_.end() && write->second.worker.is_busy();
}

model::Result<Value> DirectOwner::reset(const Target& target, const Original& original) {
  const Attribute attribute = attribute_of(original.value);
  auto now = current(target, attribute);
  if (!now || *now == original.value) return now;
  if (!target.cgroup->has(control_file(attribute))) {
    return model::fail(missing_controller(cgroup_root_, *target.cgroup, attribute));
  }
  if (attribute == Attribute::memory_high || attribute == Attribute::memory_nodes)
    return set_slowly(*target.cgroup, original.value);
  if (auto lowered = lower_burst_to(*target.cgroup, original.value); !lowered)
    return model::fail(lowered.error());
  return write_value(*target.cgroup, original.value, sys_root_);
}

// Another program that ends idle priority gets the kernel's default weight. The former one was lost by
// berth's write, so berth puts it back.
model::Result<void> DirectOwner::relinquish(const Target& target, const Original& original,
                                            const Value& written) {
  if (target.cgroup == nullptr || attribute_of(written) != Attribute::cpu_idle) return {};
  const auto now = read_value(*target.cgroup, Attribute::cpu_idle);
  if (!now || !has_lost_weight(written, *now) || std::get<CpuIdle>(original.value).idle) return {};
  if (const auto back = write_value(*target.cgroup, original.value, sys_root_); !back)
    return model::fail(back.error());
  return {};
}

// Before Linux 6.10 and 6.1.93, a write to cpu.max also leaves a thousandth of the burst: cpu_max_write() in
// kernel/sched/core.c took microseconds for nanoseconds.
model::Result<bool> DirectOwner::merged(const Target& /*target*/, const Original& /*original*/,
                                        const Value& written, const Value& current) {
  const auto* ours = std::get_if<CpuBurst>(&written);
  const auto* now = std::get_if<CpuBurst>(&current);
  return ours != nullptr && now != nullptr && now->us == ours->us / 1000;
}

}  // namespace berth::cgroup
