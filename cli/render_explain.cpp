// SPDX-License-Identifier: Apache-2.0
#include "cli/render.h"
#include "model/count_text.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

namespace berth::cli {

namespace {

using Line = std::string;
using Amount = std::function<std::string(const std::optional<double>&)>;

void say(std::ostream& out, const Line& line) { out << "  " << printable(line) << "\n"; }

std::string number(const Document& object, const char* name, int decimals = 2) {
  return format_number(number_of(object, name), decimals);
}

std::string cores(const std::optional<double>& amount) {
  return amount ? fmt::format("{:.2f} cores", *amount) : "no limit";
}

std::string bytes(const std::optional<double>& amount) {
  return amount ? format_bytes(static_cast<std::uint64_t>(std::max(0.0, *amount))) : "no limit";
}

// "1.20 cores and 1.5 GiB"; a part that is 0 is left out.
std::string amount_of(const Document& resources) {
  const double cpu = number_of(resources, "cpu").value_or(0);
  const double memory = number_of(resources, "memory").value_or(0);
  if (cpu > 0 && memory > 0) return cores(cpu) + " and " + bytes(memory);
  if (memory > 0) return bytes(memory);
  return cpu > 0 ? cores(cpu) : "nothing";
}

const char* cause_in_words(std::string_view cause) {
  if (cause == "extended") return "a straggler was given more";
  if (cause == "lent") return "it lends what it does not use";
  if (cause == "preempted") return "it was shrunk for a straggler";
  if (cause == "lifted") return "it could only throttle bursts on vCPUs of its own";
  return "berth changed it";
}

void render_limit(std::ostream& out, const char* name, const Document& limit, const Amount& amount) {
  Line line = fmt::format("{}: {}", name, amount(number_of(limit, "present")));
  const Document& held = member(limit, "held");
  if (held.is_object()) {
    line += fmt::format(", was {}: {} since {}", amount(number_of(limit, "original")),
                        cause_in_words(text_of(held, "cause")),
                        format_time(number_of(held, "since").value_or(0)));
  }
  say(out, line);
}

void render_identity(std::ostream& out, const Document& workload, const Style& style) {
  const bool pending = flag_of(workload, "pending");
  out << paint(style, Colour::bold, printable(text_of(workload, "id"))) << ": "
      << printable(text_of(workload, "class")) << ", service " << printable(text_of(workload, "service"))
      << (pending ? ", waits to be admitted" : "") << "\n";
  const auto vcpus = number_of(workload, "vcpus");
  if (vcpus) say(out, "asks for " + model::count_text(static_cast<std::uint64_t>(*vcpus), "vCPU"));
  if (!pending) {
    const auto memory = number_of(workload, "memory_bytes");
    const auto used = number_of(workload, "mean_cores");
    say(out, used ? fmt::format("uses {} on average{}", cores(used), memory ? " and " + bytes(memory) : "")
                  : "its use is not known yet");
  }
  for (const Document& gpu : list_of(workload, "gpus")) {
    if (gpu.is_string()) say(out, "has processes on GPU " + gpu.get<std::string>());
  }
  if (const auto why = text_of(workload, "left_alone"); !why.empty()) {
    say(out, "berth leaves it alone: " + why);
  }
}

void say_waiting(std::ostream& out, const Document& workload) {
  const Document& waiting = member(workload, "waiting");
  if (waiting.is_object()) {
    say(out, fmt::format("its threads wait {:.3g} ms for a vCPU (99th percentile), cause {}: {}",
                         1000 * number_of(waiting, "runq_latency_s").value_or(0), text_of(waiting, "cause"),
                         text_of(waiting, "reason")));
  }
}

std::string domains_text(const std::string& ids) {
  return (ids.find_first_of(",-") == std::string::npos ? "domain " : "domains ") + ids;
}

// Of a service without vCPUs of its own by its isolation.
void render_home(std::ostream& out, const Document& workload, const Style& style) {
  const Document& shared = member(workload, "shared");
  if (!shared.is_object()) return;
  heading(out, style, "Home");
  say(out, "isolation shared: it owns no vCPUs, and other services may run where it does");
  say(out, text_of(shared, "reason"));
  const auto planned = text_of(shared, "cpus");
  const auto present = text_of(workload, "cpus");
  const std::string pinned =
      planned.empty() ? "it needs no pin" : fmt::format("pinned to vCPUs {} in the plan", planned);
  say(out, fmt::format("{}, {}", pinned, present.empty() ? "not pinned now" : "to " + present + " now"));
  say(out, fmt::format("counts for {:.3g} cores there; score {}: what its neighbours there cost it",
                       number_of(shared, "cores").value_or(0), number(shared, "score", 4)));
  say_waiting(out, workload);
}

void render_pin(std::ostream& out, const Document& workload, const Style& style) {
  const Document& pin = member(workload, "pin");
  const auto unplaceable = text_of(workload, "unplaceable");
  const auto& warnings = list_of(workload, "warnings");
  if (!pin.is_object() && unplaceable.empty() && warnings.empty()) return;
  heading(out, style, "Pin");
  for (const Document& warning : warnings) say(out, "warning: " + text_of(warning, "reason"));
  if (!unplaceable.empty()) say(out, "gets no vCPUs of its own: " + unplaceable);
  if (!pin.is_object()) return;
  const auto present = text_of(workload, "cpus");
  const auto planned = text_of(pin, "cpus");
  say(out, fmt::format("vCPUs {} in the plan, {}", planned.empty() ? "none" : planned,
                       present.empty()      ? "not pinned now"
                       : present == planned ? "where it is pinned now"
                                            : "pinned to " + present + " now"));
  if (const auto since = number_of(workload, "pinned_at")) say(out, "pinned since " + format_time(*since));
  say(out, fmt::format("score {} = k1 {} x cpu_sc {} + k2 {} x cpu_ss {}", number(pin, "score", 4),
                       number(pin, "k1", 3), number(pin, "cpu_sc", 3), number(pin, "k2", 3),
                       number(pin, "cpu_ss", 3)));
  say(out, "cpu_sc: how busy the neighbours on its cores are; cpu_ss: how busy those in its cache are");
  say(out,
      fmt::format("k1 and k2 are of the {} model: {}", text_of(pin, "model"), text_of(pin, "model_reason")));
  say(out, fmt::format("its own pressure on its neighbours is {}: {}", number(pin, "pressure"),
                       text_of(pin, "pressure_source")));
  if (const auto quality = text_of(pin, "search_reason"); !quality.empty())
    say(out, "all instances together: " + quality);
  say_waiting(out, workload);
}

const char* priority_in_words(std::string_view priority) {
  if (priority == "idle") return "runs only while no service wants the vCPU";
  if (priority == "weight") return "has the least CPU weight";
  return "has its usual CPU priority";
}

void render_pool(std::ostream& out, const Document& workload, const Style& style) {
  const Document& pool = member(workload, "pool");
  if (!pool.is_object()) return;
  heading(out, style, "vCPUs");
  const auto cpus = text_of(pool, "cpus");
  const std::string shared = cpus.empty() ? "no vCPUs" : "vCPUs " + cpus;
  if (const auto why = text_of(workload, "unconfined"); !why.empty()) {
    const std::string place =
        cpus.empty() ? "" : fmt::format(" to {}, which all best-effort work shares", shared);
    say(out, fmt::format("cannot be kept{}: {}", place, why));
  } else {
    say(out, fmt::format("shares {} with all best-effort work; they are {} busy", shared,
                         format_share(number_of(pool, "utilisation"))));
  }
  if (const auto reserved = text_of(pool, "reserved"); !reserved.empty())
    say(out, fmt::format("not vCPUs {}, which are reserved", reserved));
  const Document& domains = member(pool, "domains");
  if (domains.is_object()) {
    for (const auto& [id, left] : domains.items()) {
      const auto here = text_of(left, "cpus");
      say(out, fmt::format("of these in {}, beside services: {}", domains_text(id),
                           here.empty() ? "none" : "vCPUs " + here));
    }
  }
  const Document& group = member(workload, "group");
  if (!group.is_object()) return;
  const auto held = text_of(group, "held");
  const auto priority = held.empty() ? text_of(group, "owner") : held;
  say(out,
      fmt::format("{}; it is {}{}", priority_in_words(priority),
                  text_of(group, "id") == text_of(workload, "id") ? "a group of its own" : "in the group ",
                  text_of(group, "id") == text_of(workload, "id") ? "" : text_of(group, "id")));
}

// v = (p' - p) / (t' - t) with its samples.
Line speed_in_words(const char* name, const Document::array_t& samples, std::size_t first,
                    const std::optional<double>& speed) {
  if (!speed || samples.size() < first + 2) return fmt::format("{}: not known", name);
  const auto of = [&samples](std::size_t index, const char* what) {
    return number_of(samples[index], what).value_or(0);
  };
  return fmt::format("{} = ({:.4f} - {:.4f}) / {:.2f} s = {:.6f} per second", name, of(first + 1, "fraction"),
                     of(first, "fraction"), of(first + 1, "time") - of(first, "time"), *speed);
}

Line finish_in_words(const Document& task, const Document& last) {
  const auto finish = number_of(task, "finish");
  const auto deadline = number_of(task, "deadline");
  Line line = finish ? fmt::format("T = (1 - {:.4f}) / v2 after the last report: {}",
                                   number_of(last, "fraction").value_or(0), format_time(*finish))
                     : Line("T: never, at this speed");
  if (!deadline) return line + "; it has no deadline";
  line += "; deadline " + format_time(*deadline);
  if (!finish) return line;
  const double late = *finish - *deadline;
  return line +
         fmt::format(", {} {}", format_duration(late < 0 ? -late : late), late < 0 ? "before it" : "late");
}

void render_task(std::ostream& out, const Document& workload, const Style& style) {
  const Document& task = member(workload, "task");
  if (!task.is_object()) return;
  heading(out, style, "Progress");
  const auto& samples = list_of(task, "samples");
  for (const Document& sample : samples) {
    say(out, fmt::format("{}  {}", format_time(number_of(sample, "time").value_or(0)),
                         number(sample, "fraction", 4)));
  }
  if (samples.size() >= 4) {
    const std::size_t first = samples.size() - 4;
    say(out, speed_in_words("v1", samples, first, number_of(task, "v1")));
    say(out, speed_in_words("v2", samples, first + 2, number_of(task, "v2")));
    // Without v2 it was not judged; the reason below says why.
    if (number_of(task, "v2")) say(out, finish_in_words(task, samples.back()));
  }
  const bool straggler = flag_of(task, "straggler");
  out << "  "
      << paint(style, straggler ? Colour::yellow : Colour::none, straggler ? "a straggler" : "no straggler")
      << ": " << printable(text_of(task, "reason")) << "\n";
  if (const auto rho = number_of(task, "growth")) {
    const Document extension{{"cpu", number_of(task, "extension").value_or(0)},
                             {"memory", number_of(task, "extension_memory_bytes").value_or(0)}};
    const auto allocation = number_of(task, "allocation");
    say(out, fmt::format(
                 "rho {:.3f}: in addition to {} it needs {}", *rho,
                 allocation ? "its allocation of " + cores(allocation) : "a CPU allocation that is not known",
                 amount_of(extension)));
    const auto vcpus = number_of(task, "vcpus");
    say(out, fmt::format("granted {}{}", amount_of(member(task, "granted")),
                         vcpus ? fmt::format(", on {:.0f} vCPUs", *vcpus) : ""));
    say(out, fmt::format("idle on the node: {}", amount_of(member(workload, "idle"))));
  }
  if (const Document& lacks = member(workload, "lacks"); lacks.is_object()) {
    say(out, "this node cannot give it " + amount_of(lacks));
  }
}

void render_redundant(std::ostream& out, const Document& workload, const Style& style) {
  const Document& redundant = member(workload, "redundant");
  const auto keeping = text_of(workload, "keeping");
  if (!redundant.is_object() && keeping.empty()) return;
  heading(out, style, "Resources that it holds and does not use");
  if (!keeping.empty()) say(out, "keeps them: " + keeping);
  if (const Document& cpu = member(redundant, "cpu"); cpu.is_object()) {
    say(out, fmt::format("CPU: uses {} of its allocation at most, {} could be taken",
                         format_share(number_of(cpu, "utilisation")), cores(number_of(cpu, "reclaimable"))));
  }
  if (const Document& memory = member(redundant, "memory"); memory.is_object()) {
    say(out,
        fmt::format("memory: uses {} of its allocation at most, {} could be taken",
                    format_share(number_of(memory, "utilisation")), bytes(number_of(memory, "reclaimable"))));
  }
}

void render_moves(std::ostream& out, const Document& workload, const Style& style) {
  const auto& moves = list_of(workload, "moves");
  if (moves.empty()) return;
  heading(out, style, "Given and taken this tick");
  for (const Document& move : moves) {
    say(out, fmt::format("{} {}: {} ({})", text_of(move, "kind"), text_of(move, "workload"),
                         amount_of(member(move, "amount")), text_of(move, "reason")));
  }
}

void render_payers(std::ostream& out, const Document& workload, const Style& style) {
  const auto& payers = list_of(workload, "payers");
  if (payers.empty()) return;
  heading(out, style, "Workloads that pay for stragglers now");
  for (const Document& payer : payers) {
    const Document& held = member(payer, "held");
    say(out, fmt::format("{} has {} less: {} since {}", text_of(payer, "workload"),
                         amount_of(member(payer, "amount")), cause_in_words(text_of(held, "cause")),
                         format_time(number_of(held, "since").value_or(0))));
  }
}

// Costs may be below 0.
std::string seconds(const std::optional<double>& amount) {
  return amount ? fmt::format("{:.4g} s", *amount) : "not known";
}

void render_application(std::ostream& out, const Document& application, const Style& style) {
  if (!application.is_object()) return;
  const Document& figures = member(application, "figures");
  heading(out, style, "Spark application " + printable(text_of(application, "id")));
  say(out, fmt::format("{} of {} stages done, {} expected to follow", number(figures, "stages_done", 1),
                       number(figures, "stages", 0), number(figures, "stages_to_come", 0)));
  say(out, fmt::format("cost {} = recalculation {} - delta {} x remaining {}",
                       seconds(number_of(figures, "cost")), seconds(number_of(figures, "recalculation")),
                       number(application, "delta", 4), seconds(number_of(figures, "remaining"))));
  say(out,
      fmt::format("recalculation: {} to compute again, {} to move again",
                  seconds(number_of(figures, "computation")), bytes(number_of(figures, "transmission"))));
  const auto frees = number_of(figures, "frees_bytes").value_or(0);
  const auto each = number_of(figures, "cost_per_byte");
  if (frees > 0 && each) {
    say(out,
        fmt::format("its workloads here use {}: {} for each GiB", bytes(frees), seconds(*each * (1U << 30))));
  }
  const auto& workloads = list_of(application, "workloads");
  if (workloads.empty()) say(out, "none of its workloads on this node can be evicted");
  for (std::size_t i = 0; i < workloads.size(); ++i) {
    if (workloads[i].is_string()) say(out, fmt::format("{}. {}", i + 1, workloads[i].get<std::string>()));
  }
}

void render_eviction(std::ostream& out, const Document& workload, const Style& style) {
  const Document& eviction = member(workload, "eviction");
  if (!eviction.is_object()) return;
  heading(out, style, "Eviction");
  if (const auto why = text_of(eviction, "spared"); !why.empty()) {
    say(out, "is never evicted: " + why);
    return;
  }
  const Document& candidate = member(eviction, "candidate");
  say(out, fmt::format("costs {}: {}", seconds(number_of(candidate, "cost")), text_of(candidate, "reason")));
  say(out, fmt::format("frees {}", bytes(number_of(candidate, "frees_bytes"))));
  out << "  "
      << paint(style, flag_of(eviction, "victim") ? Colour::yellow : Colour::none,
               fmt::format("number {} of {} in the order of eviction{}", number(eviction, "position", 0),
                           number(eviction, "candidates", 0),
                           flag_of(eviction, "victim") ? ", would be evicted now" : ""))
      << ": " << printable(text_of(eviction, "memory")) << "\n";
  render_application(out, member(workload, "application"), style);
}

void render_action(std::ostream& out, const Document& action, const Style& style) {
  out << "  "
      << paint(style, Colour::green,
               printable(fmt::format("{} {}", text_of(action, "kind"), text_of(action, "decision"))))
      << printable(fmt::format(" {}: {}", text_of(action, "policy"), text_of(action, "reason"))) << "\n";
}

void render_workload(std::ostream& out, const Document& workload, const Style& style) {
  render_identity(out, workload, style);
  const Document& limits = member(workload, "limits");
  if (limits.is_object() && !flag_of(workload, "pending")) {
    render_limit(out, "CPU quota", member(limits, "cpu_quota"), cores);
    render_limit(out, "memory.high", member(limits, "memory_high_bytes"), bytes);
    if (const auto why = text_of(workload, "lifted"); !why.empty()) say(out, "CPU quota lifted: " + why);
    if (const auto why = text_of(workload, "bursting"); !why.empty()) say(out, "CPU burst: " + why);
  }
  render_home(out, workload, style);
  render_pin(out, workload, style);
  render_pool(out, workload, style);
  render_task(out, workload, style);
  render_redundant(out, workload, style);
  render_moves(out, workload, style);
  render_payers(out, workload, style);
  render_eviction(out, workload, style);
  heading(out, style, "Actions that berth would take now");
  const auto& actions = list_of(workload, "actions");
  if (actions.empty()) say(out, "none: it is as it should be");
  for (const Document& action : actions) render_action(out, action, style);
}

void render_decision(std::ostream& out, const Document& decision, const Style& style) {
  out << "Decision " << paint(style, Colour::bold, printable(text_of(decision, "id"))) << "\n";
  const auto& entries = list_of(decision, "entries");
  if (const Document& planned = member(decision, "planned"); planned.is_object()) {
    // An older berthd does not say it, and knows only decisions of the present plan.
    const bool present = !decision.contains("present") || flag_of(decision, "present");
    const auto at = number_of(decision, "planned_at");
    const bool tried = !entries.empty() && text_of(entries.front(), "mode") == "enforce";
    say(out, !present ? fmt::format("was in the plan of {}, and is not in the present one:",
                                    at ? format_time(*at) : "-")
             : tried  ? "is in the plan of the last tick, which was carried out as the log says:"
                      : "is in the present plan:");
    render_action(out, planned, style);
    if (!present && entries.empty()) {
      say(out,
          "The log does not have it. Each tick decides anew, under new ids; `berthctl log` has those that "
          "were carried out.");
    }
  }
  if (!entries.empty())
    say(out, fmt::format("its log entries, in {} mode:", text_of(entries.front(), "mode")));
  render_log(out, entries, style, "  ");
}

}  // namespace

void render_explanation(std::ostream& out, const Document& explanation, const Style& style) {
  const Document& decision = member(explanation, "decision");
  const Document& workload = member(explanation, "workload");
  if (const auto ended = text_of(explanation, "ended"); !ended.empty()) {
    out << paint(style, Colour::bold, printable(ended)) << ": no workload of this name runs now\n";
  }
  if (decision.is_object()) render_decision(out, decision, style);
  render_application(out, member(explanation, "application"), style);
  if (const Document& other = member(explanation, "other"); other.is_object())
    out << paint(style, Colour::bold, printable(text_of(other, "workload"))) << ": "
        << printable(text_of(other, "reason")) << "\n";
  if (workload.is_object()) {
    if (decision.is_object()) heading(out, style, "The workload now");
    render_workload(out, workload, style);
  }
  if (!member(explanation, "entries").is_array()) return;
  const auto& entries = list_of(explanation, "entries");
  heading(out, style, "Decisions about it, newest first");
  if (entries.empty()) say(out, "none that match");
  render_log(out, entries, style, "  ");
}

}  // namespace berth::cli
