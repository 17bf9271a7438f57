// SPDX-License-Identifier: Apache-2.0
#include "topology/discover.h"

#include "topology/hwloc_tree.h"
#include "topology/sysfs.h"

#include <cerrno>
#include <cstddef>
#include <string>
#include <system_error>
#include <utility>
#include <variant>

#include <fmt/core.h>

namespace berth::topology {
namespace {

namespace fs = std::filesystem;
using model::ErrorKind;
using model::fail;
using model::Result;
using model::Topology;

// The exports of the largest hosts are some megabytes.
constexpr std::size_t kLargestXml = 64U << 20U;

Result<Topology> topology_of(const Tree& tree, const Beside& beside, std::vector<model::NumaNode> nodes,
                             const std::string& what) {
  auto cpus = cpus_of(tree, beside);
  auto distances = distances_of(tree, cpus);
  nodes = if_any_differs(std::move(nodes), cpus);
  auto topology = Topology::make(std::move(cpus), {}, std::move(distances), std::move(nodes));
  if (!topology) return fail(topology.error().context(what));
  return topology;
}

}  // namespace

Result<Topology> discover(const fs::path& sys_root, const fs::path& proc_root) {
  // read_online() names the missing file where `sys_root` is no sysfs; hwloc would not.
  if (auto online = read_online(sys_root); !online) return fail(online.error());
  auto allowed = read_root_cpuset(sys_root);
  if (!allowed) return fail(allowed.error());
  const bool here = sys_root == "/sys" && proc_root == "/proc";
  auto tree = here ? load_live() : load_below({sys_root, proc_root});
  if (!tree) return fail(tree.error());
  return topology_of(*tree,
                     {*allowed, read_numa_nodes(sys_root, unplaced_cpus(*tree)), read_core_kinds(sys_root)},
                     read_memory_of_nodes(sys_root), (sys_root / "devices/system/cpu").native());
}

Result<Topology> from_xml(const fs::path& file) {
  // Opening a FIFO would wait for a writer.
  std::error_code error;
  const auto status = fs::status(file, error);
  if (!error && fs::exists(status) && !fs::is_regular_file(status)) {
    return fail(ErrorKind::invalid_input, file.native() + ": is not a regular file");
  }
  auto xml = read_file(file, kLargestXml);
  if (!xml) return fail(xml.error());
  return from_xml_text(*xml, file.native());
}

Result<Topology> from_xml_text(const std::string& xml, const std::string& name) {
  auto tree = load_xml(xml, name);
  if (!tree) return fail(tree.error());
  return topology_of(*tree, {}, nodes_of(*tree), name);
}

Result<Topology> from_synthetic(const std::string& description) {
  auto tree = load_synthetic(description);
  if (!tree) return fail(tree.error());
  return topology_of(*tree, {}, nodes_of(*tree), fmt::format("hwloc synthetic topology \"{}\"", description));
}

Result<Topology> resolve(const model::TopologyReference& reference) {
  if (const auto* xml = std::get_if<model::HwlocXml>(&reference)) return from_xml(xml->path);
  return from_synthetic(std::get<model::HwlocSynthetic>(reference).description);
}

Result<model::CpuSet> read_online(const fs::path& sys_root) {
  const auto file = sys_root / "devices/system/cpu/online";
  auto online = read_cpulist(file);
  if (!online) return fail(online.error());
  if (!*online) return fail(model::Error::from_errno(ENOENT, file.native()));
  return **online;
}

std::optional<model::CpuSet> read_memory_nodes(const fs::path& sys_root) {
  const auto nodes = read_cpulist(sys_root / "devices/system/node/has_memory");
  return nodes ? *nodes : std::nullopt;
}

}  // namespace berth::topology
