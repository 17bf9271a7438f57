// SPDX-License-Identifier: Apache-2.0
#include "cli/render.h"
#include "model/count_text.h"

#include <map>
#include <ostream>
#include <string>

#include <fmt/core.h>

namespace berth::cli {

namespace {

std::size_t count_of(const Document& object, const char* name) {
  const double number = number_of(object, name).value_or(0);
  return number > 0 && number < 1e9 ? static_cast<std::size_t>(number) : 0;
}

// `unused`: the number of rules that apply to no cgroup.
std::string seen(const Document& workloads, std::size_t cpus, std::size_t unused) {
  const std::size_t services = count_of(workloads, "latency-sensitive");
  const std::size_t batch = count_of(workloads, "best-effort");
  const std::string host = cpus == 0 ? "this host" : model::count_text(cpus, "vCPU");
  if (services + batch == 0 && unused > 0)
    return fmt::format("{}, and no workload: {} of the configuration {} to nothing here", host,
                       model::count_text(unused, "rule"), unused == 1 ? "applies" : "apply");
  if (services + batch == 0)
    return host + ", and no workload: no rule, mark or QoS class says which services matter";
  return fmt::format("{}, {} to keep fast, {} to fit in between", host,
                     model::count_text(services, "service"), model::count_text(batch, "batch workload"));
}

// "2 pins, 1 CPU quota": the kinds of the actions of a plan.
std::string changes(const Document::array_t& actions) {
  const std::map<std::string, const char*> kNames{{"pin", "pin"},
                                                  {"unpin", "pin to take back"},
                                                  {"set-cpu-quota", "CPU quota"},
                                                  {"set-memory-high", "memory limit"},
                                                  {"set-memory-nodes", "memory bond"},
                                                  {"set-cpu-priority", "CPU priority"},
                                                  {"evict", "eviction"}};
  std::map<std::string, std::size_t> counts;
  for (const Document& action : actions) {
    if (kNames.contains(text_of(action, "kind"))) ++counts[text_of(action, "kind")];
  }
  std::string text;
  for (const auto& [kind, name] : kNames) {
    if (counts[kind] > 0) text += (text.empty() ? "" : ", ") + model::count_text(counts[kind], name);
  }
  return text;
}

}  // namespace

void render_outlook(std::ostream& out, const Document& status, const Document& plan, std::size_t cpus,
                    const Style& style) {
  const Document& workloads = member(status, "workloads");
  const bool bare = count_of(workloads, "latency-sensitive") + count_of(workloads, "best-effort") == 0;
  const std::size_t unused = list_of(member(status, "config"), "unused_rules").size();
  const bool enforcing = text_of(status, "mode") == "enforce";
  const std::string problem = text_of(status, "enforce_problem");
  std::string would = "it would change nothing: there is nothing to decide";
  std::string next = "berthctl suggest    a first /etc/berth/berth.toml, from what runs here";
  if (bare && unused > 0)
    next = "systemd-cgls    the cgroups of this host; a rule has to match the path of one";
  if (!bare && enforcing) {
    would = fmt::format("it holds {}, and puts {} back when it stops",
                        model::count_text(count_of(status, "undo_records"), "changed attribute"),
                        count_of(status, "undo_records") == 1 ? "it" : "them");
    next = "berthctl log    what it did, and why";
  } else if (!bare) {
    const std::string planned = changes(list_of(plan, "actions"));
    const std::size_t warnings = list_of(member(member(plan, "findings"), "interference"), "warnings").size();
    const std::string nothing =
        warnings == 0 ? "it would change nothing: everything is as it should be"
                      : "it would change nothing, but it has " + model::count_text(warnings, "warning");
    would = planned.empty() ? nothing : "it would make " + planned;
    next = !problem.empty()                  ? "it cannot enforce on this host: " + problem
           : planned.empty() && warnings > 0 ? "berthctl plan    the warnings, and what would help"
           : planned.empty()                 ? "berthctl list    the workloads, and their use"
                             : "berthctl plan    each change with its reason; then berthctl mode enforce";
  }
  const auto line = [&](const char* name, const std::string& text) {
    out << "  " << paint(style, Colour::bold, fmt::format("{:<14}", name)) << printable(text) << "\n";
  };
  line("sees", seen(workloads, cpus, unused));
  line(enforcing ? "does" : "would do", would);
  line("next", next);
  out << "\n";
}

}  // namespace berth::cli
