// SPDX-License-Identifier: Apache-2.0
#include "cli/render.h"
#include "cli/render_topology.h"
#include "cli/table.h"
#include "model/count_text.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <ostream>
#include <string>

#include <fmt/core.h>

namespace berth::cli {

namespace {

std::string whole(const Document& object, const char* name) {
  return format_number(number_of(object, name), 0);
}

// "1 tick", "- ticks".
std::string counted(const Document& object, const char* name, const char* unit) {
  const auto number = number_of(object, name);
  return fmt::format("{} {}{}", whole(object, name), unit, number == 1.0 ? "" : "s");
}

std::string mode_line(const Document& status) {
  std::string mode = text_of(status, "mode");
  const bool possible = text_of(status, "enforce_problem").empty();
  if (mode == "observe") {
    return std::string("observe: decides and publishes, changes nothing") +
           (possible ? " (berthctl mode enforce)" : "");
  }
  if (mode == "enforce") return "enforce: carries out what it decides";
  return mode;
}

// The configured mode, where it differs from the present one; "" where they agree.
std::string configured_line(const Document& status) {
  const std::string configured = text_of(member(status, "config"), "mode");
  if (configured.empty() || configured == text_of(status, "mode")) return "";
  const std::string problem = text_of(status, "enforce_problem");
  if (configured == "enforce" && !problem.empty()) return "enforce, not possible: " + problem;
  return configured + ", but switched since by berthctl, or by an option of berthd";
}

// "0.0012 cores of at most 0.005: 0.0004 at context switches, 0.81 ms each reading"
std::string sampling_line(const Document& sampling, const Document& tick) {
  auto line = fmt::format("{} cores of at most {}", format_number(number_of(sampling, "cpu"), 4),
                          format_number(number_of(sampling, "max_cpu"), 4));
  if (const auto bpf = number_of(sampling, "bpf_cpu"))
    line += fmt::format(": {} at context switches", format_number(bpf, 4));
  line += fmt::format(", {} ms each reading", format_number(number_of(sampling, "read_cpu_ms"), 2));
  const auto configured = number_of(sampling, "configured_interval_s");
  const auto interval = number_of(tick, "interval_s");
  if (configured && interval && *interval > *configured)
    line += fmt::format(", so ticks come every {} s", format_number(interval, 1));
  return line;
}

// "side b, led by process 123 of user 0, until 2026-11-21 10:11:10 at the latest".
std::string trial_line(const Document& trial) {
  const std::string side = text_of(trial, "side");
  if (flag_of(trial, "kept"))
    return fmt::format("the settings of side {} are kept until berthctl reload, or a restart", side);
  const auto until = number_of(trial, "until");
  return fmt::format("{}led by process {} of user {}, until {} without it",
                     side.empty() ? "" : "side " + side + ", ", whole(trial, "pid"), whole(trial, "user"),
                     until ? format_time(*until) : "-");
}

// "0.0004 cores at context switches, 0.0001 reading; ends in 9 min without another question"
std::string blame_line(const Document& blame) {
  const auto line =
      fmt::format("{} cores at context switches, {} reading; ", format_number(number_of(blame, "bpf_cpu"), 4),
                  format_number(number_of(blame, "read_cpu"), 4));
  const auto ends_in_s = number_of(blame, "ends_in_s");
  return line + (ends_in_s ? fmt::format("ends in {} without another question", format_duration(*ends_in_s))
                           : "always (sampling.blame)");
}

using Line = std::function<void(const char*, const std::string&, Colour)>;

// A line each of the first items, and one that counts the others and says what shows them.
void render_some(const Line& line, const Document::array_t& items, const char* name, const char* all,
                 const std::function<std::string(const Document&)>& told) {
  constexpr std::size_t kMost = 5;
  for (std::size_t i = 0; i < std::min(items.size(), kMost); ++i) line(name, told(items[i]), Colour::yellow);
  if (items.size() > kMost)
    line("", fmt::format("and {} more ({})", items.size() - kMost, all), Colour::yellow);
}

std::string workload_and_reason(const Document& item) {
  return text_of(item, "workload") + ": " + text_of(item, "reason");
}

// Services that can come to harm; then latency-sensitive workloads without vCPUs of their own, as far as no
// warning names them.
void render_unplaceable(const Line& line, const Document& status) {
  const auto& warnings = list_of(status, "warnings");
  render_some(line, warnings, "warning", "berthctl plan", workload_and_reason);
  Document::array_t others;
  for (const Document& item : list_of(status, "unplaceable")) {
    const std::string id = text_of(item, "workload");
    const auto warned = [&](const Document& it) {
      const auto cause = text_of(it, "cause");
      return text_of(it, "workload") == id && cause != "quota" && cause != "priority";
    };
    if (std::none_of(warnings.begin(), warnings.end(), warned)) others.push_back(item);
  }
  render_some(line, others, "no vCPUs", "berthctl plan", workload_and_reason);
}

// vCPUs that other programs gave to their own work.
void render_owned_cpus(const Line& line, const Document& status) {
  render_some(line, list_of(status, "owned_cpus"), "owned", "berthctl status --json",
              [](const Document& item) { return text_of(item, "reason"); });
}

// Work that no rule names, while instances own vCPUs.
void render_others(const Line& line, const Document& others) {
  const std::string cpus = text_of(others, "cpus");
  if (cpus.empty()) return;
  line("other work",
       fmt::format("{} on vCPUs {}, {} not confined",
                   model::count_text(list_of(others, "confined").size(), "cgroup"), cpus,
                   list_of(others, "unconfined").size()),
       Colour::none);
}

void render_unused_rules(const Line& line, const Document& config) {
  render_some(line, list_of(config, "unused_rules"), "unused rule", "berthctl status --json",
              [](const Document& item) {
                return fmt::format("\"{}\" ({}): {}", text_of(item, "match"), text_of(item, "rule"),
                                   text_of(item, "reason"));
              });
}

void render_figures(std::ostream& out, const Document& sampling, const Style& style) {
  const auto& figures = list_of(sampling, "figures");
  if (figures.empty()) return;
  heading(out, style, "Figures by eBPF");
  for (const Document& figure : figures) {
    const bool available = flag_of(figure, "available");
    out << "  " << paint(style, available ? Colour::green : Colour::red, available ? "yes" : "no ") << "  "
        << fmt::format("{:<20} ", printable(text_of(figure, "figure")))
        << (available ? "by " + printable(text_of(figure, "way")) : "");
    const std::string detail = printable(text_of(figure, "detail"));
    out << (available && !detail.empty() ? "; " : "") << detail << "\n";
  }
}

std::string cores_text(double cores) { return fmt::format("{} cores", format_number(cores, 1)); }
std::string bytes_text(double bytes) {
  return format_bytes(static_cast<std::uint64_t>(std::min(bytes, 1e18)));
}

// "schedule, 52 % in use, x1.20 advertised, 14.2 cores for best-effort work". `amount` writes an amount.
std::string advertised_line(const Document& resource, std::string (*amount)(double)) {
  std::string line = fmt::format("{}, {} in use, x{} advertised", text_of(resource, "state"),
                                 format_share(number_of(resource, "utilisation")),
                                 format_number(number_of(resource, "factor"), 2));
  // An earlier berthd does not say it.
  if (const auto best_effort = number_of(resource, "best_effort"); best_effort && *best_effort >= 0)
    line += fmt::format(", {} for best-effort work", amount(*best_effort));
  return line;
}

// "kept off vCPUs 2-3: 12 moved; 4 stay (3 by the kernel, 1 by another program); irqbalance keeps off too".
std::string interrupts_line(const Document& interrupts) {
  const std::string cpus = text_of(interrupts, "cpus");
  if (cpus.empty()) return "where they were: no instance owns vCPUs";
  std::string line = fmt::format("kept off vCPUs {}: {} moved", cpus, whole(interrupts, "moved"));
  const double refused = number_of(interrupts, "refused").value_or(0);
  const double others = number_of(interrupts, "others").value_or(0);
  if (refused > 0) line += fmt::format(", {:.0f} stay because the kernel does not move them", refused);
  if (others > 0) line += fmt::format(", {:.0f} stay because another program put them there", others);
  const std::string irqbalance = text_of(interrupts, "irqbalance");
  if (irqbalance == "told") line += "; irqbalance keeps off these vCPUs, too";
  if (irqbalance == "pending") line += "; irqbalance is told, and follows within 20 s";
  if (irqbalance == "silent") line += "; irqbalance does not answer";
  if (irqbalance == "foreign") line += "; another program told irqbalance other vCPUs";
  return line;
}

Colour state_colour(const Document& resource) {
  const std::string state = text_of(resource, "state");
  if (state == "schedule") return Colour::none;
  return state == "evict" ? Colour::red : Colour::yellow;
}

}  // namespace

void render_status(std::ostream& out, const Document& status, double now, const Style& style) {
  const auto line = [&](const char* name, const std::string& value, Colour colour = Colour::none) {
    out << fmt::format("  {:<14}", name) << paint(style, colour, printable(value)) << "\n";
  };
  out << paint(style, Colour::bold,
               printable(fmt::format("berthd {} on {}", text_of(status, "version"), text_of(status, "host"))))
      << "\n";
  line("mode", mode_line(status), text_of(status, "mode") == "enforce" ? Colour::green : Colour::yellow);
  if (const std::string configured = configured_line(status); !configured.empty()) {
    line("configured", configured, Colour::yellow);
  }

  const Document& tick = member(status, "tick");
  const auto started = number_of(status, "started");
  line("running",
       fmt::format("{}, {} of {} s, {} ms of CPU each", started ? format_duration(now - *started) : "-",
                   counted(tick, "count", "tick"), format_number(number_of(tick, "interval_s"), 1),
                   format_number(number_of(tick, "mean_cpu_ms"), 2)));
  if (const Document& placement = member(status, "placement"); number_of(placement, "count").value_or(0) > 0)
    line("", fmt::format("{} between ticks, {} ms of CPU each", counted(placement, "count", "placement"),
                         format_number(number_of(placement, "mean_cpu_ms"), 2)));
  if (const Document& sampling = member(status, "sampling"); sampling.is_object())
    line("sampling", sampling_line(sampling, tick));
  if (const Document& blame = member(member(status, "sampling"), "blame"); blame.is_object())
    line("blame", blame_line(blame));
  const auto memory = number_of(status, "memory_rss_bytes");
  line("memory", memory && *memory >= 0 ? format_bytes(static_cast<std::uint64_t>(*memory)) : "-");
  const Document& workloads = member(status, "workloads");
  line("workloads", fmt::format("{} latency-sensitive, {} best-effort, {} left alone",
                                whole(workloads, "latency-sensitive"), whole(workloads, "best-effort"),
                                whole(workloads, "left_alone")));
  const auto score = number_of(status, "score_node");
  line("score", score ? format_number(score, 4) + " (0: no workload disturbs another)"
                      : std::string("- (no service has vCPUs of its own)"));
  const std::string pool = text_of(status, "best_effort_cpus");
  line("best-effort", pool.empty() ? "-" : "vCPUs " + pool);
  render_owned_cpus(line, status);
  render_others(line, member(status, "others"));
  render_unplaceable(line, status);
  const Document& held = member(status, "held_limits");
  line("stragglers", fmt::format("{}, of which {} should run elsewhere", whole(status, "stragglers"),
                                 whole(status, "relocations")));
  line("limits", fmt::format("{} extended, {} lent, {} preempted, {} lifted", whole(held, "extended"),
                             whole(held, "lent"), whole(held, "preempted"), whole(held, "lifted")));
  if (const Document& interrupts = member(status, "interrupts"); interrupts.is_object()) {
    line("interrupts", interrupts_line(interrupts));
    if (const std::string problem = text_of(interrupts, "problem"); !problem.empty())
      line("", "they cannot be moved: " + problem, Colour::red);
  }
  const Document& evictions = member(status, "evictions");
  if (number_of(evictions, "under_way").value_or(0) + number_of(evictions, "end").value_or(0) > 0) {
    line("evictions", fmt::format("{} under way, {} ended, of which {} killed", whole(evictions, "under_way"),
                                  whole(evictions, "end"), whole(evictions, "kill")));
  }
  if (const Document& advertised = member(status, "advertised"); advertised.is_object()) {
    line("node CPU", advertised_line(member(advertised, "cpu"), cores_text),
         state_colour(member(advertised, "cpu")));
    line("node memory", advertised_line(member(advertised, "memory"), bytes_text),
         state_colour(member(advertised, "memory")));
  }
  if (number_of(status, "reservations").value_or(0) > 0)
    line("reservations", counted(status, "reservations", "admitted workload"));
  line("to undo", counted(status, "undo_records", "changed attribute"));
  const Document& dropped = member(status, "dropped_messages");
  const double lost = number_of(dropped, "journal").value_or(0) + number_of(dropped, "systemd").value_or(0);
  if (lost > 0) {
    line("dropped",
         fmt::format("{} messages to journald and {} to systemd, which did not take them in time",
                     whole(dropped, "journal"), whole(dropped, "systemd")),
         Colour::yellow);
  }
  if (number_of(status, "overridden_workloads").value_or(0) > 0) {
    line("overridden", counted(status, "overridden_workloads", "workload") + " (berthctl set)");
  }

  const Document& config = member(status, "config");
  const auto loaded = number_of(config, "loaded");
  line("configuration",
       fmt::format("{}, read {}", text_of(config, "file"), loaded ? format_time(*loaded) : "-"));
  if (const std::string error = text_of(config, "error"); !error.empty()) {
    line("", "rejected: " + error, Colour::red);
  }
  if (const Document& trial = member(status, "trial"); trial.is_object())
    line("trial", trial_line(trial), Colour::yellow);
  render_unused_rules(line, config);
  if (const std::string reserved = text_of(status, "reserved_cpus"); !reserved.empty())
    line("reserved", fmt::format("vCPUs {}, which best-effort work is kept off", reserved));
  if (const std::string shared = text_of(status, "shared_reserved_cpus"); !shared.empty()) {
    line("reserved",
         fmt::format("best-effort work runs on vCPUs {} all the same, as berth may use no others", shared),
         Colour::yellow);
  }
  if (const std::string absent = text_of(status, "absent_reserved_cpus"); !absent.empty()) {
    line("reserved",
         fmt::format("interference.reserved_cpus names vCPUs {}, which this host does not have", absent),
         Colour::yellow);
  }

  render_gpus(out, status, style);

  heading(out, style, "Capabilities of the host");
  for (const Document& capability : list_of(status, "capabilities")) {
    const bool available = flag_of(capability, "available");
    out << "  " << paint(style, available ? Colour::green : Colour::red, available ? "yes" : "no ") << "  "
        << fmt::format("{:<20} ", printable(text_of(capability, "name")))
        << printable(text_of(capability, "detail")) << "\n";
  }

  render_figures(out, member(status, "sampling"), style);

  const auto& actions = list_of(status, "last_actions");
  out << "\n" << paint(style, Colour::bold, "Last actions") << (actions.empty() ? ": none yet" : "") << "\n";
  render_log(out, actions, style, "  ");
}

}  // namespace berth::cli
