// SPDX-License-Identifier: Apache-2.0
#include "policies/eviction/candidates.h"

#include "model/json.h"
#include "policies/eviction/cost.h"
#include "policies/victim.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/core.h>

namespace berth::policies {

namespace {

using Kind = model::EvictionCandidate::Kind;

// The key of the comparison. A workload that frees no known memory does not help, and comes last.
double rank_key(double cost_s, std::uint64_t bytes, EvictionRank rank) {
  if (bytes == 0) return std::numeric_limits<double>::infinity();
  return rank == EvictionRank::cost ? cost_s : cost_s / static_cast<double>(bytes);
}

// nullopt for a workload that does not help.
std::optional<double> known(double key) { return std::isfinite(key) ? std::optional(key) : std::nullopt; }

// An application's workloads on this host, or one workload without an application.
struct Group {
  std::string name;
  std::optional<std::string> app;
  std::vector<const model::Workload*> members;
  double cost_s = 0;
  std::uint64_t bytes = 0;
};

// The order of eviction: ascending by key, executors before drivers of the same, larger ones first, by id.
struct Turn {
  double key = 0;
  bool driver = false;
  std::uint64_t bytes = 0;
  std::string id;

  friend bool operator<(const Turn& a, const Turn& b) {
    return std::tie(a.key, a.driver, b.bytes, a.id) < std::tie(b.key, b.driver, a.bytes, b.id);
  }
};

// The loss of work whose progress is not known. The published order goes by CPU time.
double unknown_loss(const model::Workload& workload, double now, EvictionRank rank) {
  return rank == EvictionRank::cost ? cpu_seconds_used(workload, now) : loss_outside_spark(workload, now);
}

std::vector<Group> groups_of(const model::Snapshot& snapshot, Priced priced, EvictionRank rank) {
  std::map<std::string, Group> of_apps;
  std::vector<Group> groups;
  for (const model::Workload& workload : snapshot.workloads) {
    if (workload.workload_class != model::WorkloadClass::best_effort || workload.spared) continue;
    if (workload.spark) {
      Group& group = of_apps[workload.spark->app];
      group.name = workload.spark->app;
      group.app = workload.spark->app;
      group.members.push_back(&workload);
      group.bytes = std::min(group.bytes + memory_in_use(workload), model::kMaxBytes);
    } else if (priced == Priced::all) {
      groups.push_back({.name = workload.id,
                        .app = std::nullopt,
                        .members = {&workload},
                        .cost_s = unknown_loss(workload, snapshot.time, rank),
                        .bytes = memory_in_use(workload)});
    }
  }
  for (auto& [id, group] : of_apps) groups.push_back(std::move(group));
  return groups;
}

class Order {
 public:
  Order(const model::Snapshot& snapshot, const EvictionSettings& settings, double delta)
      : now_(snapshot.time), delta_(delta), settings_(settings) {
    for (const model::SparkApp& app : snapshot.spark_apps) {
      apps_.emplace(app.id, &app);
      out_.apps.emplace(app.id, app_figures(app, settings, delta));
    }
  }

  Candidates make(std::vector<Group> groups) {
    for (Group& group : groups) {
      if (group.app) take_app(group);
    }
    if (settings_.rank == EvictionRank::loss_per_byte) {
      take_one_by_one(groups);
      return std::move(out_);
    }
    std::sort(groups.begin(), groups.end(), [this](const Group& a, const Group& b) {
      return std::make_tuple(rank_key(a.cost_s, a.bytes, settings_.rank), std::cref(a.name),
                             a.app.has_value()) < std::make_tuple(rank_key(b.cost_s, b.bytes, settings_.rank),
                                                                  std::cref(b.name), b.app.has_value());
    });
    for (const Group& group : groups) take_members(group);
    return std::move(out_);
  }

 private:
  void take_app(Group& group) {
    const auto figures = out_.apps.find(*group.app);
    if (figures == out_.apps.end()) {  // its driver could not be asked
      for (const model::Workload* member : group.members)
        group.cost_s += unknown_loss(*member, now_, settings_.rank);
      return;
    }
    group.cost_s = figures->second.cost_s;
    figures->second.frees_bytes = group.bytes;
    if (group.bytes > 0) figures->second.cost_per_byte = group.cost_s / static_cast<double>(group.bytes);
  }

  model::EvictionCandidate candidate_of(const Group& group, const model::Workload& workload) {
    model::EvictionCandidate made;
    made.app = group.app;
    made.frees_bytes = memory_in_use(workload);
    if (workload.spark) {
      made.kind = workload.spark->role == model::SparkRole::driver ? Kind::driver : Kind::executor;
    }
    const auto app = group.app ? apps_.find(*group.app) : apps_.end();
    if (app == apps_.end()) {
      made.cost_s = unknown_loss(workload, now_, settings_.rank);
      const double used_s = cpu_seconds_used(workload, now_);
      made.reason = fmt::format("{:.4g} CPU seconds used so far", used_s);
      if (made.cost_s > used_s) made.reason += fmt::format(", {:.4g} s with its age", made.cost_s);
      if (group.app) made.reason += "; its application is unknown";
    } else if (made.kind == Kind::driver) {
      made.cost_s = group.cost_s;
      made.reason = fmt::format("its whole application would be lost: {:.4g} s", made.cost_s);
    } else {
      price_executor(*app->second, workload.spark->executor.value_or(""), made);
    }
    return made;
  }

  void price_executor(const model::SparkApp& app, const std::string& executor,
                      model::EvictionCandidate& made) {
    double kept_s = 0;
    auto [losses, fresh] = losses_.try_emplace(app.id);
    if (fresh) losses->second = executor_losses(app, settings_);
    if (const auto loss = losses->second.find(executor); loss != losses->second.end()) {
      made.lost_s = loss->second.lost_s;
      made.running_s = loss->second.running_s;
      kept_s = loss->second.kept_s;
    }
    made.cost_s = made.lost_s + made.running_s;
    made.reason = fmt::format("{:.4g} s of completed tasks{}, and {:.4g} s in running ones", made.lost_s,
                              what_is_lost(app, made.lost_s, kept_s), made.running_s);
  }

  static std::string what_is_lost(const model::SparkApp& app, double lost_s, double kept_s) {
    const char* how = app.shuffle_service ? ", because the shuffle service keeps their output"
                      : app.migration     ? ", or the move of their output"
                                          : ", to be computed again";
    if (kept_s <= 0) return how;
    if (app.shuffle_service || kept_s >= lost_s) return ", which only this executor keeps for later stages";
    return fmt::format(", {:.4g} s of it kept for later stages only by this executor{}", kept_s, how);
  }

  // While demand climbs, an application with a long remaining time costs less. Each of its executors costs
  // less by its part of that. Seconds for each byte that the application holds here.
  double stays_per_byte(const Group& group) const {
    const auto figures = group.app ? out_.apps.find(*group.app) : out_.apps.end();
    if (figures == out_.apps.end() || group.bytes == 0) return 0;
    return delta_ * figures->second.remaining_s.value_or(0) / static_cast<double>(group.bytes);
  }

  void take_one_by_one(const std::vector<Group>& groups) {
    std::vector<Turn> turns;
    for (const Group& group : groups) {
      const std::size_t first = turns.size();
      const double less = stays_per_byte(group);
      double dearest = -std::numeric_limits<double>::infinity();  // of its executors
      for (const model::Workload* workload : group.members) {
        model::EvictionCandidate candidate = candidate_of(group, *workload);
        double key =
            rank_key(std::max(candidate.cost_s, kLeastCost_s), candidate.frees_bytes, settings_.rank);
        const bool driver = candidate.kind == Kind::driver;
        if (!driver) {
          key -= less;
          dearest = std::max(dearest, key);
          if (less > 0 && candidate.frees_bytes > 0)
            candidate.reason += fmt::format("; {:.4g} s less, because its application would stay long",
                                            less * static_cast<double>(candidate.frees_bytes));
        }
        turns.push_back({key, driver, candidate.frees_bytes, workload->id});
        out_.by_workload.emplace(workload->id, std::move(candidate));
      }
      for (std::size_t i = first; i < turns.size(); ++i)
        if (turns[i].driver) turns[i].key = std::max(turns[i].key, dearest);
    }
    std::sort(turns.begin(), turns.end());
    for (Turn& turn : turns) {
      out_.by_workload.at(turn.id).rank_key = known(turn.key);
      out_.order.push_back(std::move(turn.id));
    }
  }

  void take_members(const Group& group) {
    const auto group_key = known(rank_key(group.cost_s, group.bytes, settings_.rank));
    using Entry = std::tuple<bool, double, std::string, model::EvictionCandidate>;
    std::vector<Entry> members;
    for (const model::Workload* workload : group.members) {
      model::EvictionCandidate candidate = candidate_of(group, *workload);
      candidate.rank_key = group_key;
      const double key = rank_key(candidate.cost_s, candidate.frees_bytes, settings_.rank);
      members.emplace_back(candidate.kind == Kind::driver, key, workload->id, std::move(candidate));
    }
    std::sort(members.begin(), members.end(), [](const Entry& a, const Entry& b) {
      return std::tie(std::get<0>(a), std::get<1>(a), std::get<2>(a)) <
             std::tie(std::get<0>(b), std::get<1>(b), std::get<2>(b));
    });
    for (Entry& member : members) {
      out_.order.push_back(std::get<2>(member));
      out_.by_workload.emplace(std::get<2>(member), std::move(std::get<3>(member)));
    }
  }

  double now_;
  double delta_;
  const EvictionSettings& settings_;
  std::map<std::string, const model::SparkApp*> apps_;
  std::map<std::string, std::map<std::string, ExecutorLoss>> losses_;
  Candidates out_;
};

}  // namespace

Candidates candidates_of(const model::Snapshot& snapshot, const EvictionSettings& settings, double delta,
                         Priced priced) {
  return Order(snapshot, settings, delta).make(groups_of(snapshot, priced, settings.rank));
}

}  // namespace berth::policies
