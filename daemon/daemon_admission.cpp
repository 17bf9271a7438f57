// SPDX-License-Identifier: Apache-2.0
// Who is let in, and how long its place is kept.
#include "daemon/action_log.h"
#include "daemon/daemon.h"
#include "model/json.h"
#include "policies/decision_id.h"
#include "policies/placement/admission.h"
#include "policies/placement/rank.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

namespace berth::daemon {

using model::ErrorKind;

namespace {

constexpr double kLeastHold_s = 1;
constexpr double kMostHold_s = 86400;

constexpr const char* kPlacement = "placement";
constexpr const char* kReservation = "reservation";
constexpr const char* kHeld = "held";

// The same, but for what the daemon itself has come to.
bool is_same_request(model::PendingWorkload held, const model::PendingWorkload& request) {
  held.room_cpu_cores = request.room_cpu_cores;
  held.room_memory_bytes = request.room_memory_bytes;
  return held == request;
}

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
      entry.reason += fmt::format("; what would have to change, any of: {}", fmt::join(answer.change, "; "));
  }
  return entry;
}

// The policy's answer, and the decision that it is in the log.
std::string to_json(const model::Admission& answer, const std::string& decision) {
  auto document = nlohmann::json::parse(model::to_json(answer));
  document["decision"] = decision;
  return document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

void Daemon::end_reservations(double now) {
  std::vector<LogEntry> entries;
  for (const Reservation& it : reservations_->expire(now)) {
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
    for (const Reservation& met : reservations_->meet(id)) {
      entries.push_back(end_of(met, now, mode_name(), "came",
                               fmt::format("it is here, as {}; its place is its own now", id)));
      observer_->keep_gpus({.workload = id,
                            .cgroup_id = observer_->cgroup_id(id),
                            .gpus = met.gpus,
                            .exclusive = met.request.gpu_exclusive,
                            .until = met.until()});
    }
  }
  record(entries);
}

// What was only observed has made no room.
void Daemon::show_pending() {
  observer_->set_pending(enforcer_ ? reservations_->pending() : reservations_->requests());
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

// With everybody who is waited for in its place. Made once for all who ask between two ticks.
policies::Host& Daemon::host_for_newcomers() {
  if (documents_.host) return *documents_.host;
  documents_.host.emplace(host_as_advertised());
  policies::take_best(*documents_.host, reservations_->pending());
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
  take_changes();
  const double now = clock_();
  end_reservations(now);
  const auto before = reservations_->find(parsed->request.id);
  const bool renewed = before && is_same_request(before->request, parsed->request);
  model::Admission answer = judge_newcomer(parsed->request);
  answer.time = now;
  std::string decision = renewed ? before->decision : "";
  if (decision.empty()) {
    decision = policies::decision_id(now, kPlacement, kAdmit, answer.request.id,
                                     answer.admitted ? kHeld : "refused");
  }
  if (answer.admitted) {
    auto host = std::move(documents_.host);
    // What was let in before and would find no place now keeps what it was told.
    auto gpus = gpus_of(answer);
    if (gpus.empty() && before) gpus = before->gpus;
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
      if (!held) spdlog::warn("reservations hold until berthd ends only: {}", held.error().message());
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
  end_reservations(clock_());
  if (documents_.reservations) return *documents_.reservations;
  policies::Host host = host_as_advertised();
  std::map<std::string, model::FittingBin> places;
  for (const auto& [id, bins] : policies::take_best(host, reservations_->pending())) {
    if (!bins.fitting.empty()) places.emplace(id, bins.fitting.front());
  }
  documents_.reservations =
      daemon::reservations_json(observer_->snapshot().host, clock_(), *reservations_, places);
  return *documents_.reservations;
}

model::Result<std::string> Daemon::cancel_reservation(const std::string& id) {
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
  (void)reservations_->release(request.id);
  drop_documents();
  answer = policies::admit(host_for_newcomers(), request);
  if (!answer.admitted && is_same_request(before->request, request)) {
    answer.admitted = true;
    answer.change.clear();
    answer.reason = "it was let in before; now there would be no place: " + answer.reason;
    documents_.host.reset();
  }
  if (!answer.admitted) {  // what was promised before stands
    (void)reservations_->hold(*before);
    documents_.host.reset();
  }
  return answer;
}

}  // namespace berth::daemon
