// SPDX-License-Identifier: Apache-2.0
#include "daemon/admit/admissions.h"

#include "daemon/ledger/action_log.h"
#include "model/json.h"
#include "model/name.h"
#include "os/log.h"
#include "policies/decision_id.h"
#include "policies/placement/admission.h"
#include "policies/placement/rank.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/core.h>

namespace berth::daemon {

using model::ErrorKind;

namespace {

constexpr double kLeastHold_s = 1;
constexpr double kMostHold_s = 86400;

constexpr const char* kPlacement = "placement";
constexpr const char* kReservation = "reservation";
constexpr const char* kHeld = "held";

template <typename Found>
Arrival arrival_of(const Found& found) {
  return {.id = found.first, .named_by_root = found.second.named_by_root()};
}

std::vector<std::string> gpus_of(const model::Admission& answer) {
  return answer.bins.fitting.empty() ? std::vector<std::string>() : answer.bins.fitting.front().gpus;
}

// Best-effort work owns no vCPUs, and shares its bin's with others.
model::CpuSet cpus_of(const model::Admission& answer) {
  const bool owns = answer.request.workload_class == model::WorkloadClass::latency_sensitive;
  return owns && !answer.bins.fitting.empty() ? answer.bins.fitting.front().cpus : model::CpuSet();
}

LogEntry entry_of(double now, const char* mode, const std::string& id, std::string decision,
                  std::string reason) {
  LogEntry entry;
  entry.time = now;
  entry.decision = std::move(decision);
  entry.mode = mode;
  entry.kind = kAdmit;
  entry.workload = id;
  entry.policy = kPlacement;
  entry.reason = std::move(reason);
  entry.result = "applied";
  return entry;
}

// Of a place that is held no longer; `how` is "came", "expired", "cancelled" or "replaced".
LogEntry end_of(const Reservation& held, double now, const char* mode, const char* how, std::string reason) {
  LogEntry entry = entry_of(now, mode, held.request.id, held.decision, std::move(reason));
  entry.attribute = kReservation;
  entry.old_value = kHeld;
  entry.new_value = how;
  return entry;
}

LogEntry entry_of(const model::Admission& answer, const std::string& decision, const char* mode,
                  bool was_held, double hold_s) {
  LogEntry entry = entry_of(answer.time, mode, answer.request.id, decision, answer.reason);
  if (answer.admitted) {
    entry.attribute = kReservation;
    entry.old_value = was_held ? kHeld : "";
    entry.new_value = kHeld;
    entry.reason += fmt::format("; its place is held for {:.4g} s", hold_s);
  } else {
    entry.result = "refused";
    if (!answer.change.empty())
      entry.reason +=
          fmt::format("; any one of these changes would help: {}", model::joined(answer.change, "; "));
  }
  return entry;
}

}  // namespace

bool Admissions::Node::enforces() const { return std::string_view(mode) == "enforce"; }

Admissions::Admissions(const std::filesystem::path& runtime_dir, os::Clock clock, NodeNow node,
                       std::optional<std::string>& warning)
    : clock_(std::move(clock)), node_(std::move(node)), reservations_(runtime_dir, clock_, warning) {}

void Admissions::add_arrived(const std::vector<std::string>& workloads) {
  arrived_.insert(arrived_.end(), workloads.begin(), workloads.end());
}

void Admissions::forget_node() {
  host_.reset();
  json_.reset();
}

std::vector<LogEntry> Admissions::expire(double now) {
  std::vector<LogEntry> entries;
  // A workload that has come and was not met yet is not late.
  const auto& found = node_().observer.found();
  const auto has_come = [&](const std::string& id) {
    return std::any_of(arrived_.begin(), arrived_.end(), [&](const std::string& came) {
      const auto workload = found.find(came);
      return workload != found.end() && is_meant(id, arrival_of(*workload));
    });
  };
  for (const Reservation& it : reservations_.expire(now, has_come)) {
    entries.push_back(
        end_of(it, now, node_().mode, "expired",
               fmt::format("no workload came within {:.4g} s; its place is free again", it.hold_s)));
  }
  if (!entries.empty()) forget_node();
  return entries;
}

std::vector<LogEntry> Admissions::meet(double now) {
  std::vector<LogEntry> entries;
  const Node node = node_();
  for (const auto& id : std::exchange(arrived_, {})) {
    const std::uint64_t run = node.observer.cgroup_id(id);
    if (run == 0) continue;  // and gone again: the next start finds the place
    for (const Reservation& met : reservations_.meet(arrival_of(*node.observer.found().find(id)))) {
      entries.push_back(end_of(met, now, node.mode, "came",
                               fmt::format("it came as {} and has its place; the reservation is over", id)));
      node.observer.keep_gpus({.workload = id,
                               .cgroup_id = run,
                               .gpus = met.gpus,
                               .exclusive = met.request.gpu_exclusive,
                               .until = met.until()});
      node.observer.keep_place({.workload = id, .cgroup_id = run, .cpus = met.cpus, .until = met.until()});
    }
  }
  return entries;
}

// The GPUs that the reservation's workload was told it would get, as long as all of them are well; else none.
std::vector<std::string> Admissions::kept_gpus(const Node& node, const Reservation& reservation) const {
  const auto& gpus = node.observer.snapshot().topology.gpus();
  const auto is_well = [&gpus](const std::string& id) {
    return std::any_of(gpus.begin(), gpus.end(),
                       [&id](const model::Gpu& gpu) { return gpu.id == id && gpu.healthy && !gpu.holder; });
  };
  const auto& told = reservation.gpus;
  return std::all_of(told.begin(), told.end(), is_well) ? told : std::vector<std::string>();
}

void Admissions::set_pending(bool with_room) {
  const Node node = node_();
  auto awaited = with_room ? reservations_.pending() : reservations_.requests();
  for (std::size_t at = 0; at < awaited.size(); ++at) {
    awaited[at].told_gpus = kept_gpus(node, reservations_.all()[at]);
    awaited[at].told_cpus = reservations_.all()[at].cpus;
  }
  node.observer.set_pending(std::move(awaited));
}

void Admissions::show_pending() { set_pending(node_().enforces()); }

// The host now, with the capacity that it advertises since the last tick.
policies::Host Admissions::host_as_advertised(const Node& node) {
  show_pending();
  return {node.observer.snapshot(), node.settings, node.advertised};
}

// The host for a newcomer. All other awaited work is in its place. Where such work has no place at present,
// its promised resources stay set aside.
policies::Host Admissions::host_with_promises(const Node& node, const std::string& but) {
  policies::Host host = host_as_advertised(node);
  auto others = node.observer.snapshot().pending;
  std::erase_if(others, [&](const model::PendingWorkload& held) { return held.id == but; });
  policies::take_promised(host, others);
  return host;
}

policies::Host& Admissions::host_for_newcomers(const Node& node) {
  if (!host_) host_.emplace(host_with_promises(node, {}));
  return *host_;
}

model::Result<Admissions::Answer> Admissions::admit(const std::string& request, double hold_s, double now) {
  const Node node = node_();
  if (hold_s == 0) hold_s = node.settings.placement.hold_s;
  if (!(hold_s >= kLeastHold_s && hold_s <= kMostHold_s)) {
    return model::fail(ErrorKind::invalid_input,
                       fmt::format("a place can be held for {} to {} s", kLeastHold_s, kMostHold_s));
  }
  auto parsed = model::parse_request(request);
  if (!parsed) return model::fail(parsed.error().context("the request"));
  if (!parsed->named) {
    return model::fail(ErrorKind::invalid_input,
                       "the request: $.id: missing; it names the cgroup that the place is kept for");
  }
  Answer done;
  done.entries = expire(now);
  done.changed = !done.entries.empty();
  const auto before = reservations_.find(parsed->request.id);
  const bool renewed = before && is_same_request(before->request, parsed->request);
  model::Admission answer = judge(node, parsed->request);
  answer.time = now;
  answer.wall_ahead_s = clock_.wall_ahead_s();
  std::string decision = renewed && answer.admitted ? before->decision : "";
  if (decision.empty()) {
    decision = policies::decision_id(now, kPlacement, kAdmit, answer.request.id,
                                     answer.admitted ? kHeld : "refused");
  }
  if (answer.admitted) {
    auto host = std::move(host_);
    if (before) {  // the room that was made for it is not made again
      parsed->request.room_cpu_cores = before->request.room_cpu_cores;
      parsed->request.room_memory_bytes = before->request.room_memory_bytes;
    }
    // A request that was admitted before keeps its GPUs, even if it would find no place now.
    auto gpus = gpus_of(answer);
    if (gpus.empty() && renewed) gpus = before->gpus;
    auto cpus = cpus_of(answer);
    if (cpus.empty() && renewed) cpus = before->cpus;
    const auto held = reservations_.hold({.request = std::move(parsed->request),
                                          .since = now,
                                          .hold_s = hold_s,
                                          .gpus = std::move(gpus),
                                          .cpus = std::move(cpus),
                                          .decision = decision});
    if (!held && held.error().kind() == ErrorKind::refused) {
      answer.admitted = false;
      answer.reason = held.error().message();
      answer.change = {"wait until an admitted workload comes, or until a reservation expires"};
      host.reset();
    } else {
      if (!held)
        os::log_warning("cannot save the reservations, so they end with berthd: {}", held.error().message());
      answer.until = now + hold_s;
    }
    forget_node();
    host_ = std::move(host);
    done.changed = true;
  }
  show_pending();
  if (before && !renewed && answer.admitted) {
    done.entries.push_back(end_of(*before, now, node.mode, "replaced",
                                  fmt::format("another request with this id was admitted ({})", decision)));
  }
  done.entries.push_back(entry_of(answer, decision, node.mode, renewed, hold_s));
  answer.decision = decision;
  done.text = model::to_json(answer);
  return done;
}

std::string Admissions::json(double now) {
  if (json_) return *json_;
  const Node node = node_();
  policies::Host host = host_as_advertised(node);
  std::map<std::string, model::FittingBin> places;
  for (const auto& [id, bins] : policies::take_best(host, node.observer.snapshot().pending)) {
    if (!bins.fitting.empty()) places.emplace(id, bins.fitting.front());
  }
  json_ = reservations_json(node.observer.snapshot().host, now, clock_.wall_ahead_s(), reservations_, places);
  return *json_;
}

model::Result<Admissions::Answer> Admissions::cancel(const std::string& id, double now) {
  const auto held = reservations_.find(id);
  if (!held) {
    return model::fail(
        ErrorKind::gone,
        fmt::format("\"{}\": there is no reservation with this id; `berthctl admit --list` shows all", id));
  }
  (void)reservations_.release(id);
  forget_node();
  show_pending();
  LogEntry entry =
      end_of(*held, now, node_().mode, "cancelled", "cancelled on request; its place is free again");
  entry.policy = "operator";
  return Answer{.text = held->decision, .entries = {std::move(entry)}, .changed = true};
}

model::Admission Admissions::judge(const Node& node, const model::PendingWorkload& request) {
  model::Admission answer;
  answer.host = node.observer.snapshot().host;
  answer.request = request;
  const auto& found = node.observer.found();
  const auto running = std::find_if(found.begin(), found.end(),
                                    [&](const auto& item) { return is_meant(request.id, arrival_of(item)); });
  if (running != found.end()) {
    answer.reason = fmt::format("{} is already running", running->first);
    answer.change = {"end it first, or give the request another id"};
    return answer;
  }
  const auto before = reservations_.find(request.id);
  if (!before) return policies::admit(host_for_newcomers(node), request);
  // A request that comes again is judged without its own reservation. The promise for the same request
  // stands.
  const bool same = is_same_request(before->request, request);
  model::PendingWorkload again = request;
  if (same) again.told_gpus = kept_gpus(node, *before);
  if (same) again.told_cpus = before->cpus;
  forget_node();
  host_.emplace(host_with_promises(node, request.id));
  answer = policies::admit(*host_, again);
  answer.request = request;
  if (!answer.admitted && same) {
    answer.admitted = true;
    answer.change.clear();
    answer.reason =
        "it was admitted before and keeps its place; a new request would not fit: " + answer.reason;
    host_.reset();
  }
  if (!answer.admitted) host_.reset();  // what was promised before stands
  return answer;
}

}  // namespace berth::daemon
