// SPDX-License-Identifier: Apache-2.0
// What a driver's REST API answers, as far as it is of use (Spark's docs/monitoring.md; Spark 3 and 4). A
// driver is any user's program: what is missing, of a wrong type or impossible is an error that names it, and
// unknown members are ignored.
#pragma once

#include "model/error.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::spark {

struct RestApplication {
  std::string id;
  std::string attempt;  // empty where the resource manager knows none
  double started = 0;   // epoch seconds
  std::string version;  // of Spark: "3.5.3"; empty where it does not say
};
// GET /api/v1/applications; those that run.
model::Result<std::vector<RestApplication>> parse_applications(std::string_view text);

struct RestStage {
  enum class Status { pending, active, complete, failed, skipped };
  int id = 0;
  int attempt = 0;
  Status status = Status::pending;
  int tasks = 0;      // 1 at least
  int completed = 0;  // partitions
  std::uint64_t shuffle_write_bytes = 0;
  int rdd = -1;           // that it computes; -1 where it does not say
  std::vector<int> rdds;  // all that it goes through, that one first
};
// GET .../stages; without stages of no task.
model::Result<std::vector<RestStage>> parse_stages(std::string_view text);

// A partition that is kept.
struct RestBlock {
  int partition = 0;
  std::vector<std::string> executors;  // each has all of it
  std::uint64_t disk_bytes = 0;        // of all of them together
  friend bool operator==(const RestBlock&, const RestBlock&) = default;
};

struct RestRdd {
  int id = 0;
  int partitions = 0;
  std::optional<std::vector<RestBlock>> blocks = {};  // nullopt where it does not say where they are
  friend bool operator==(const RestRdd&, const RestRdd&) = default;
};
// GET .../storage/rdd: those of which partitions are kept on executors.
model::Result<std::vector<RestRdd>> parse_cached(std::string_view text);

struct RestJob {
  int id = -1;              // -1 where it does not say
  bool over = false;        // whatever came of it
  std::vector<int> stages;  // ascending
};
// GET .../jobs.
model::Result<std::vector<RestJob>> parse_jobs(std::string_view text);

struct RestTask {
  enum class Status { running, succeeded, other };
  int partition = 0;
  Status status = Status::other;
  std::string executor;
  double run_s = 0;  // of a running one, so far
  std::uint64_t input_bytes = 0;
  bool finished = false;  // whatever came of it
};
// GET .../stages/ID/ATTEMPT/taskList, in its order: that of being launched.
model::Result<std::vector<RestTask>> parse_tasks(std::string_view text);

// GET .../environment: sparkProperties.
model::Result<std::map<std::string, std::string>> parse_properties(std::string_view text);

}  // namespace berth::spark
