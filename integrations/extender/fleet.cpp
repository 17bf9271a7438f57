// SPDX-License-Identifier: Apache-2.0
#include "integrations/extender/fleet.h"

#include "integrations/kubernetes/pod.h"
#include "model/json.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/core.h>

namespace berth::extender {

namespace {

using model::ErrorKind;

constexpr std::size_t kMaxReasonBytes = 300;
constexpr int kBest = 10;
constexpr int kNeutral = 5;

// Equal texts have equal places. The id is no part of it.
std::string kind_of(const model::PendingWorkload& request) {
  return fmt::format("{} {} {} {} {}", static_cast<int>(request.workload_class), request.vcpus.value_or(0),
                     request.memory_request_bytes, request.gpus, request.service);
}

// Of the `place`-th of so many nodes. The best one alone has all points, so that the scheduler chooses it.
// The others have 9 to 1.
int points_of(std::size_t place, std::size_t count) {
  if (place == 0) return kBest;
  if (count == 2) return kBest - 1;
  return 1 + static_cast<int>((kBest - 2) * (count - 1 - place) / (count - 2));
}

}  // namespace

Fleet::Judged Fleet::judged(policies::HostPlace place, std::uint64_t version) {
  Judged judged{.version = version, .order = std::nullopt, .rejection = {}};
  if (place.best)
    judged.order = place.best->order;
  else
    judged.rejection = place.rejection.substr(0, kMaxReasonBytes);
  return judged;
}

bool Fleet::is_fresh(const Known& known, double now_s) const {
  return now_s - known.arrived_s <= settings_.max_age_s;
}

std::optional<std::size_t> Fleet::fresh_host(const std::string& node, double now_s) const {
  const auto known = by_name_.find(node);
  if (known == by_name_.end() || !is_fresh(hosts_[known->second], now_s)) return std::nullopt;
  return known->second;
}

void Fleet::place(policies::Host& host, const model::PendingWorkload& request) {
  ++placings_;
  const auto found = policies::best_place(request, host);
  if (found.best) host.take(found.best->spot, request);
}

const policies::Host& Fleet::expected_on(Known& known) {
  if (known.assumed.empty()) return *known.shown;
  if (!known.expected) {
    known.expected = known.shown;
    for (const AssumedPod assumed : known.assumed) place(*known.expected, assumed->request);
  }
  return *known.expected;
}

// Its expected state is made again when it is next asked for.
void Fleet::changed(Known& known) {
  known.expected.reset();
  known.expected_version = ++versions_;
}

void Fleet::forget(AssumedPod assumed) {
  Known& known = hosts_[assumed->host];
  known.assumed.erase(std::find(known.assumed.begin(), known.assumed.end(), assumed));
  by_uid_.erase(assumed->uid);
  assumed_.erase(assumed);
  changed(known);
}

void Fleet::forget(const std::string& uid) {
  if (const auto found = by_uid_.find(uid); found != by_uid_.end()) forget(found->second);
}

void Fleet::forget_old(double now_s) {
  while (!assumed_.empty() && assumed_.front().until_s <= now_s) forget(assumed_.begin());
}

void Fleet::forget_shown(const model::Snapshot& snapshot) {
  if (assumed_.empty()) return;
  for (const model::Workload& workload : snapshot.workloads)
    if (const auto uid = kubernetes::pod_uid_of(workload.id)) forget(*uid);
}

bool Fleet::drop_stalest(double now_s) {
  const auto stalest = std::min_element(by_name_.begin(), by_name_.end(), [&](const auto& a, const auto& b) {
    return hosts_[a.second].arrived_s < hosts_[b.second].arrived_s;
  });
  if (stalest == by_name_.end() || is_fresh(hosts_[stalest->second], now_s)) return false;
  Known& known = hosts_[stalest->second];
  while (!known.assumed.empty()) forget(known.assumed.back());
  bytes_ -= known.bytes;
  known = Known();
  free_.push_back(stalest->second);
  by_name_.erase(stalest);
  return true;
}

// For `bytes` of the host, in place of those that are kept of it.
model::Result<void> Fleet::make_room(const std::string& host, std::size_t bytes, double now_s) {
  const auto before = [&] {
    const auto found = by_name_.find(host);
    return found == by_name_.end() ? 0 : hosts_[found->second].bytes;
  };
  while ((!by_name_.contains(host) && by_name_.size() >= settings_.max_hosts) ||
         bytes_ - before() + bytes > settings_.max_bytes) {
    if (drop_stalest(now_s)) continue;
    return model::fail(ErrorKind::refused,
                       fmt::format("host {}: {} hosts with {} MiB are known, all of "
                                   "them sent a snapshot in the last {:.4g} s, and {} hosts and {} MiB are "
                                   "the most; the host counts as unknown",
                                   host, by_name_.size(), bytes_ >> 20, settings_.max_age_s,
                                   settings_.max_hosts, settings_.max_bytes >> 20));
  }
  return {};
}

Fleet::Known& Fleet::entry_of(const std::string& host) {
  if (const auto found = by_name_.find(host); found != by_name_.end()) return hosts_[found->second];
  std::size_t index = hosts_.size();
  if (free_.empty()) {
    hosts_.emplace_back();
  } else {
    index = free_.back();
    free_.pop_back();
  }
  by_name_.emplace(host, index);
  hosts_[index].name = host;
  hosts_[index].first_version = ++versions_;
  return hosts_[index];
}

model::Result<void> Fleet::take(std::string_view text, double now_s) {
  if (const auto short_enough = check_text(text); !short_enough) return model::fail(short_enough.error());
  const auto host = named_host(text);
  if (host) {
    if (const auto wait_s = rate_.wait_s(*host, now_s)) {
      return model::fail(
          ErrorKind::transient,
          fmt::format("host {} sends snapshots too often: the next one is taken in {:.1f} s, and "
                      "one in {:.4g} s (--pause)",
                      *host, *wait_s, settings_.pause_s));
    }
  }
  auto parsed = model::parse_snapshot(text);
  if (!parsed) return model::fail(parsed.error());
  model::Snapshot& snapshot = parsed->snapshot;
  if (!host || snapshot.host != *host) {
    return model::fail(ErrorKind::invalid_input,
                       "host: the snapshot has to name its host once, as a text without escapes");
  }
  if (const auto bounded = check_bounds(snapshot, settings_.policies); !bounded)
    return model::fail(bounded.error());
  rate_.count(snapshot.host, now_s);
  // A berthd that hangs, and a timer that goes on sending its last snapshot.
  if (const auto found = by_name_.find(snapshot.host);
      found != by_name_.end() && snapshot.time == hosts_[found->second].time)
    return {};
  const std::size_t bytes = kept_bytes(snapshot);
  if (const auto room = make_room(snapshot.host, bytes, now_s); !room) return model::fail(room.error());
  for (auto& [name, profile] : snapshot.services) profile.learned.reset();  // words for people
  policies::Host shown(snapshot, settings_.policies);
  policies::take_promised(shown, snapshot.pending);
  Known& known = entry_of(snapshot.host);
  bytes_ += bytes - known.bytes;
  known.bytes = bytes;
  known.shown = std::move(shown);
  known.shown_version = ++versions_;
  known.time = snapshot.time;
  known.arrived_s = now_s;
  changed(known);
  forget_old(now_s);
  forget_shown(snapshot);
  return {};
}

Fleet::Places& Fleet::places_for(const model::PendingWorkload& request) {
  std::string kind = kind_of(request);
  const auto found = std::find_if(places_.begin(), places_.end(),
                                  [&](const Places& places) { return places.request == kind; });
  if (found != places_.end()) {
    places_.splice(places_.begin(), places_, found);
  } else {
    places_.push_front({.request = std::move(kind), .shown = {}, .expected = {}});
    if (places_.size() > kMaxKinds) places_.pop_back();
  }
  places_.front().shown.resize(hosts_.size());
  places_.front().expected.resize(hosts_.size());
  return places_.front();
}

std::optional<double> Fleet::end_of_question() const {
  if (!settings_.clock) return std::nullopt;
  return settings_.clock() + settings_.question_s;
}

bool Fleet::is_over(std::optional<double> end_s) const { return end_s && settings_.clock() >= *end_s; }

const Fleet::Judged* Fleet::shown_place(Places& places, std::size_t host,
                                        const model::PendingWorkload& request, std::optional<double> end_s) {
  Known& known = hosts_[host];
  Judged& kept = places.shown[host];
  if (kept.version == known.shown_version) return &kept;
  if (is_over(end_s)) return kept.version >= known.first_version ? &kept : nullptr;
  kept = judged(policies::best_place(request, *known.shown), known.shown_version);
  return &kept;
}

const Fleet::Judged* Fleet::expected_place(Places& places, std::size_t host,
                                           const model::PendingWorkload& request,
                                           std::optional<double> end_s) {
  Known& known = hosts_[host];
  if (known.assumed.empty()) return shown_place(places, host, request, end_s);
  Judged& kept = places.expected[host];
  if (kept.version == known.expected_version) return &kept;
  if (is_over(end_s)) {
    return kept.version >= known.first_version ? &kept : shown_place(places, host, request, end_s);
  }
  kept = judged(policies::best_place(request, expected_on(known)), known.expected_version);
  return &kept;
}

Filtered Fleet::filter(const Question& question, double now_s) {
  forget_old(now_s);
  Filtered filtered;
  if (!question.pod.request) {
    filtered.passed = question.nodes;
    return filtered;
  }
  // The scheduler asks again about a pod that it could not bind.
  forget(question.pod.uid);
  Places& places = places_for(*question.pod.request);
  const auto end_s = end_of_question();
  for (const std::string& node : question.nodes) {
    const auto host = fresh_host(node, now_s);
    if (!host) {
      filtered.passed.push_back(node);
      continue;
    }
    const Judged* place = shown_place(places, *host, *question.pod.request, end_s);
    if (place == nullptr || place->order)
      filtered.passed.push_back(node);
    else
      filtered.failed.emplace(node, "berth: " + place->rejection);
  }
  // The scheduler takes a single node, and asks no more about it.
  if (filtered.passed.size() == 1) {
    if (const auto host = fresh_host(filtered.passed.front(), now_s))
      assume(question.pod.uid, *host, *question.pod.request, now_s);
  }
  return filtered;
}

void Fleet::assume(const std::string& uid, std::size_t host, const model::PendingWorkload& request,
                   double now_s) {
  Known& known = hosts_[host];
  if (known.assumed.size() >= kMaxAssumedOnHost) return;
  if (assumed_.size() >= kMaxAssumed) forget(assumed_.begin());
  const bool first = known.assumed.empty();
  assumed_.push_back({.uid = uid, .host = host, .until_s = now_s + settings_.hold_s, .request = request});
  by_uid_.emplace(uid, std::prev(assumed_.end()));
  known.assumed.push_back(std::prev(assumed_.end()));
  // Otherwise it is made again when it is next asked for.
  if (first) known.expected = known.shown;
  if (known.expected) place(*known.expected, request);
  known.expected_version = ++versions_;
}

std::vector<Points> Fleet::prioritize(const Question& question, double now_s) {
  forget_old(now_s);
  std::vector<Points> points;
  for (const std::string& node : question.nodes) points.push_back({.node = node, .score = kNeutral});
  if (!question.pod.request) return points;
  forget(question.pod.uid);

  struct Ranked {
    policies::PlaceOrder order;
    std::size_t point = 0;
    std::size_t host = 0;
  };
  std::vector<Ranked> ranked;
  Places& places = places_for(*question.pod.request);
  const auto end_s = end_of_question();
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto host = fresh_host(points[i].node, now_s);
    if (!host) continue;
    const Judged* place = expected_place(places, *host, *question.pod.request, end_s);
    if (place == nullptr) continue;
    if (place->order)
      ranked.push_back({.order = *place->order, .point = i, .host = *host});
    else
      points[i].score = 0;
  }
  std::sort(ranked.begin(), ranked.end(), [&](const Ranked& a, const Ranked& b) {
    return a.order != b.order ? a.order < b.order : points[a.point].node < points[b.point].node;
  });
  for (std::size_t i = 0; i < ranked.size(); ++i) points[ranked[i].point].score = points_of(i, ranked.size());
  if (!ranked.empty()) assume(question.pod.uid, ranked.front().host, *question.pod.request, now_s);
  return points;
}

std::vector<Fleet::Age> Fleet::ages(double now_s, std::size_t most) const {
  std::vector<std::pair<double, const std::string*>> arrived;
  for (const auto& [name, host] : by_name_) arrived.emplace_back(hosts_[host].arrived_s, &name);
  const auto end = arrived.begin() + static_cast<std::ptrdiff_t>(std::min(most, arrived.size()));
  std::partial_sort(arrived.begin(), end, arrived.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : *a.second < *b.second;
  });
  std::vector<Age> ages;
  for (auto each = arrived.begin(); each != end; ++each)
    ages.push_back({.host = *each->second, .age_s = now_s - each->first});
  return ages;
}

}  // namespace berth::extender
