// SPDX-License-Identifier: Apache-2.0
// Who is let in, and how long its place is kept.
#include "daemon/action_log.h"
#include "daemon/daemon.h"
#include "daemon/log.h"
#include "model/json.h"
#include "model/json_text.h"
#include "model/name.h"
#include "policies/decision_id.h"
#include "policies/placement/admission.h"
#include "policies/placement/rank.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace berth::daemon {

using model::ErrorKind;

namespace {

constexpr double kLeastHold_s = 1;
constexpr double kMostHold_s = 86400;

constexpr const char* kPlacement = "placement";
constexpr const char* kReservation = "reservation";
constexpr const char* kHeld = "held";

std::vector<std::string> gpus_of(const model::Admission& answer) {
  return answer.bins.fitting.empty() ? std::vector<std::string>() : answer.bins.fitting.front().gpus;
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
          fmt::format("; what would have to change, any of: {}", model::joined(answer.change, "; "));
  }
  return entry;
}

// The policy's answer, and the decision that it is in the log.
std::string to_json(const model::Admission& answer, const std::string& decision) {
  auto document = model::json_of(model::to_json(answer));
  document["decision"] = decision;
  return model::json_text(document);
}

}  // namespace

void Daemon::end_reservations(double now) {
  std::vector<LogEntry> entries;
  // Who has come and is not met yet is not late.
  const auto has_come = [this](const std::string& id) {
    return std::any_of(arrived_.begin(), arrived_.end(),
                       [&](const std::string& came) { return is_meant(id, came); });
  };
  for (const Reservation& it : reservations_->expire(now, has_come)) {
    entries.push_back(
        end_of(it, now, mode_name(), "expired",
               fmt::format("it has not come within {:.4g} s; its place is free again", it.hold_s)));
  }
  if (entries.empty()) return;
  drop_documents();
  record(entries);
}

// Not before the tick that takes them in as workloads: in between, their place would be nobody's.
void Daemon::meet_reservations(double now) {
  std::vector<LogEntry> entries;
  for (const auto& id : std::exchange(arrived_, {})) {
    const std::uint64_t run = observer_->cgroup_id(id);
    if (run == 0) continue;  // and gone again: the next start finds the place
    for (const Reservation& met : reservations_->meet(id)) {
      entries.push_back(end_of(met, now, mode_name(), "came",
                               fmt::format("it is here, as {}; its place is its own now", id)));
      observer_->keep_gpus({.workload = id,
                            .cgroup_id = run,
                            .gpus = met.gpus,
                            .exclusive = met.request.gpu_exclusive,
                            .until = met.until()});
    }
  }
  record(entries);
}

// The GPUs that one who is waited for was told it would get, as long as these are well; else none.
std::vector<std::string> Daemon::kept_gpus(const Reservation& reservation) const {
  const auto& gpus = observer_->snapshot().topology.gpus();
  const auto is_well = [&gpus](const std::string& id) {
    return std::any_of(gpus.begin(), gpus.end(),
                       [&id](const model::Gpu& gpu) { return gpu.id == id && gpu.healthy && !gpu.holder; });
  };
  const auto& told = reservation.gpus;
  return std::all_of(told.begin(), told.end(), is_well) ? told : std::vector<std::string>();
}

// All who are waited for, with these.
std::vector<model::PendingWorkload> Daemon::with_gpus(std::vector<model::PendingWorkload> awaited) const {
  for (std::size_t at = 0; at < awaited.size(); ++at)
    awaited[at].told_gpus = kept_gpus(reservations_->all()[at]);
  return awaited;
}

// What was only observed has made no room.
void Daemon::show_pending() {
  observer_->set_pending(with_gpus(enforcer_ ? reservations_->pending() : reservations_->requests()));
}

// As it is now, with what it says of itself since the last tick.
policies::Host Daemon::host_as_advertised() {
  show_pending();
  const model::Advertised shown = observer_->snapshot().advertised;
  observer_->set_advertised(advertising_.advertised());
  policies::Host host(observer_->snapshot(), settings_.policies);
  observer_->set_advertised(shown);
  return host;
}

// As it is for a newcomer: with everybody else who is waited for in its place, or, for want of one at
// present, with what was promised him kept.
policies::Host Daemon::host_with_promises(const std::string& but) {
  policies::Host host = host_as_advertised();
  auto others = observer_->snapshot().pending;
  std::erase_if(others, [&](const model::PendingWorkload& held) { return held.id == but; });
  policies::take_promised(host, others);
  return host;
}

// Made once for all who ask between two ticks.
policies::Host& Daemon::host_for_newcomers() {
  if (!documents_.host) documents_.host.emplace(host_with_promises({}));
  return *documents_.host;
}

model::Result<std::string> Daemon::admit(const std::string& request, double hold_s) {
  if (hold_s == 0) hold_s = settings_.policies.placement.hold_s;
  if (!(hold_s >= kLeastHold_s && hold_s <= kMostHold_s)) {
    return model::fail(ErrorKind::invalid_input,
                       fmt::format("a place is held for {} to {} s", kLeastHold_s, kMostHold_s));
  }
  auto parsed = model::parse_request(request);
  if (!parsed) return model::fail(parsed.error().context("the request"));
  if (!parsed->named) {
    return model::fail(ErrorKind::invalid_input,
                       "the request: $.id: missing; it says which cgroup the place is kept for");
  }
  take_changes();
  const double now = clock_();
  end_reservations(now);
  const auto before = reservations_->find(parsed->request.id);
  const bool renewed = before && is_same_request(before->request, parsed->request);
  model::Admission answer = judge_newcomer(parsed->request);
  answer.time = now;
  std::string decision = renewed && answer.admitted ? before->decision : "";
  if (decision.empty()) {
    decision = policies::decision_id(now, kPlacement, kAdmit, answer.request.id,
                                     answer.admitted ? kHeld : "refused");
  }
  if (answer.admitted) {
    auto host = std::move(documents_.host);
    if (before) {  // what was taken of others to make room is not taken again
      parsed->request.room_cpu_cores = before->request.room_cpu_cores;
      parsed->request.room_memory_bytes = before->request.room_memory_bytes;
    }
    // What was let in before and would find no place now keeps what it was told.
    auto gpus = gpus_of(answer);
    if (gpus.empty() && renewed) gpus = before->gpus;
    const auto held = reservations_->hold({.request = std::move(parsed->request),
                                           .since = now,
                                           .hold_s = hold_s,
                                           .gpus = std::move(gpus),
                                           .decision = decision});
    if (!held && held.error().kind() == ErrorKind::refused) {
      answer.admitted = false;
      answer.reason = held.error().message();
      answer.change = {"some of those have to come, or their time to be over"};
      host.reset();
    } else {
      if (!held) log_warning("reservations hold until berthd ends only: {}", held.error().message());
      answer.until = now + hold_s;
    }
    drop_documents();
    documents_.host = std::move(host);
  }
  show_pending();
  std::vector<LogEntry> entries;
  if (before && !renewed && answer.admitted) {
    entries.push_back(end_of(*before, now, mode_name(), "replaced",
                             fmt::format("another request of that name was let in ({})", decision)));
  }
  entries.push_back(entry_of(answer, decision, mode_name(), renewed, hold_s));
  record(entries);
  return to_json(answer, decision);
}

std::string Daemon::reservations_json() {
  take_changes();
  end_reservations(clock_());
  if (documents_.reservations) return *documents_.reservations;
  policies::Host host = host_as_advertised();
  std::map<std::string, model::FittingBin> places;
  for (const auto& [id, bins] : policies::take_best(host, observer_->snapshot().pending)) {
    if (!bins.fitting.empty()) places.emplace(id, bins.fitting.front());
  }
  documents_.reservations =
      daemon::reservations_json(observer_->snapshot().host, clock_(), *reservations_, places);
  return *documents_.reservations;
}

model::Result<std::string> Daemon::cancel_reservation(const std::string& id) {
  take_changes();
  const double now = clock_();
  end_reservations(now);
  const auto held = reservations_->find(id);
  if (!held) {
    return model::fail(ErrorKind::gone,
                       fmt::format("\"{}\": no place is held for it; `berthctl admit --list` shows those "
                                   "that are",
                                   id));
  }
  (void)reservations_->release(id);
  drop_documents();
  show_pending();
  LogEntry entry = end_of(*held, now, mode_name(), "cancelled", "asked for by hand; its place is free again");
  entry.policy = "operator";
  record({entry});
  return held->decision;
}

model::Admission Daemon::judge_newcomer(const model::PendingWorkload& request) {
  model::Admission answer;
  answer.host = observer_->snapshot().host;
  answer.request = request;
  const auto& found = observer_->found();
  const auto running = std::find_if(found.begin(), found.end(),
                                    [&](const auto& item) { return is_meant(request.id, item.first); });
  if (running != found.end()) {
    answer.reason = fmt::format("{} runs already", running->first);
    answer.change = {"it has to end first, or the request to have another id"};
    return answer;
  }
  const auto before = reservations_->find(request.id);
  if (!before) return policies::admit(host_for_newcomers(), request);
  // Asked again, it is judged without itself; what was promised for the very same stands.
  const bool same = is_same_request(before->request, request);
  model::PendingWorkload again = request;
  if (same) again.told_gpus = kept_gpus(*before);
  drop_documents();
  documents_.host.emplace(host_with_promises(request.id));
  answer = policies::admit(*documents_.host, again);
  answer.request = request;
  if (!answer.admitted && same) {
    answer.admitted = true;
    answer.change.clear();
    answer.reason = "it was let in before; now there would be no place: " + answer.reason;
    documents_.host.reset();
  }
  if (!answer.admitted) documents_.host.reset();  // what was promised before stands
  return answer;
}

}  // namespace berth::daemon
