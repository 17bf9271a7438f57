// SPDX-License-Identifier: Apache-2.0
// Parses the useful part of the answers of a driver's REST API (Spark's docs/monitoring.md; Spark 3 and 4). A
// driver is any user's program. So an id, a name or a list that is missing, of a wrong type or impossible is
// an error that names it. A clock, a count or an amount that is odd is left out alone, or cut to its limit: a
// clock that was set back must not hide an application. Unknown members are passed over without being copied.
// Each list has a limit: a longer one is an error, too, where no other rule is given.
#pragma once

#include "model/error.h"
#include "spark/names.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace berth::spark {

struct RestApplication {
  std::string id;
  std::string attempt;            // empty where the resource manager has none
  std::optional<double> started;  // epoch seconds; nullopt where it is not told
  std::string version;            // of Spark: "3.5.3"; empty where it is not told
};
// GET /api/v1/applications; the running ones, two at most: a driver has one.
model::Result<std::vector<RestApplication>> parse_applications(std::string_view text);

struct RestStage {
  enum class Status { pending, active, complete, failed, skipped };
  int id = 0;
  int attempt = 0;
  Status status = Status::pending;
  int tasks = 0;      // 1 at least
  int completed = 0;  // partitions
  std::uint64_t shuffle_write_bytes = 0;
  int rdd = -1;           // the RDD that it computes; -1 where it is not told
  std::vector<int> rdds;  // all RDDs that it goes through, that one first
};
inline constexpr std::size_t kMostStages = 20'000;
inline constexpr std::size_t kMostRddIds = 500'000;  // of all stages together
// GET .../stages; without stages that have no task.
model::Result<std::vector<RestStage>> parse_stages(std::string_view text);

// A partition that executors keep.
struct RestBlock {
  int partition = 0;
  // The number of the only executor that has it; nullopt where none has it, or several have.
  std::optional<std::uint32_t> alone;
  bool on_disk = false;  // of an executor
  friend bool operator==(const RestBlock&, const RestBlock&) = default;
};

struct RestRdd {
  int id = 0;
  int partitions = 0;
  std::optional<std::vector<RestBlock>> blocks = {};  // nullopt where their places are not told
  friend bool operator==(const RestRdd&, const RestRdd&) = default;
};
inline constexpr std::size_t kMostRdds = 200;       // further ones are passed over
inline constexpr std::size_t kMostBlocks = 50'000;  // of all RDDs together
// GET .../storage/rdd: the RDDs whose partitions executors keep. Adds their names to `executors`.
model::Result<std::vector<RestRdd>> parse_cached(std::string_view text, Names& executors);

struct RestJob {
  int id = -1;              // -1 where it is not told
  bool over = false;        // with any outcome
  std::vector<int> stages;  // ascending
};
inline constexpr std::size_t kMostJobs = 20'000;
inline constexpr std::size_t kMostStagesOfJobs = 200'000;  // of all jobs together
// GET .../jobs.
model::Result<std::vector<RestJob>> parse_jobs(std::string_view text);

// Small, as berth keeps one for each task.
struct RestTask {
  enum class Status : std::uint8_t { running, succeeded, other };
  std::uint64_t input_bytes = 0;
  // Of a running one, so far; negative where it is not told (kUntold).
  double run_s = kUntold;
  static constexpr double kUntold = -1;  // an optional would take another 8 bytes
  int partition = 0;
  std::uint32_t executor = 0;  // its number
  Status status = Status::other;
  bool finished = false;  // with any outcome
};
// GET .../stages/ID/ATTEMPT/taskList, in its order: the order of launching. The first `most`; more are passed
// over. Adds their names to `executors`.
model::Result<std::vector<RestTask>> parse_tasks(std::string_view text, std::size_t most, Names& executors);

// Longer values of properties are an error, as no path is longer (PATH_MAX).
inline constexpr std::size_t kMostPropertyBytes = 4096;
// GET .../environment: those of sparkProperties that are in `names`.
model::Result<std::map<std::string, std::string>> parse_properties(std::string_view text,
                                                                   const std::set<std::string>& names);

}  // namespace berth::spark
