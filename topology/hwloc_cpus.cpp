// SPDX-License-Identifier: Apache-2.0
#include "topology/hwloc_tree.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <string_view>
#include <utility>

#include <hwloc/cpukinds.h>
#include <hwloc/distances.h>

namespace berth::topology {
namespace {

using model::Cpu;
using model::CpuSet;

struct FreeBitmap {
  void operator()(hwloc_bitmap_s* bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, FreeBitmap>;

// Numbers things 0, 1, 2 in the order they are met.
template <typename Thing>
class Numbering {
 public:
  int of(const Thing& thing) {
    return numbers_.emplace(thing, static_cast<int>(numbers_.size())).first->second;
  }
  int count() const { return static_cast<int>(numbers_.size()); }

 private:
  std::map<Thing, int> numbers_;
};

hwloc_obj_t ancestor(hwloc_obj_t obj, hwloc_obj_type_t type) {
  while (obj != nullptr && obj->type != type) obj = obj->parent;
  return obj;
}

// Cores below an object; a hardware thread without one counts as a core.
bool spans_cores(const Tree& tree, hwloc_obj_t obj) {
  const int cores = hwloc_get_nbobjs_inside_cpuset_by_type(tree.get(), obj->cpuset, HWLOC_OBJ_CORE);
  return cores > 1 || (cores == 0 && hwloc_bitmap_weight(obj->cpuset) > 1);
}

// The outermost cache from level 3 up, else the outermost level 2 that several cores share; nullptr where a
// hardware thread has neither.
hwloc_obj_t shared_cache(const Tree& tree, hwloc_obj_t pu) {
  hwloc_obj_t found = nullptr;
  for (hwloc_obj_t obj = pu; obj != nullptr; obj = obj->parent) {
    if (obj->type == HWLOC_OBJ_L3CACHE || obj->type == HWLOC_OBJ_L4CACHE || obj->type == HWLOC_OBJ_L5CACHE)
      found = obj;
    if (obj->type == HWLOC_OBJ_L2CACHE && spans_cores(tree, obj)) found = obj;
  }
  return found;
}

// The last-level cache of every hardware thread that has one. Some hybrid processors have low-power cores
// with a private level 2 beside cores that share a cache: then that level 2 is their last level. Where no
// thread shares a cache, the host counts as one without LLC.
std::map<hwloc_obj_t, hwloc_obj_t> last_level_caches(const Tree& tree) {
  std::map<hwloc_obj_t, hwloc_obj_t> shared;
  std::map<hwloc_obj_t, hwloc_obj_t> alone;
  for (hwloc_obj_t pu = nullptr;
       (pu = hwloc_get_next_obj_by_type(tree.get(), HWLOC_OBJ_PU, pu)) != nullptr;) {
    if (const auto cache = shared_cache(tree, pu)) {
      shared.emplace(pu, cache);
    } else if (const auto own = ancestor(pu, HWLOC_OBJ_L2CACHE)) {
      alone.emplace(pu, own);
    }
  }
  if (!shared.empty()) shared.insert(alone.begin(), alone.end());
  return shared;
}

// The NUMA node that a hardware thread's memory comes from by default. Of several local ones (HBM, CXL beside
// DRAM), the kernel gives that the lowest number.
hwloc_obj_t local_node(hwloc_obj_t pu) {
  hwloc_obj_t best = nullptr;
  for (hwloc_obj_t obj = pu; obj != nullptr; obj = obj->parent) {
    for (hwloc_obj_t node = obj->memory_first_child; node != nullptr; node = node->next_sibling) {
      hwloc_obj_t leaf = node;
      while (leaf->type != HWLOC_OBJ_NUMANODE && leaf->memory_first_child != nullptr)
        leaf = leaf->memory_first_child;
      if (leaf->type == HWLOC_OBJ_NUMANODE && (best == nullptr || leaf->os_index < best->os_index))
        best = leaf;
    }
  }
  return best;
}

// One of hwloc's CPU kinds, in the order of rising performance.
struct Kind {
  CpuSet cpus;
  std::string type;  // "IntelAtom"
  double speed = 0;  // capacity or frequency; 0 where unknown
};

double number_of(const char* text) {
  unsigned value = 0;
  const auto* end = text + std::strlen(text);
  return std::from_chars(text, end, value).ec == std::errc() ? value : 0.0;
}

CpuSet to_cpu_set(hwloc_const_bitmap_t bitmap) {
  CpuSet cpus;
  for (int cpu = hwloc_bitmap_first(bitmap); cpu >= 0 && cpu <= model::kMaxCpu;
       cpu = hwloc_bitmap_next(bitmap, cpu)) {
    cpus.insert(cpu);
  }
  return cpus;
}

std::vector<Kind> kinds_of(const Tree& tree) {
  std::vector<Kind> kinds;
  const int count = hwloc_cpukinds_get_nr(tree.get(), 0);
  for (int i = 0; i < count; ++i) {
    const Bitmap cpus(hwloc_bitmap_alloc());
    int efficiency = -1;
    unsigned infos_count = 0;
    hwloc_info_s* infos = nullptr;
    const auto index = static_cast<unsigned>(i);
    if (hwloc_cpukinds_get_info(tree.get(), index, cpus.get(), &efficiency, &infos_count, &infos, 0) != 0)
      return {};
    // hwloc could not put them in order.
    if (efficiency < 0) return {};
    Kind kind{to_cpu_set(cpus.get()), "", 0};
    double capacity = 0;
    for (unsigned j = 0; j < infos_count; ++j) {
      const std::string_view name = infos[j].name;
      if (name == "CoreType") kind.type = infos[j].value;
      if (name == "LinuxCapacity") capacity = number_of(infos[j].value);
      if (name == "FrequencyMaxMHz") kind.speed = number_of(infos[j].value);
    }
    if (capacity > 0) kind.speed = capacity;
    kinds.push_back(std::move(kind));
  }
  return kinds;
}

// Rank by vCPU. Firmware gives the cores of one design slightly different top frequencies (favoured cores):
// kinds within a quarter of each other are one.
std::map<int, int> efficiency_ranks(const Tree& tree) {
  constexpr double kSameDesign = 1.25;
  std::map<int, int> ranks;
  const auto kinds = kinds_of(tree);
  int rank = 0;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (i > 0) {
      const auto& before = kinds[i - 1];
      const bool comparable = before.speed > 0 && kinds[i].speed > 0;
      const bool same_speed = comparable && kinds[i].speed < before.speed * kSameDesign;
      if (kinds[i].type != before.type || !same_speed) ++rank;
    }
    for (const int cpu : kinds[i].cpus) ranks.emplace(cpu, rank);
  }
  if (rank == 0) ranks.clear();
  return ranks;
}

bool is_number(unsigned os_index) { return os_index <= static_cast<unsigned>(model::kMaxCpu); }

// The number of a package. These are the kernel's (physical_package_id) if it gives each package one of its
// own. Some firmware and some architectures do not; then packages are numbered in the order of the tree.
std::map<hwloc_obj_t, int> package_numbers(const Tree& tree) {
  std::map<hwloc_obj_t, int> numbers;
  std::set<unsigned> seen;
  bool distinct = true;
  for (hwloc_obj_t package = nullptr;
       (package = hwloc_get_next_obj_by_type(tree.get(), HWLOC_OBJ_PACKAGE, package)) != nullptr;) {
    distinct = distinct && is_number(package->os_index) && seen.insert(package->os_index).second;
    numbers.emplace(package, static_cast<int>(package->logical_index));
  }
  if (!distinct) return numbers;
  for (auto& [package, number] : numbers) number = static_cast<int>(package->os_index);
  return numbers;
}

// A number that no package has.
int free_number(const std::map<hwloc_obj_t, int>& packages) {
  std::set<int> taken;
  for (const auto& [package, number] : packages) taken.insert(number);
  int number = 0;
  while (taken.count(number) > 0) ++number;
  return number;
}

struct ReleaseDistances {
  const Tree* tree = nullptr;
  void operator()(hwloc_distances_s* distances) const { hwloc_distances_release(tree->get(), distances); }
};
using Matrix = std::unique_ptr<hwloc_distances_s, ReleaseDistances>;

// The first matrix of latencies between NUMA nodes; nullptr where there is none.
Matrix latencies(const Tree& tree) {
  unsigned count = 1;
  hwloc_distances_s* found = nullptr;
  const int failed = hwloc_distances_get_by_type(tree.get(), HWLOC_OBJ_NUMANODE, &count, &found,
                                                 HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0);
  return {failed == 0 && count > 0 ? found : nullptr, ReleaseDistances{&tree}};
}

std::optional<int> found_in(const std::map<int, int>& map, int key) {
  const auto found = map.find(key);
  return found == map.end() ? std::nullopt : std::optional<int>(found->second);
}

}  // namespace

CpuSet unplaced_cpus(const Tree& tree) {
  const auto* root = hwloc_get_root_obj(tree.get());
  return to_cpu_set(root->complete_cpuset) - to_cpu_set(root->cpuset);
}

std::vector<Cpu> cpus_of(const Tree& tree, const Beside& beside) {
  const auto efficiency = beside.core_kinds.empty() ? efficiency_ranks(tree) : beside.core_kinds;
  const CpuSet allowed =
      beside.allowed ? *beside.allowed : to_cpu_set(hwloc_topology_get_allowed_cpuset(tree.get()));
  const auto last_level = last_level_caches(tree);
  const auto packages = package_numbers(tree);
  const int without_package = free_number(packages);
  Numbering<hwloc_obj_t> cores;
  Numbering<std::pair<hwloc_obj_t, int>>
      caches;  // cut at sockets: virtual machines may claim a cache across them
  std::map<int, Cpu> first_of_core;
  std::vector<Cpu> cpus;
  for (hwloc_obj_t pu = nullptr;
       (pu = hwloc_get_next_obj_by_type(tree.get(), HWLOC_OBJ_PU, pu)) != nullptr;) {
    Cpu cpu;
    cpu.cpu = static_cast<int>(pu->os_index);
    const hwloc_obj_t core = ancestor(pu, HWLOC_OBJ_CORE);
    cpu.core = cores.of(core != nullptr ? core : pu);
    const auto package = packages.find(ancestor(pu, HWLOC_OBJ_PACKAGE));
    cpu.socket = package == packages.end() ? without_package : package->second;
    if (const auto cache = last_level.find(pu); cache != last_level.end()) {
      cpu.llc = caches.of({cache->second, cpu.socket});
    }
    const hwloc_obj_t local = local_node(pu);
    const bool numbered = local != nullptr && is_number(local->os_index);
    cpu.numa =
        found_in(beside.numa_nodes, cpu.cpu).value_or(numbered ? static_cast<int>(local->os_index) : 0);
    // Misconfigured virtual machines split the hardware threads of a core; all take the place of the core's
    // first one.
    const auto [first, fresh] = first_of_core.emplace(cpu.core, cpu);
    if (!fresh) {
      cpu.socket = first->second.socket;
      cpu.llc = first->second.llc;
      cpu.numa = first->second.numa;
    }
    cpu.allowed = allowed.contains(cpu.cpu);
    cpu.efficiency = found_in(efficiency, cpu.cpu);
    cpus.push_back(cpu);
  }

  std::map<int, int> socket_of_node;
  for (const Cpu& cpu : cpus) socket_of_node.emplace(cpu.numa, cpu.socket);
  int next_core = cores.count();
  for (const int offline : unplaced_cpus(tree)) {
    Cpu cpu;
    cpu.cpu = offline;
    cpu.core = next_core++;
    // Where the kernel does not say, those of the first vCPU: any number might be of no node at all.
    cpu.numa = found_in(beside.numa_nodes, offline).value_or(cpus.empty() ? 0 : cpus.front().numa);
    cpu.socket = found_in(socket_of_node, cpu.numa).value_or(cpus.empty() ? 0 : cpus.front().socket);
    cpu.online = false;
    // An offline vCPU is in no effective cpuset. Whether berth may use it shows when it comes back.
    cpu.allowed = true;
    cpus.push_back(cpu);
  }
  return cpus;
}

model::NumaDistances distances_of(const Tree& tree, const std::vector<Cpu>& cpus) {
  std::set<int> nodes;
  for (const Cpu& cpu : cpus) nodes.insert(cpu.numa);
  if (nodes.size() < 2 || nodes.size() > model::kMostDistantNodes) return {};
  const auto matrix = latencies(tree);
  if (!matrix) return {};
  std::map<int, std::size_t> index_of;  // in the matrix, by the node's number
  for (std::size_t index = 0; index < matrix->nbobjs; ++index) {
    const hwloc_obj_t node = matrix->objs[index];
    if (node != nullptr && is_number(node->os_index))
      index_of.emplace(static_cast<int>(node->os_index), index);
  }
  model::NumaDistances distances;
  for (const int from : nodes) {
    for (const int to : nodes) {
      const auto row = index_of.find(from);
      const auto column = index_of.find(to);
      if (row == index_of.end() || column == index_of.end()) return {};
      const std::uint64_t value = matrix->values[row->second * matrix->nbobjs + column->second];
      if (value < 1 || value > model::kMaxNumaDistance) return {};
      distances.values.push_back(static_cast<int>(value));
    }
    distances.nodes.push_back(from);
  }
  return distances;
}

std::vector<model::NumaNode> nodes_of(const Tree& tree) {
  std::vector<model::NumaNode> nodes;
  bool any_memory = false;
  for (hwloc_obj_t node = nullptr;
       (node = hwloc_get_next_obj_by_type(tree.get(), HWLOC_OBJ_NUMANODE, node)) != nullptr;) {
    if (!is_number(node->os_index)) return {};
    const std::uint64_t memory_bytes = node->attr->numanode.local_memory;
    nodes.push_back({.number = static_cast<int>(node->os_index), .memory_bytes = memory_bytes});
    any_memory = any_memory || memory_bytes > 0;
  }
  // An export may have no sizes.
  if (!any_memory) {
    for (model::NumaNode& node : nodes) node.memory_bytes.reset();
  }
  return nodes;
}

std::vector<model::NumaNode> if_any_differs(std::vector<model::NumaNode> nodes,
                                            const std::vector<Cpu>& cpus) {
  std::set<int> with_cpus;
  for (const Cpu& cpu : cpus) with_cpus.insert(cpu.numa);
  const bool any = std::any_of(nodes.begin(), nodes.end(), [&](const model::NumaNode& node) {
    return node.memory_bytes == 0 || with_cpus.count(node.number) == 0;
  });
  if (!any || nodes.size() > model::kMostNumaNodes) return {};
  std::sort(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) { return a.number < b.number; });
  const auto twice = std::adjacent_find(nodes.begin(), nodes.end(),
                                        [](const auto& a, const auto& b) { return a.number == b.number; });
  return twice == nodes.end() ? nodes : std::vector<model::NumaNode>();
}

}  // namespace berth::topology
