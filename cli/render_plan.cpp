// SPDX-License-Identifier: Apache-2.0
#include "cli/render_plan.h"

#include "cli/render_topology.h"
#include "cli/table.h"
#include "model/count_text.h"
#include "model/json.h"
#include "model/path.h"

#include <algorithm>
#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/core.h>

namespace berth::cli {

namespace {

std::string describe(const model::AttributeValue& value) {
  const auto* limit = std::get_if<model::MemoryHigh>(&value);
  return limit != nullptr && limit->bytes ? format_bytes(*limit->bytes) : model::words(value);
}

// The effect of the action on its object, in a few words.
std::string describe(const model::Action& action) {
  struct Words {
    std::string operator()(const model::Set& set) const {
      return fmt::format("{} -> {}", set.workload, describe(set.value));
    }
    std::string operator()(const model::GiveBack& back) const {
      return fmt::format("{} -> {}", back.workload, row_of(back.attribute).before);
    }
    std::string operator()(const model::Evict& eviction) const {
      return fmt::format("{}, which frees {}", eviction.workload, format_bytes(eviction.frees_bytes));
    }
    std::string operator()(const model::Advertise& said) const {
      const bool cpu = said.resource == model::Resource::cpu;
      return fmt::format("{} {} (x{:.2f})", cpu ? "CPU" : "memory",
                         cpu ? fmt::format("{:.1f} cores", said.capacity)
                             : format_bytes(static_cast<std::uint64_t>(std::max(0.0, said.capacity))),
                         said.factor);
    }
  };
  return std::visit(Words{}, action.what);
}

// The last part of a cgroup path, less the unit's suffix: "web@1" of
// "system.slice/system-web.slice/web@1.service".
std::string short_name(const std::string& id) {
  std::string name(model::last_component(id));
  for (const std::string_view suffix : {".service", ".scope"}) {
    if (name.size() > suffix.size() && name.ends_with(suffix)) name.resize(name.size() - suffix.size());
  }
  return name;
}

void draw_owners(std::ostream& out, const model::Topology& topology,
                 const model::InterferenceFindings& findings, model::DomainKind homes, const Style& style) {
  RenderOptions options;
  options.home_kind = homes;
  for (const auto& [id, instance] : findings.shared) options.homes[short_name(id)] |= instance.home;
  options.colour = style.colour;
  if (style.width > 0) options.width = static_cast<int>(style.width);
  for (const int cpu : findings.best_effort.cpus) options.labels[cpu] = "BE";
  for (const auto& [id, instance] : findings.instances) {
    for (const int cpu : instance.cpus) options.labels[cpu] = short_name(id);
  }
  out << "\n" << render_topology(topology, options);
}

void list_findings(std::ostream& out, const Style& style, const char* title,
                   const std::vector<model::WorkloadFinding>& findings) {
  if (findings.empty()) return;
  heading(out, style, title);
  for (const model::WorkloadFinding& finding : findings) {
    out << "  " << paint(style, Colour::yellow, printable(finding.workload)) << ": "
        << printable(finding.reason) << "\n";
  }
}

void render_score(std::ostream& out, const model::InterferenceFindings& findings, const Style& style) {
  heading(out, style, "Score of the node");
  out << "  score " << format_number(findings.score_node, 4);
  if (const auto& unpinned = findings.score_unpinned) {
    out << " pinned, " << format_number(unpinned, 4) << " if left unpinned";
    if (*unpinned > 0) out << fmt::format(" (x{:.2f})", findings.score_node / *unpinned);
  }
  out << "; 0: no workload disturbs another\n  weighting " << printable(findings.weighting) << ", search "
      << printable(findings.search);
  if (findings.gap && findings.lower_bound) {
    out << ", lower bound " << format_number(findings.lower_bound, 4) << ", gap "
        << format_share(findings.gap);
  }
  out << "\n";
  if (!findings.search_reason.empty()) out << "  " << printable(findings.search_reason) << "\n";
  for (const std::string& id : findings.moved) {
    out << "  " << paint(style, Colour::yellow, printable(id)) << " moves to a better place\n";
  }
  if (findings.score_unpinned && findings.score_node > *findings.score_unpinned) {
    out << paint(style, Colour::dim,
                 "  Pinned is worse here: the work that is kept off their vCPUs crowds their neighbours. The "
                 "score "
                 "does not count\n  waits for a vCPU that other work uses, and pinning avoids these.")
        << "\n";
  }
}

// As they are before the plan.
void render_groups(std::ostream& out, const model::Snapshot& snapshot, const Style& style) {
  std::vector<model::WorkloadFinding> groups;
  for (const model::BestEffortGroup& group : snapshot.groups) {
    const auto priority = model::priority_of(group);
    std::string words = priority ? model::words(*priority) : "the usual priority";
    if (!group.held && priority) words += ", by its owner";
    if (group.fixed) words += "; berth cannot change it";
    groups.push_back({.workload = group.id, .reason = std::move(words)});
  }
  list_findings(out, style, "Groups of best-effort work", groups);
}

void render_others(std::ostream& out, const model::OtherWork& others, const Style& style) {
  if (others.cpus.empty()) return;
  heading(out, style, "Other work (cgroups that no rule names)");
  out << "  vCPUs " << others.cpus.to_string() << ": ";
  if (others.confined.empty()) out << "none";
  const char* comma = "";
  for (const std::string& id : others.confined) out << std::exchange(comma, ", ") << printable(id);
  out << "\n";
  for (const model::WorkloadFinding& left : others.unconfined) {
    out << "  not confined: " << paint(style, Colour::yellow, printable(left.workload)) << ": "
        << printable(left.reason) << "\n";
  }
}

void render_shared(std::ostream& out, const model::InterferenceFindings& findings, const Style& style) {
  if (findings.shared.empty()) return;
  heading(out, style, "Latency-sensitive instances that share vCPUs (isolation \"shared\")");
  Table table({Column::name("INSTANCE"), Column::name("HOME"), Column::name("PINNED"),
               Column::figure("CORES"), Column::figure("SCORE"), Column::text("WHY")},
              "  ");
  for (const auto& [id, instance] : findings.shared) {
    table.add({id, instance.home.empty() ? "-" : instance.home.to_string(),
               instance.cpus.empty() ? "-" : instance.cpus.to_string(), format_number(instance.cores, 2),
               format_number(instance.score, 4), instance.reason});
  }
  table.print(out, style);
}

void render_interference(std::ostream& out, const model::InterferenceFindings& findings,
                         const model::Snapshot& snapshot, const Style& style) {
  render_shared(out, findings, style);
  // Where all services share vCPUs, none owns any, and the score of owned vCPUs says nothing.
  const bool all_share = findings.instances.empty() && !findings.shared.empty();
  if (!all_share) heading(out, style, "Latency-sensitive instances with vCPUs of their own");
  if (findings.instances.empty()) {
    if (!all_share) out << "  none\n";
  } else {
    Table table({Column::name("INSTANCE"), Column::name("VCPUS"), Column::figure("PRESSURE"),
                 Column::figure("ON ITS CORES"), Column::figure("IN ITS CACHE"), Column::figure("SCORE"),
                 Column::text("MODEL")},
                "  ");
    for (const auto& [id, instance] : findings.instances) {
      const bool pending = std::any_of(snapshot.pending.begin(), snapshot.pending.end(),
                                       [&id = id](const auto& waiting) { return waiting.id == id; });
      table.add({id + (pending ? " (not running yet)" : ""),
                 instance.cpus.empty() ? "-" : instance.cpus.to_string(), format_number(instance.pressure, 2),
                 format_number(instance.cpu_sc, 3), format_number(instance.cpu_ss, 3),
                 format_number(instance.score, 4), model::to_string(instance.model)});
    }
    table.print(out, style);
    out << paint(style, Colour::dim,
                 "  Pressure is how busy a service keeps its vCPUs; the next two columns, how busy the "
                 "neighbours are.")
        << "\n";
  }
  list_findings(out, style, "Cannot be placed", findings.unplaceable);
  std::vector<model::WorkloadFinding> warnings;
  for (const model::ServiceWarning& it : findings.warnings) warnings.push_back({it.workload, it.reason});
  list_findings(out, style, "Warnings", warnings);
  if (!findings.absent_reserved.empty()) {
    heading(out, style, "Reserved vCPUs that the host does not have");
    out << "  " << findings.absent_reserved.to_string() << " (interference.reserved_cpus)\n";
  }
  if (!snapshot.owned_cpus.empty()) {
    heading(out, style, "vCPUs of other programs");
    for (const model::OwnedCpus& owned : snapshot.owned_cpus)
      out << "  " << printable(model::to_text(owned)) << "\n";
  }

  heading(out, style, "Best-effort workloads (BE) share");
  out << "  "
      << (findings.best_effort.cpus.empty() ? "nothing" : "vCPUs " + findings.best_effort.cpus.to_string())
      << ", " << format_share(findings.best_effort.utilisation) << " busy\n";
  for (const auto& [domain, left] : findings.best_effort.domains) {
    out << "  beside services in domain " << domain << ": " << model::count_text(left.cores, "core")
        << (left.cpus.empty() ? "" : ", vCPUs " + left.cpus.to_string()) << "\n";
  }
  if (const model::CpuSet& reserved = findings.best_effort.reserved; !reserved.empty())
    out << "  not vCPUs " << reserved.to_string() << ", which are reserved\n";
  if (!findings.shared_reserved.empty()) out << "  reserved ones too, as berth may use no others\n";
  list_findings(out, style, "Cannot be confined", findings.unconfined);
  render_others(out, findings.others, style);
  std::vector<model::WorkloadFinding> waiting;
  for (const auto& [id, it] : findings.waiting) {
    waiting.push_back({.workload = id,
                       .reason = fmt::format("{:.3g} ms, cause {}: {}", 1000 * it.runq_latency_s,
                                             model::to_string(it.cause), it.reason)});
  }
  list_findings(out, style, "Wait for vCPUs", waiting);
  render_groups(out, snapshot, style);

  if (!all_share) render_score(out, findings, style);
}

}  // namespace

void render_plan(std::ostream& out, const model::Plan& plan, const model::Snapshot& snapshot,
                 const Style& style, model::DomainKind homes) {
  out << paint(style, Colour::bold,
               printable(fmt::format("Plan for {} as of {}", plan.host.empty() ? "this host" : plan.host,
                                     format_time(plan.time))))
      << ": " << model::count_text(plan.actions.size(), "action") << ", "
      << model::count_text(snapshot.workloads.size(), "workload") << "\n";
  if (plan.findings.interference) {
    draw_owners(out, snapshot.topology, *plan.findings.interference, homes, style);
    render_interference(out, *plan.findings.interference, snapshot, style);
  }
  if (plan.findings.straggler) render_stragglers(out, *plan.findings.straggler, plan.time, style);
  if (plan.findings.quota) {
    list_findings(out, style, "CPU quotas that are lifted", plan.findings.quota->lifted);
    list_findings(out, style, "CPU quotas with a burst", plan.findings.quota->bursting);
  }
  if (plan.findings.eviction) render_spark(out, *plan.findings.eviction, style);
  if (plan.findings.oversell) render_oversell(out, *plan.findings.oversell, style);
  if (plan.findings.placement) render_placement(out, *plan.findings.placement, style);

  heading(out, style, "Actions");
  const bool warns = plan.findings.interference && !plan.findings.interference->warnings.empty();
  if (plan.actions.empty())
    out << (warns ? "  none; see the warnings above\n" : "  none: everything is where it should be\n");
  for (const model::Action& action : plan.actions) {
    out << "  " << paint(style, Colour::green, action.kind()) << " " << printable(describe(action)) << "\n"
        << "      "
        << paint(style, Colour::dim,
                 printable(fmt::format("{} {}: {}", action.policy, action.decision, action.reason)))
        << "\n";
  }
}

}  // namespace berth::cli
