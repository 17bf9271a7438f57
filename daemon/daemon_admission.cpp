// SPDX-License-Identifier: Apache-2.0
// Who is let in, and how long its place is kept.
#include "daemon/daemon.h"
#include "model/json.h"
#include "policies/placement/admission.h"
#include "policies/placement/rank.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace berth::daemon {

using model::ErrorKind;

namespace {

constexpr double kLeastHold_s = 1;
constexpr double kMostHold_s = 86400;

// The same, but for what the daemon itself has come to.
bool is_same_request(model::PendingWorkload held, const model::PendingWorkload& request) {
  held.room_cpu_cores = request.room_cpu_cores;
  held.room_memory_bytes = request.room_memory_bytes;
  return held == request;
}

std::vector<std::string> gpus_of(const model::Admission& answer) {
  return answer.bins.fitting.empty() ? std::vector<std::string>() : answer.bins.fitting.front().gpus;
}

}  // namespace

void Daemon::end_reservations(double now) {
  const auto ended = reservations_->expire(now);
  for (const Reservation& it : ended)
    spdlog::info("{} has not come within {:.4g} s; its place is free again", it.request.id, it.hold_s);
  if (!ended.empty()) drop_documents();
}

// Not before the tick that takes them in as workloads: in between, their place would be nobody's.
void Daemon::meet_reservations() {
  for (const auto& id : std::exchange(arrived_, {})) {
    for (const Reservation& met : reservations_->meet(id)) {
      spdlog::info("{} has come, as {}; its place is its own now", met.request.id, id);
      observer_->keep_gpus({.workload = id,
                            .cgroup_id = observer_->cgroup_id(id),
                            .gpus = met.gpus,
                            .exclusive = met.request.gpu_exclusive,
                            .until = met.until()});
    }
  }
}

// What was only observed has made no room.
void Daemon::show_pending() {
  observer_->set_pending(enforcer_ ? reservations_->pending() : reservations_->requests());
}

// As it is now, with everybody who is waited for in its place. Made once for all who ask between two ticks.
policies::Host& Daemon::host_for_newcomers() {
  if (documents_.host) return *documents_.host;
  show_pending();
  const model::Advertised shown = observer_->snapshot().advertised;
  observer_->set_advertised(advertising_.advertised());
  documents_.host.emplace(observer_->snapshot(), settings_.policies);
  observer_->set_advertised(shown);
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
  model::Admission answer = judge_newcomer(parsed->request);
  answer.time = now;
  if (answer.admitted) {
    auto host = std::move(documents_.host);
    // What was let in before and would find no place now keeps what it was told.
    auto gpus = gpus_of(answer);
    if (gpus.empty() && before) gpus = before->gpus;
    const auto held = reservations_->hold(
        {.request = std::move(parsed->request), .since = now, .hold_s = hold_s, .gpus = std::move(gpus)});
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
  if (answer.admitted) {
    spdlog::info("{} is admitted: {}; its place is held for {:.4g} s", answer.request.id, answer.reason,
                 hold_s);
  } else {
    spdlog::info("{} is refused: {}", answer.request.id, answer.reason);
  }
  return model::to_json(answer);
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
