// SPDX-License-Identifier: Apache-2.0
#include "spark/sparkd/stage_graph.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>

namespace berth::spark {

namespace {

using State = KnownStage::State;

std::map<int, int> stands_for(const std::map<int, KnownStage>& stages,
                              const std::vector<std::vector<int>>& jobs) {
  // Ascending, as the jobs are visited in order. Small: a driver may name a stage in each of many jobs.
  std::map<int, std::vector<std::size_t>> jobs_of;
  for (std::size_t job = 0; job < jobs.size(); ++job) {
    for (const int id : jobs[job]) {
      if (stages.count(id) > 0) jobs_of[id].push_back(job);
    }
  }
  // Two stages of one job compute the same RDD for two shuffles: neither stands for the other.
  const auto share_a_job = [&](int a, int b) {
    const auto& of_a = jobs_of[a];
    const auto& of_b = jobs_of[b];
    return std::any_of(of_a.begin(), of_a.end(),
                       [&](std::size_t job) { return std::binary_search(of_b.begin(), of_b.end(), job); });
  };
  std::map<int, int> found;
  std::map<int, int> writers;  // by RDD, the last one so far
  for (const auto& [id, stage] : stages) {
    if (stage.rdd < 0) continue;
    const auto writer = writers.find(stage.rdd);
    const bool there = writer != writers.end() && !share_a_job(id, writer->second);
    if (stage.state == State::ran) {
      if (there && stage.wrote && stage.tasks < stages.at(writer->second).tasks) {
        found.emplace(id, writer->second);
      } else if (stage.wrote && stage.complete) {
        writers[stage.rdd] = id;
      }
    } else if (there) {
      found.emplace(id, writer->second);
    }
  }
  return found;
}

}  // namespace

StageGraph graph_of(const std::map<int, KnownStage>& stages, const std::vector<std::vector<int>>& jobs,
                    const std::map<int, std::vector<int>>& logged) {
  StageGraph graph{.stands_for = stands_for(stages, jobs), .parents = {}};
  const auto counts = [&](int id) {
    const auto stage = stages.find(id);
    return stage != stages.end() && stage->second.state != State::skipped && graph.stands_for.count(id) == 0;
  };
  // The stage whose output it is; nullopt for an unknown stage.
  const auto resolved = [&](int id) -> std::optional<int> {
    if (const auto other = graph.stands_for.find(id); other != graph.stands_for.end()) return other->second;
    return counts(id) ? std::optional(id) : std::nullopt;
  };
  std::map<int, std::set<int>> parents;
  for (const auto& [id, its] : logged) {
    if (!counts(id)) continue;
    for (const int parent : its) {
      const auto known = resolved(parent);
      if (known && *known < id) parents[id].insert(*known);
    }
  }
  for (const std::vector<int>& job : jobs) {
    std::optional<int> before;
    for (const int id : job) {
      const auto known = resolved(id);
      if (!known) continue;
      if (before && *before < id && *before != *known && counts(id) && logged.count(id) == 0)
        parents[id].insert(*before);
      before = known;
    }
  }
  for (const auto& [id, its] : parents) graph.parents.emplace(id, std::vector<int>(its.begin(), its.end()));
  return graph;
}

}  // namespace berth::spark
