// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "integrations/berth.h"
#include "integrations/kubernetes/api.h"
#include "integrations/kubernetes/failure.h"
#include "integrations/kubernetes/pod.h"

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace berth::kubernetes {

using integrations::Berth;

// More pods of one node are not looked at. Kubernetes means a node to have 110.
inline constexpr std::size_t kMaxPods = 1000;
// No request of a turn begins later than this after the first one: figures of the node wait meanwhile.
inline constexpr double kLongestTurn_s = 10;

// A state that is this much older than two ticks of berthd no longer moves. berth-kube itself may be that
// late.
inline constexpr double kLatestState_s = kLongestTurn_s;
// A pod is evicted for a need once so many states that berthd wrote after the wanted time have shown it.
inline constexpr unsigned kStatesAfterTheTime = 2;

// So many pods of one owner are moved away from the node in so long. A task that is late everywhere, or says
// so, would move for ever.
inline constexpr std::size_t kMostMoves = 3;
inline constexpr double kMovesCount_s = 24 * 3600;

// Tells Kubernetes of pods that berth ends, or that should run elsewhere (docs/clusters.md). Each gets an
// Event. If it is wished, pods of either kind are evicted through the Eviction API. It asks for the node's
// pods only while there is something to tell. It keeps nothing over a restart: the API server knows an Event
// that it has already.
//
// It evicts by states that move alone. A berthd that hangs leaves its last state behind, and that one may be
// wrong by now. So time counts between states of different times, and begins anew after a silence or a gap.
class Reporter {
 public:
  struct Settings {
    std::string node = {};
    bool events = true;
    bool evict = false;         // pods that should run elsewhere
    bool evict_ended = false;   // pods that berth ends, at once
    double evict_after_s = 60;  // the time for which that has to hold, and between two such requests
  };

  // `api` outlives the reporter.
  Reporter(Settings settings, Api& api, Surroundings surroundings);

  // Makes the requests that are due.
  void turn(const Berth& berth);

 private:
  // One departure, on its way to the API server.
  struct Task {
    model::Departure departure;
    std::string uid;  // of the pod
    bool reported = false;
    bool evicted = false;
    std::optional<double> wanted_since_s;  // the first state with the need
    unsigned states_after = 0;             // with the need, and written after the wanted time
    unsigned attempts = 0;                 // the ones with fewer go first
  };

  void heed(const Berth& berth, double now_s);
  void begin_anew();
  void follow(const std::vector<model::Departure>& departures, double now_s);
  void count(Task& task, double now_s) const;
  bool event_is_due(const Task& task) const;
  bool eviction_is_due(const Task& task, double now_s) const;
  std::vector<Task*> chosen(const std::function<bool(const Task&)>& is_due);
  bool is_late(double begun_s) const;

  // Looks up the pods of these tasks, and ends the tasks without one.
  std::optional<Failure> find_pods(const std::vector<Task*>& tasks, double begun_s);
  std::optional<Failure> list_pods(double begun_s);
  std::optional<Failure> list_pods(std::size_t limit, double begun_s);

  std::optional<Failure> report(Task& task);
  std::optional<Failure> evict(Task& task);
  bool may_move(const Pod& pod);
  std::optional<Failure> report_all(const std::vector<Task*>& tasks, double begun_s);
  std::optional<Failure> evict_first(const std::vector<Task*>& tasks, double begun_s);
  void note(Backoff& backoff, const char* attempt, const std::optional<Failure>& failure);

  Settings settings_;
  Api* api_;
  Surroundings surroundings_;
  std::map<std::string, Task> tasks_;  // by the departure
  std::map<std::string, Pod> pods_;    // by UID, as last listed
  std::optional<double> state_time_;   // of the last state
  double news_s_ = 0;                  // when that state was seen first
  bool is_news_ = false;               // it was seen first in this turn
  bool heard_ = false;                 // one since the beginning, the last silence or the last gap
  bool moves_ = false;                 // two of them
  Backoff events_;
  Backoff evictions_;
  double next_eviction_s_ = 0;
  std::map<std::string, std::vector<double>> moves_of_;  // by owner: when pods of it were moved
};

}  // namespace berth::kubernetes
