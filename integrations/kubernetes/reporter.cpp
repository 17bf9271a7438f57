// SPDX-License-Identifier: Apache-2.0
#include "integrations/kubernetes/reporter.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>

namespace berth::kubernetes {

namespace {

using model::Departure;

// Pods in one answer. An answer that is too long is asked for again with fewer: metadata may have 1 MiB.
constexpr std::array<std::size_t, 3> kPageSizes{100, 10, 1};

std::string key_of(const Departure& departure) {
  return fmt::format("{}\n{:.3f}\n{}\n{}", model::to_string(departure.kind), departure.time,
                     departure.workload, departure.decision);
}

std::string hint_of(int status, const char* right) {
  switch (status) {
    case kUnauthorized:
      return " (the credentials are refused)";
    case kForbidden:
      return fmt::format(
          " (to {}, see the manifest rbac-pods.yaml; a service account must be in the namespace berth-kube)",
          right);
    case kUnprocessable:
      // The policy in rbac-pods.yaml.
      return " (the token or the certificate must be of this node)";
    default:
      return "";
  }
}

// rbac-pods.yaml has the role for evictions, but binds it nowhere.
std::string hint_of_eviction(int status, const std::string& space) {
  if (status != kForbidden) return hint_of(status, "evict pods");
  return fmt::format(
      " (to evict pods of this namespace: kubectl -n {} create rolebinding berth-kube-evict "
      "--clusterrole=berth-kube-evict --group=system:serviceaccounts:berth-kube)",
      space);
}

}  // namespace

Reporter::Reporter(Settings settings, Api& api, Surroundings surroundings)
    : settings_(std::move(settings)), api_(&api), surroundings_(std::move(surroundings)) {}

// Whether berthd goes on writing states.
void Reporter::heed(const Berth& berth, double now_s) {
  is_news_ = false;
  if (!berth.state) return begin_anew();
  if (state_time_ && now_s - news_s_ > 2 * berth.state->interval_s + kLatestState_s) begin_anew();
  is_news_ = !state_time_ || *state_time_ != berth.state->time;
  if (!is_news_) return;
  state_time_ = berth.state->time;
  news_s_ = now_s;
  moves_ = heard_;
  heard_ = true;
}

void Reporter::begin_anew() {
  heard_ = moves_ = false;
  for (auto& [key, task] : tasks_) task.wanted_since_s.reset();
}

// The time for which the need holds, by a new state.
void Reporter::count(Task& task, double now_s) const {
  if (!task.departure.wanted) task.wanted_since_s.reset();
  if (!task.departure.wanted || !is_news_) return;
  if (!task.wanted_since_s) {
    task.wanted_since_s = now_s;
    task.states_after = 0;
  } else if (now_s - *task.wanted_since_s >= settings_.evict_after_s) {
    ++task.states_after;
  }
}

// Keeps one task for each departure of a pod that is told.
void Reporter::follow(const std::vector<Departure>& departures, double now_s) {
  std::map<std::string, Task> tasks;
  for (const Departure& departure : departures) {
    auto uid = pod_uid_of(departure.workload);
    if (!uid) continue;
    const std::string key = key_of(departure);
    const auto before = tasks_.find(key);
    Task task = before == tasks_.end() ? Task() : std::move(before->second);
    task.departure = departure;
    task.uid = std::move(*uid);
    count(task, now_s);
    tasks.insert_or_assign(key, std::move(task));
  }
  tasks_ = std::move(tasks);
  if (tasks_.empty()) pods_.clear();
}

bool Reporter::is_late(double begun_s) const { return surroundings_.clock() - begun_s > kLongestTurn_s; }

bool Reporter::event_is_due(const Task& task) const { return settings_.events && !task.reported; }

bool Reporter::eviction_is_due(const Task& task, double now_s) const {
  if (task.evicted) return false;
  if (task.departure.kind == Departure::Kind::evict) return settings_.evict_ended && moves_;
  return settings_.evict && is_news_ && task.wanted_since_s && task.states_after >= kStatesAfterTheTime &&
         now_s >= next_eviction_s_;
}

std::optional<Failure> Reporter::list_pods(std::size_t limit, double begun_s) {
  std::map<std::string, Pod> pods;
  std::string next;
  do {
    if (is_late(begun_s)) {
      return Failure{.cause = "slow",
                     .message = "the API server takes too long for the list of the node's pods",
                     .retry_after_s = {}};
    }
    const Answer answer = api_->list(pods_path(settings_.node, limit, next));
    if (!is_good(answer)) return failure_of(answer, hint_of(answer.status, "list pods"));
    auto page = parse_pods(answer.body);
    if (!page) {
      return Failure{.cause = "answer",
                     .message = "cannot read the API server's answer: " + page.error().message(),
                     .retry_after_s = {}};
    }
    for (Pod& pod : page->pods) {
      std::string uid = pod.uid;
      if (pods.size() < kMaxPods) pods.insert_or_assign(std::move(uid), std::move(pod));
    }
    // A list without end is no list.
    if (page->pods.empty()) break;
    next = std::move(page->next);
  } while (!next.empty() && pods.size() < kMaxPods);
  pods_ = std::move(pods);
  return std::nullopt;
}

std::optional<Failure> Reporter::list_pods(double begun_s) {
  std::optional<Failure> failure;
  for (const std::size_t limit : kPageSizes) {
    failure = list_pods(limit, begun_s);
    if (!failure || failure->cause != kTooLong) break;
  }
  return failure;
}

std::optional<Failure> Reporter::find_pods(const std::vector<Task*>& tasks, double begun_s) {
  const auto is_unknown = [this](const Task* task) { return pods_.count(task->uid) == 0; };
  if (std::none_of(tasks.begin(), tasks.end(), is_unknown)) return std::nullopt;
  if (auto failure = list_pods(begun_s)) return failure;
  for (Task* task : tasks) {
    if (!is_unknown(task)) continue;
    task->reported = task->evicted = true;
    surroundings_.say(Level::info, fmt::format("{} is not reported: the API server knows no pod of this "
                                               "node with the UID {}",
                                               task->departure.workload, task->uid));
  }
  return std::nullopt;
}

std::optional<Failure> Reporter::report(Task& task) {
  const auto pod = pods_.find(task.uid);
  if (pod == pods_.end()) return std::nullopt;
  const auto& [uid, it] = *pod;
  const Answer answer = api_->create(events_path(it), event_json(it, task.departure, settings_.node));
  // A conflict: it was reported before berth-kube started.
  if (!is_good(answer) && answer.status != kConflict && answer.status != kNotFound)
    return failure_of(answer, hint_of(answer.status, "make Events"));
  task.reported = true;
  if (is_good(answer)) {
    surroundings_.say(Level::info, fmt::format("reported on the pod {}/{}: {}", it.space, it.name,
                                               event_reason(task.departure.kind)));
  }
  return std::nullopt;
}

bool Reporter::may_move(const Pod& pod) {
  const double now_s = surroundings_.clock();
  for (auto& [owner, moves] : moves_of_)
    std::erase_if(moves, [now_s](double at) { return now_s - at >= kMovesCount_s; });
  std::erase_if(moves_of_, [](const auto& entry) { return entry.second.empty(); });
  const auto moves = moves_of_.find(pod.owner);
  return moves == moves_of_.end() || moves->second.size() < kMostMoves;
}

std::optional<Failure> Reporter::evict(Task& task) {
  const auto pod = pods_.find(task.uid);
  if (pod == pods_.end()) return std::nullopt;
  const auto& [uid, it] = *pod;
  const bool ends = task.departure.kind == Departure::Kind::evict;
  if (!ends && !may_move(it)) {
    task.evicted = true;
    surroundings_.say(Level::warning,
                      fmt::format("the pod {}/{} stays: {} pods of its owner were moved in the last day, and "
                                  "that did not help; look at its deadline and its progress",
                                  it.space, it.name, kMostMoves));
    return std::nullopt;
  }
  const Answer answer = api_->create(eviction_path(it), eviction_json(it));
  // The pod is gone, or another one has its name.
  const bool gone = answer.status == kNotFound || answer.status == kConflict;
  if (!is_good(answer) && !gone) return failure_of(answer, hint_of_eviction(answer.status, it.space));
  task.evicted = true;
  if (gone) return std::nullopt;
  if (!ends) {
    next_eviction_s_ = surroundings_.clock() + settings_.evict_after_s;
    // Nothing makes a pod without an owner again.
    if (!it.owner.empty()) moves_of_[it.owner].push_back(surroundings_.clock());
  }
  surroundings_.say(Level::info,
                    fmt::format("evicted the pod {}/{}, which {}: {}", it.space, it.name,
                                ends ? "berth ends" : "should run on another node", task.departure.reason));
  return std::nullopt;
}

std::optional<Failure> Reporter::report_all(const std::vector<Task*>& tasks, double begun_s) {
  if (auto failure = find_pods(tasks, begun_s)) return failure;
  for (Task* task : tasks) {
    if (is_late(begun_s)) break;
    auto failure = report(*task);
    if (!failure) continue;
    ++task->attempts;
    return failure;
  }
  return std::nullopt;
}

// All pods that berth ends. Of the others one: without this pod, they may have room.
std::optional<Failure> Reporter::evict_first(const std::vector<Task*>& tasks, double begun_s) {
  if (auto failure = find_pods(tasks, begun_s)) return failure;
  for (Task* task : tasks) {
    if (task->evicted) continue;
    auto failure = evict(*task);
    if (failure) ++task->attempts;
    if (failure || task->departure.kind != Departure::Kind::evict || is_late(begun_s)) return failure;
  }
  return std::nullopt;
}

// The tasks for which it is time: those that failed least often first, then the oldest.
std::vector<Reporter::Task*> Reporter::chosen(const std::function<bool(const Task&)>& is_due) {
  std::vector<Task*> tasks;
  for (auto& [key, task] : tasks_)
    if (is_due(task)) tasks.push_back(&task);
  std::stable_sort(tasks.begin(), tasks.end(), [](const Task* a, const Task* b) {
    return std::pair(a->attempts, a->departure.time) < std::pair(b->attempts, b->departure.time);
  });
  return tasks;
}

void Reporter::note(Backoff& backoff, const char* attempt, const std::optional<Failure>& failure) {
  if (!failure) {
    backoff.succeeded();
  } else if (const auto wait_s = backoff.failed(*failure, surroundings_)) {
    surroundings_.say(Level::warning, fmt::format("cannot {}, and tries again, {:.0f} s apart at most: {}",
                                                  attempt, *wait_s, failure->message));
  }
}

void Reporter::turn(const Berth& berth) {
  const double begun_s = surroundings_.clock();
  heed(berth, begun_s);
  if (!berth.state) return;
  follow(berth.state->departures, begun_s);
  if (tasks_.empty()) return;
  const auto events = chosen([&](const Task& task) { return event_is_due(task); });
  if (!events.empty() && !events_.waits(begun_s))
    note(events_, "report on pods", report_all(events, begun_s));
  auto evictions = chosen([&](const Task& task) { return eviction_is_due(task, begun_s); });
  std::stable_partition(evictions.begin(), evictions.end(),
                        [](const Task* task) { return task->departure.kind == Departure::Kind::evict; });
  if (!evictions.empty() && !evictions_.waits(begun_s) && !is_late(begun_s))
    note(evictions_, "evict pods", evict_first(evictions, begun_s));
}

}  // namespace berth::kubernetes
