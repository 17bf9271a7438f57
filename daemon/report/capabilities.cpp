// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/capabilities.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

namespace berth::daemon {

namespace {

using model::Capability;

Capability given_or(const char* name, const std::optional<std::string>& problem, const char* present,
                    const char* without) {
  if (!problem) return {name, true, present};
  return {name, false, fmt::format("{}; {}", *problem, without)};
}

Capability privileges(const cgroup::Hierarchy& hierarchy) {
  const auto file = hierarchy.root / "cgroup.procs";
  const bool writable = faccessat(AT_FDCWD, file.c_str(), W_OK, AT_EACCESS) == 0;
  return {"privileges", writable,
          writable
              ? fmt::format("user {} may write the control files of {}", geteuid(), hierarchy.root.string())
              : fmt::format("user {} may not write {}; berth only observes other users' cgroups", geteuid(),
                            file.string())};
}

std::string shared_caches(const model::Topology& topology) {
  if (topology.lone_sockets())
    return "each socket has one core and shares nothing; berth uses NUMA nodes instead";
  if (!topology.has_llc())
    return "the host does not say which vCPUs share a last-level cache; berth uses sockets instead";
  return fmt::format("{} domains share a last-level cache", topology.domains(model::DomainKind::llc).size());
}

}  // namespace

std::vector<Capability> all_capabilities(const cgroup::Hierarchy& hierarchy, const model::Topology& topology,
                                         const Equipment& equipment) {
  auto list = cgroup::capabilities(hierarchy);
  list.push_back(equipment.pressure_triggers);
  list.push_back(equipment.systemd.value_or(
      Capability{"systemd", false, "not used: without an undo journal berth changes nothing"}));
  list.push_back(given_or("bus", equipment.bus_problem, "org.berth.Node1 is served",
                          "berth works by its configuration alone and tries again every 10 s"));
  list.push_back(given_or("polkit", equipment.polkit_problem, "decides which users may change things",
                          "only root may change things over the bus"));
  const int threads = topology.max_threads_per_core();
  list.push_back({"smt", threads > 1,
                  threads > 1 ? fmt::format("{} hardware threads per core", threads)
                              : "one hardware thread per core; siblings never compete"});
  list.push_back({"llc", topology.has_llc(), shared_caches(topology)});
  list.push_back(equipment.gpus);
  list.push_back(given_or("undo-journal", equipment.journal_problem,
                          "originals are recorded before each first write",
                          "berth stays in observe mode, because it could not restore what it changed"));
  list.push_back(given_or("decision-log", equipment.decision_log_problem, "decisions are kept",
                          "only the newest decisions are kept, in memory"));
  if (equipment.metrics) list.push_back(*equipment.metrics);
  list.push_back(privileges(hierarchy));
  return list;
}

}  // namespace berth::daemon
