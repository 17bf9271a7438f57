// SPDX-License-Identifier: Apache-2.0
#include "daemon/observe/blame_ledger.h"

#include "ebpf/slices.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace berth::daemon {

namespace {

bool has_name(CulpritKind kind) { return kind <= CulpritKind::cgroup; }

// Whether something ran on the vCPU during the wait, so that the hypervisor may have stolen a part of it.
bool ran(const BlameLedger::Reading::Wait& wait) { return wait.by != BERTH_BY_QUOTA; }

// Cgroups nested deeper are not told apart when names are folded.
constexpr int kDeepest = 64;

// The names at and below a cgroup.
struct Node {
  std::map<CulpritKind, double> own;  // ms
  std::map<std::string, Node> below;  // by component
  std::size_t names = 0;              // of all of them
  double ms = 0;                      // likewise

  void add(std::string_view rest, CulpritKind kind, double waited_ms, int depth) {
    ++names;
    ms += waited_ms;
    if (rest.empty()) {
      own[kind] += waited_ms;
      return;
    }
    const std::size_t end = depth < kDeepest ? std::min(rest.find('/'), rest.size()) : rest.size();
    below[std::string(rest.substr(0, end))].add(rest.substr(std::min(end + 1, rest.size())), kind, waited_ms,
                                                depth + 1);
  }
};

// The number of names that each node below may have. All get the same number. What is left goes to the
// heaviest, which come first.
std::vector<std::size_t> share_out(const std::vector<std::pair<std::string, const Node*>>& below,
                                   std::size_t room) {
  const auto needed = [&](std::size_t each) {
    std::size_t sum = 0;
    for (const auto& [name, node] : below) sum += std::min(node->names, each);
    return sum;
  };
  std::size_t even = 0;
  for (std::size_t high = room; even < high;) {
    const std::size_t middle = high - (high - even) / 2;
    if (needed(middle) <= room) {
      even = middle;
    } else {
      high = middle - 1;
    }
  }
  std::size_t left = room - needed(even);
  std::vector<std::size_t> shares;
  shares.reserve(below.size());
  for (const auto& [name, node] : below) {
    const bool more = node->names > even && left > 0;
    shares.push_back(std::min(node->names, even) + (more ? 1 : 0));
    if (more) --left;
  }
  return shares;
}

// Adds the names of a node to `folded`, `most` of them; at least one.
void fold_node(const Node& node, const std::string& path, std::size_t most, Blames& folded) {
  const std::string name = path.empty() ? "/" : path;
  const std::size_t fixed = node.own.size() + (node.own.contains(CulpritKind::cgroup) ? 0 : 1);
  if (node.names > most && fixed >= most) {
    folded[{CulpritKind::cgroup, name}] += node.ms;
    return;
  }
  for (const auto& [kind, ms] : node.own) folded[{kind, name}] += ms;
  std::vector<std::pair<std::string, const Node*>> below;
  for (const auto& [component, child] : node.below) {
    std::string place = path;
    if (!place.empty()) place += '/';
    below.emplace_back(place += component, &child);
  }
  if (node.names > most) {
    std::stable_sort(below.begin(), below.end(),
                     [](const auto& a, const auto& b) { return a.second->ms > b.second->ms; });
  }
  const auto shares = share_out(below, node.names > most ? most - fixed : node.names);
  for (std::size_t at = 0; at < below.size(); ++at) {
    const auto& [child_path, child] = below[at];
    if (shares[at] > 0) {
      fold_node(*child, child_path, shares[at], folded);
    } else {
      folded[{CulpritKind::cgroup, name}] += child->ms;
    }
  }
}

}  // namespace

Blames fold(const Blames& blames, std::size_t most) {
  Node root;
  Blames folded;
  for (const auto& [culprit, ms] : blames) {
    if (has_name(culprit.kind)) {
      root.add(culprit.name == "/" ? "" : culprit.name, culprit.kind, ms, 0);
    } else {
      folded[culprit] = ms;
    }
  }
  if (root.names <= most) return blames;
  fold_node(root, "", std::max<std::size_t>(most, 1), folded);
  return folded;
}

const char* to_string(CulpritKind kind) {
  switch (kind) {
    case CulpritKind::instance:
      return "instance";
    case CulpritKind::latency_sensitive:
      return "latency-sensitive";
    case CulpritKind::best_effort:
      return "best-effort";
    case CulpritKind::cgroup:
      return "cgroup";
    case CulpritKind::self:
      return "own";
    case CulpritKind::quota:
      return "quota";
    case CulpritKind::kernel:
      return "kernel";
    case CulpritKind::interrupts:
      return "interrupts";
    case CulpritKind::steal:
      return "steal";
    case CulpritKind::idle:
      return "idle";
    case CulpritKind::unknown:
      break;
  }
  return "unknown";
}

CulpritName BlameLedger::name_of(const Reading::Wait& wait, const BlameWorkload& waits,
                                 const BlameWorkloads& workloads) {
  switch (wait.by) {
    case BERTH_BY_IDLE:
      return {CulpritKind::idle, ""};
    case BERTH_BY_KERNEL:
      return {CulpritKind::kernel, ""};
    case BERTH_BY_INTERRUPTS:
      return {CulpritKind::interrupts, ""};
    case BERTH_BY_QUOTA:
      return {CulpritKind::quota, ""};
    case BERTH_BY_UNKNOWN:
      return {CulpritKind::unknown, ""};
    default:
      break;
  }
  // Of nested matches the outermost is the workload.
  for (const std::uint64_t id : wait.group.ids) {
    const auto found = workloads.find(id);
    if (found == workloads.end()) continue;
    const BlameWorkload& ran = found->second;
    if (ran.id == waits.id) return {CulpritKind::self, ""};
    if (!ran.service.empty() && ran.service == waits.service) return {CulpritKind::instance, ran.id};
    const bool latency = ran.workload_class == model::WorkloadClass::latency_sensitive;
    return {latency ? CulpritKind::latency_sensitive : CulpritKind::best_effort, ran.id};
  }
  // Processes may also be in the root cgroup, which has no path.
  const bool known = !wait.group.path.empty() || wait.by == 1;
  if (!known) return {CulpritKind::unknown, ""};
  return {CulpritKind::cgroup, wait.group.path.empty() ? "/" : wait.group.path};
}

BlameLedger::Waiting* BlameLedger::entry_of(const BlameWorkload& workload, const BlameWorkloads& workloads) {
  const auto found = waiting_.find(workload.id);
  if (found != waiting_.end()) return &found->second;
  if (waiting_.size() >= kMostWaiting) {
    std::set<std::string> living;
    for (const auto& [id, present] : workloads) living.insert(present.id);
    std::erase_if(waiting_, [&](const auto& entry) { return !living.contains(entry.first); });
    if (waiting_.size() >= kMostWaiting) return nullptr;
  }
  return &waiting_.emplace(workload.id, Waiting{workload.service, {}}).first->second;
}

void BlameLedger::add(const Reading& reading, const BlameWorkloads& workloads) {
  const auto found = workloads.find(reading.cgroup);
  if (found == workloads.end()) return;
  const BlameWorkload& waits = found->second;
  Waiting* waiting = entry_of(waits, workloads);
  double all = 0;
  for (const auto& wait : reading.waits) all += ran(wait) ? wait.ms : 0;
  const double stolen = std::clamp(reading.stolen_ms, 0.0, all);
  const double left = all > 0 ? 1 - stolen / all : 1;
  const auto add_one = [&](CulpritName culprit, double ms) {
    if (ms <= 0) return;
    seconds_.at(static_cast<std::size_t>(culprit.kind)) += ms / 1000;
    if (waiting != nullptr) waiting->blames[std::move(culprit)] += ms;
  };
  for (const auto& wait : reading.waits)
    add_one(name_of(wait, waits, workloads), ran(wait) ? wait.ms * left : wait.ms);
  add_one({CulpritKind::steal, ""}, stolen);
  if (waiting == nullptr) return;
  const std::size_t most = std::clamp(kMostNames / waiting_.size(), kLeastNamesOfOne, kMostNamesOfOne);
  // With room for some more, so that not each reading of a crowd does this.
  if (waiting->blames.size() > most + kCulpritKinds) waiting->blames = fold(waiting->blames, most * 3 / 4);
}

void BlameLedger::forget(const std::string& subject, const std::set<std::string>& kept) {
  std::erase_if(waiting_, [&](const auto& entry) {
    return (entry.first == subject || entry.second.service == subject) && !kept.contains(entry.first);
  });
}

Blames BlameLedger::of(const std::string& subject) const {
  Blames sum;
  for (const auto& [id, waiting] : waiting_) {
    if (id != subject && waiting.service != subject) continue;
    for (const auto& [culprit, ms] : waiting.blames) sum[culprit] += ms;
  }
  return fold(sum, kMostNamesOfOne);
}

}  // namespace berth::daemon
