// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/document.h"
#include "cli/host_scan.h"
#include "cli/text.h"
#include "config/config.h"
#include "config/units.h"
#include "model/count_text.h"
#include "model/json_text.h"
#include "model/path.h"
#include "os/clock.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/core.h>
#include <unistd.h>

namespace berth::cli {

namespace {

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "this host";
}

Outcome<void> suggest(Session& session, double look_s) {
  if (isatty(STDERR_FILENO) != 0 && !session.json)
    session.err << fmt::format("berthctl: looking at the services of this host for {:g} s\n", look_s);
  const auto host = scan_host("/proc", cgroup_root_of("/proc"), [look_s] {
    std::this_thread::sleep_for(std::chrono::duration<double>(look_s));
  });
  if (!host) return tl::unexpected(host.error());
  const std::string text =
      suggestion(*host, fmt::format("A first configuration for {}, written by `berthctl suggest` on {}.",
                                    host_name(), format_time(os::epoch_s())));
  // A name that the scan did not foresee must not become a file that berthd refuses.
  if (const auto settings = config::parse(text, "the suggestion"); !settings)
    return problem(settings.error());
  if (session.json) {
    session.out << model::json_text({{"schema", "berth.suggest/1"}, {"toml", text}}) << "\n";
  } else {
    session.out << text;
  }
  return {};
}

std::string check_look(const std::string& text) {
  const auto seconds = config::parse_duration_s(text);
  if (!seconds) return seconds.error().message();
  return *seconds >= 0.1 && *seconds <= 3600 ? "" : "a look takes from 100ms to 1h";
}

constexpr double kBusyCores = 0.05;  // a unit that uses less is not worth a rule
constexpr double kHeadroom = 1.5;    // of a service, above the use that was seen
constexpr std::size_t kMostPorts = 4;

// They keep the host reachable, and hardly compute. Names up to "@" or the suffix.
constexpr std::array<std::string_view, 24> kBaseSystem{
    "NetworkManager", "agetty",  "avahi-daemon", "berth-sparkd", "chrony",      "chronyd",
    "containerd",     "cron",    "crond",        "dbus",         "dbus-broker", "docker",
    "getty",          "kubelet", "ntp",          "polkit",       "rpcbind",     "rsyslog",
    "serial-getty",   "snapd",   "ssh",          "sshd",         "udisks2",     "wpa_supplicant"};

// "web" of "system.slice/web@1.service".
std::string short_name(const std::string& id) {
  const std::string last(model::last_component(id));
  return last.substr(0, std::min(last.find('@'), last.rfind('.')));
}

bool is_base_system(const std::string& id) {
  const std::string name = short_name(id);
  return name.starts_with("systemd-") ||
         std::find(kBaseSystem.begin(), kBaseSystem.end(), name) != kBaseSystem.end();
}

// A container's scope has another name at each start: it ends with the hexadecimal id.
bool is_fleeting(const std::string& id) {
  const std::string name = short_name(id);
  const std::size_t dash = name.rfind('-');
  const std::string_view tail = std::string_view(name).substr(dash == std::string::npos ? 0 : dash + 1);
  return id.ends_with(".scope") && tail.size() >= 12 &&
         std::all_of(tail.begin(), tail.end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
}

// A glob for the unit, and for all instances of its template. Letters with a meaning in globs or TOML become
// "?".
std::string glob_of(const std::string& id) {
  std::string glob;
  for (const char c : id) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                       std::string_view("_.@:/-").find(c) != std::string_view::npos;
    glob += plain ? c : '?';
  }
  const std::size_t at = glob.find('@', glob.rfind('/') + 1);
  const std::size_t suffix = glob.rfind('.');
  if (at != std::string::npos && suffix > at) glob.replace(at + 1, suffix - at - 1, "*");
  return glob;
}

double most_cores(const SeenUnit& unit) {
  return std::max(unit.cores.value_or(0), unit.mean_cores.value_or(0));
}

// "0.40 cores since its start, 0.90 during the look".
std::string use_in_words(const SeenUnit& unit) {
  const auto cores = [](const std::optional<double>& amount) {
    return amount ? fmt::format("{:.2f} cores", *amount) : std::string("an unknown amount");
  };
  return fmt::format("{} on average since its start, {} during the look", cores(unit.mean_cores),
                     cores(unit.cores));
}

std::string ports_in_words(const SeenUnit& unit) {
  std::string text = unit.ports.size() == 1 ? "TCP port " : "TCP ports ";
  std::size_t count = 0;
  for (const std::uint16_t port : unit.ports) {
    if (count == kMostPorts) return text + ", ...";
    text += fmt::format("{}{}", count == 0 ? "" : ", ", port);
    ++count;
  }
  return text;
}

int vcpus_for(const SeenUnit& unit, std::size_t cpus) {
  const double wanted = std::ceil(unit.quota_cores.value_or(most_cores(unit) * kHeadroom));
  return static_cast<int>(std::clamp(wanted, 1.0, static_cast<double>(std::max<std::size_t>(cpus, 1))));
}

// One rule for all units of one glob: that with the most use stands for them.
std::vector<SeenUnit> by_glob(const std::vector<SeenUnit>& units) {
  std::map<std::string, SeenUnit> chosen;
  for (const SeenUnit& unit : units) {
    const auto [found, is_new] = chosen.try_emplace(glob_of(unit.id), unit);
    if (is_new) continue;
    SeenUnit& known = found->second;
    known.ports.insert(unit.ports.begin(), unit.ports.end());
    known.connections += unit.connections;
    known.spark = known.spark || unit.spark;
    if (most_cores(unit) > most_cores(known)) {
      known.cores = unit.cores;
      known.mean_cores = unit.mean_cores;
    }
  }
  std::vector<SeenUnit> list;
  list.reserve(chosen.size());
  for (auto& [glob, unit] : chosen) list.push_back(unit);
  return list;
}

class Writer {
 public:
  explicit Writer(const SeenHost& host) : host_(host) {}

  void comment(const std::string& text) { text_ += "# " + printable(text) + "\n"; }
  void line(const std::string& text) { text_ += text + "\n"; }

  void service(const SeenUnit& unit) {
    line("");
    comment(fmt::format("{} listens at {}, with {} now. Clients wait for its answers,", short_name(unit.id),
                        ports_in_words(unit), model::count_text(unit.connections, "connection")));
    comment("so best-effort work beside it gets only the CPU time that it leaves.");
    rule(unit, "latency-sensitive");
    comment(fmt::format("It used {}.", use_in_words(unit)));
    comment(
        fmt::format("It needs no more settings. Only if it must have vCPUs alone, add isolation = "
                    "\"vcpus\" and vcpus = {}:",
                    vcpus_for(unit, host_.cpus)));
    comment(unit.quota_cores ? fmt::format("its CPU quota of {:.2f} cores, rounded up.", *unit.quota_cores)
                             : "half as much again as the larger use, rounded up.");
  }

  void batch(const SeenUnit& unit) {
    line("");
    comment(fmt::format("{} used {}.", short_name(unit.id), use_in_words(unit)));
    comment(
        unit.spark
            ? "It runs Apache Spark. berth asks Spark's drivers how far they are, and needs no more settings."
            : "It listens at no TCP port, so no client waits for it.");
    comment("It runs on cores that the services leave, with idle priority.");
    rule(unit, "best-effort");
  }

  void heading(const std::string& text) {
    comment(text);
    comment(fmt::format("It is a proposal from {} on {}. Read it, change it, and save it as {}:",
                        model::count_text(host_.units.size(), "unit"), model::count_text(host_.cpus, "vCPU"),
                        "/etc/berth/berth.toml"));
    comment("  berthctl check-config FILE     finds mistakes");
    comment("  berthctl reload                makes berthd read it");
    comment("  berthctl plan                  shows what it leads to, and why");
    if (host_.hidden > 0) {
      comment(fmt::format(
          "The sockets of {} processes are hidden from this user. As root, the proposal is better.",
          host_.hidden));
    }
    line("");
    comment("berth decides, publishes, and changes nothing. Once its plans please you, write \"enforce\".");
    line("mode = \"observe\"");
  }

  void end(const std::vector<std::string>& base, std::size_t idle) {
    line("");
    if (host_.kubernetes > 0) {
      comment(fmt::format("{} containers of Kubernetes need no rule: their QoS class is their class.",
                          host_.kubernetes));
    }
    if (!base.empty()) {
      std::string names;
      for (const std::string& name : base) names += (names.empty() ? "" : ", ") + name;
      comment(fmt::format("Left alone, as parts of the base system: {}.", names));
    }
    comment(fmt::format("{} listened nowhere and used less than {:.2f} cores.",
                        model::count_text(idle, "other unit"), kBusyCores));
  }

  std::string text() const { return text_; }

 private:
  void rule(const SeenUnit& unit, const char* workload_class) {
    off_ = is_fleeting(unit.id);
    if (off_) {
      comment(
          "This container has another name after each start, so the rule is off. Replace the id by a *, if "
          "all");
      comment(
          "containers of this kind are alike, or have its owner set the mark user.berth.class "
          "(berth.toml(5)).");
    }
    setting("[[workload]]");
    setting(fmt::format("match = \"{}\"", glob_of(unit.id)));
    setting(fmt::format("class = \"{}\"", workload_class));
  }

  void setting(const std::string& text) { line((off_ ? "# " : "") + text); }

  const SeenHost& host_;
  std::string text_;
  bool off_ = false;
};

}  // namespace

Action declare_suggest(const Options& options) {
  const auto look = std::make_shared<std::string>("5s");
  options.option("--for", *look, "Time for which the use of CPU is measured")
      .type_name("DURATION")
      .check(check_look)
      .show_default();
  return [look](Session& session) { return suggest(session, *config::parse_duration_s(*look)); };
}

std::string suggestion(const SeenHost& host, const std::string& heading) {
  Writer writer(host);
  writer.heading(heading);
  std::vector<std::string> base;
  std::vector<SeenUnit> batch;
  std::size_t idle = 0;
  for (const SeenUnit& unit : by_glob(host.units)) {
    if (is_base_system(unit.id)) {
      base.push_back(short_name(unit.id));
    } else if (!unit.ports.empty() && !unit.spark) {
      writer.service(unit);
    } else if (unit.spark || most_cores(unit) >= kBusyCores) {
      batch.push_back(unit);
    } else {
      ++idle;
    }
  }
  for (const SeenUnit& unit : batch) writer.batch(unit);
  writer.end(base, idle);
  return writer.text();
}

}  // namespace berth::cli
