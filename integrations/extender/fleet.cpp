// SPDX-License-Identifier: Apache-2.0
#include "integrations/extender/fleet.h"

#include "model/json.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include <fmt/core.h>

namespace berth::extender {

namespace {

using model::ErrorKind;

constexpr std::size_t kMostKinds = 32;  // of requests whose places are kept
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

// UIDs of pods in the names of cgroups: "kubepods-besteffort-pod1234_abcd.slice", "kubepods/pod1234-abcd".
std::set<std::string> pods_of(const model::Snapshot& snapshot) {
  constexpr std::string_view kPod = "pod";
  constexpr std::size_t kUidBytes = 36;
  std::set<std::string> pods;
  for (const model::Workload& workload : snapshot.workloads) {
    const std::string_view id = workload.id;
    if (id.find("kubepods") == std::string_view::npos) continue;
    for (std::size_t at = id.find(kPod); at != std::string_view::npos; at = id.find(kPod, at + 1)) {
      const bool begins = at > 0 && (id[at - 1] == '-' || id[at - 1] == '/');
      std::string uid(id.substr(std::min(at + kPod.size(), id.size())).substr(0, kUidBytes));
      if (!begins || uid.size() != kUidBytes) continue;
      std::replace(uid.begin(), uid.end(), '_', '-');
      pods.insert(std::move(uid));
    }
  }
  return pods;
}

}  // namespace

bool Fleet::is_fresh(const Known& known, double now_s) const {
  return now_s - known.arrived_s <= settings_.max_age_s;
}

void Fleet::expect_again(std::size_t host) {
  Known& known = hosts_[host];
  known.expected = known.shown;
  known.version = ++versions_;
  for (const Assumed& assumed : assumed_) {
    if (assumed.host != host) continue;
    const auto found = policies::best_place(assumed.request, known.expected);
    if (found.best) known.expected.take(found.best->spot, assumed.request);
  }
}

void Fleet::forget(std::list<Assumed>::iterator assumed) {
  const std::size_t host = assumed->host;
  by_uid_.erase(assumed->uid);
  assumed_.erase(assumed);
  expect_again(host);
}

void Fleet::forget_old(double now_s) {
  while (!assumed_.empty() && assumed_.front().until_s <= now_s) forget(assumed_.begin());
}

void Fleet::forget_shown(const model::Snapshot& snapshot) {
  if (assumed_.empty()) return;
  for (const std::string& uid : pods_of(snapshot)) {
    const auto found = by_uid_.find(uid);
    if (found != by_uid_.end()) forget(found->second);
  }
}

model::Result<void> Fleet::take(std::string_view text, double now_s) {
  const auto parsed = model::parse_snapshot(text);
  if (!parsed) return model::fail(parsed.error());
  const model::Snapshot& snapshot = parsed->snapshot;
  const auto found = by_name_.find(snapshot.host);
  if (found == by_name_.end() && hosts_.size() >= kMaxHosts)
    return model::fail(ErrorKind::refused, fmt::format("{} hosts are known, and no more are", kMaxHosts));
  // A berthd that hangs, and a timer that goes on sending its last snapshot.
  if (found != by_name_.end() && snapshot.time == hosts_[found->second].time) return {};
  policies::Host shown(snapshot, settings_.policies);
  policies::take_promised(shown, snapshot.pending);
  std::size_t host = hosts_.size();
  if (found == by_name_.end()) {
    by_name_.emplace(snapshot.host, host);
    hosts_.push_back({.shown = shown, .expected = shown});
  } else {
    host = found->second;
    hosts_[host].shown = std::move(shown);
  }
  hosts_[host].time = snapshot.time;
  hosts_[host].arrived_s = now_s;
  forget_old(now_s);
  forget_shown(snapshot);
  expect_again(host);
  return {};
}

Fleet::Places& Fleet::places_for(const model::PendingWorkload& request) {
  std::string kind = kind_of(request);
  const auto found = std::find_if(places_.begin(), places_.end(),
                                  [&](const Places& places) { return places.request == kind; });
  if (found != places_.end()) {
    places_.splice(places_.begin(), places_, found);
  } else {
    places_.push_front({.request = std::move(kind), .of_host = {}});
    if (places_.size() > kMostKinds) places_.pop_back();
  }
  places_.front().of_host.resize(hosts_.size());
  return places_.front();
}

const policies::HostPlace& Fleet::place_on(Places& places, std::size_t host,
                                           const model::PendingWorkload& request) {
  Place& kept = places.of_host[host];
  if (kept.version != hosts_[host].version) {
    kept.place = policies::best_place(request, hosts_[host].expected);
    kept.version = hosts_[host].version;
  }
  return kept.place;
}

Filtered Fleet::filter(const Question& question, double now_s) {
  forget_old(now_s);
  Filtered filtered;
  if (!question.pod.request) {
    filtered.passed = question.nodes;
    return filtered;
  }
  // The scheduler asks again about a pod that it could not bind.
  if (const auto before = by_uid_.find(question.pod.uid); before != by_uid_.end()) forget(before->second);
  Places& places = places_for(*question.pod.request);
  for (const std::string& node : question.nodes) {
    const auto known = by_name_.find(node);
    if (known == by_name_.end() || !is_fresh(hosts_[known->second], now_s)) {
      filtered.passed.push_back(node);
      continue;
    }
    const auto& place = place_on(places, known->second, *question.pod.request);
    if (place.best)
      filtered.passed.push_back(node);
    else
      filtered.failed.emplace(node, "berth: " + place.rejection.substr(0, kMaxReasonBytes));
  }
  // The scheduler takes a single node, and asks no more about it.
  if (filtered.passed.size() == 1) {
    const auto known = by_name_.find(filtered.passed.front());
    if (known != by_name_.end() && is_fresh(hosts_[known->second], now_s))
      assume(question.pod.uid, known->second, *question.pod.request, now_s);
  }
  return filtered;
}

void Fleet::assume(const std::string& uid, std::size_t host, const model::PendingWorkload& request,
                   double now_s) {
  if (assumed_.size() >= kMaxAssumed) forget(assumed_.begin());
  assumed_.push_back({.uid = uid, .host = host, .until_s = now_s + settings_.hold_s, .request = request});
  by_uid_.emplace(uid, std::prev(assumed_.end()));
  Known& known = hosts_[host];
  const auto found = policies::best_place(request, known.expected);
  if (found.best) known.expected.take(found.best->spot, request);
  known.version = ++versions_;
}

std::vector<Points> Fleet::prioritize(const Question& question, double now_s) {
  forget_old(now_s);
  std::vector<Points> points;
  for (const std::string& node : question.nodes) points.push_back({.node = node, .score = kNeutral});
  if (!question.pod.request) return points;
  if (const auto before = by_uid_.find(question.pod.uid); before != by_uid_.end()) forget(before->second);

  struct Ranked {
    policies::PlaceOrder order;
    std::size_t point = 0;
    std::size_t host = 0;
  };
  std::vector<Ranked> ranked;
  Places& places = places_for(*question.pod.request);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto known = by_name_.find(points[i].node);
    if (known == by_name_.end() || !is_fresh(hosts_[known->second], now_s)) continue;
    const auto& place = place_on(places, known->second, *question.pod.request);
    if (place.best)
      ranked.push_back({.order = place.best->order, .point = i, .host = known->second});
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
