// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"
#include "model/snapshot.h"
#include "spark/interview.h"
#include "spark/names.h"
#include "spark/sparkd/event_log.h"
#include "spark/sparkd/event_log_file.h"
#include "spark/sparkd/rest.h"
#include "spark/sparkd/stage_graph.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace berth::spark {

// Fetches the body of a URL. Blocks.
using Get = std::function<model::Result<std::string>(const std::string& url)>;

// Asks whether a driver's facts may take so much memory in all; an error says why not.
using Room = std::function<model::Result<void>(std::size_t bytes)>;

// One running driver, read in parts, so that no round costs it more than a few pages. Finished stages are
// read once; of a running stage the new tasks are read.
class Driver {
 public:
  static constexpr int kPageTasks = 256;              // some 330 KB
  static constexpr int kPagesPerRound = 8;            // of all stages together
  static constexpr std::size_t kMostTasks = 100'000;  // of one application
  static constexpr std::size_t kMostKeepers = 16;     // kept RDDs of one stage; further ones are passed over
  // The tasks of an application exist once here, and at most so often as values in berthd: in an answer, in
  // the observation that follows it, in the one before, and in the snapshot.
  static constexpr std::size_t kCopies = 4;
  static constexpr double kListAgain_s = 30;  // reads all stages, though none seems to have changed
  // The longest time between reports of progress, while it goes on.
  static constexpr double kLongestWave_s = 60;

  // `endpoints`: where the driver's process listens; one of them is its web server, if it has any. `open`
  // opens its event log; without it no log is read. The log must belong to `user`, the driver's user.
  explicit Driver(std::vector<std::string> endpoints, std::optional<uid_t> user = {}, OpenLog open = {})
      : endpoints_(std::move(endpoints)), user_(user), open_(std::move(open)) {}

  // Asks for the data that is due, and reads on in its event log. `now`: epoch seconds. An error names the
  // driver's fault; earlier data stays, and the next round goes on.
  //
  // `taken`: applications of other drivers. They are skipped where the driver could be at any of many
  // endpoints. `over`: whether work that can wait is left to the next round: other endpoints, more pages of
  // tasks. `room`: called with bytes() as they grow; after an error the driver has forgotten all of its
  // facts.
  model::Result<void> read(
      const Get& get, double now, const std::set<std::string>& taken = {},
      const std::function<bool()>& over = [] { return false; },
      const Room& room = [](std::size_t) { return model::Result<void>(); });
  // Keeps the application and its server, and begins anew with everything else.
  void forget();
  // Memory of its facts with all copies, about; never less than they take.
  std::size_t bytes() const;
  // Whether all stages that were finished have been read.
  bool caught_up() const { return caught_up_; }

  // Empty until the driver has told it.
  const std::string& app_id() const { return id_; }
  // Whether read() failed only because some endpoints are still to be tried.
  bool searching() const { return id_.empty() && next_endpoint_ > 0; }
  // As of the last round; nullopt until all stages that were finished then have been read. `now` is of the
  // clock by which the driver tells when its application began.
  std::optional<model::SparkApp> app(double now) const;
  // The share of completed tasks among all known ones, and the time of the count; nullopt before the first
  // count. More stages may come until the application ends, so the end counts as one more task. So the share
  // is below 1, and falls where new stages appear.
  //
  // Tasks that began together end together, and a rate between two of them would mean nothing. So while
  // progress goes on, the next count comes after a task's usual time.
  const std::optional<model::ProgressReport>& progress() const { return progress_; }
  // Why its event log is not read though it writes one; empty where it is read. Without the log, the parent
  // of a stage is the one before it in its job.
  const std::string& log_problem() const { return log_problem_; }
  // Why it is not known which data its executors keep; empty where it is known.
  const std::string& cached_problem() const { return cached_problem_; }

 private:
  // A stage's attempt: its tasks in the order of being launched.
  struct Attempt {
    RestStage stage;
    std::vector<RestTask> tasks;
    std::size_t first_open = 0;  // all before it are finished
    std::size_t next = 0;        // of a finished stage: first task not read since its end
    bool read = false;           // nothing more will come
  };
  using AttemptId = std::pair<int, int>;  // stage, attempt
  // An RDD of which executors keep partitions.
  struct Kept {
    int partitions = 0;
    bool known = false;                                // whether the places of its partitions are known
    std::vector<std::pair<int, std::uint32_t>> alone;  // by partition: the only executor that has it
  };

  model::Result<void> find_server(const Get& get, const std::set<std::string>& taken,
                                  const std::function<bool()>& over);
  model::Result<void> read_on(const Get& get, double now, const std::set<std::string>& taken,
                              const std::function<bool()>& over, const Room& room);
  model::Result<void> read_settings(const Get& get);
  model::Result<void> read_stages(const Get& get, double now);
  model::Result<void> read_cached(const Get& get, const std::vector<RestStage>& stages);
  model::Result<void> read_page(const Get& get, Attempt& attempt, std::size_t offset, int& pages);
  model::Result<void> read_tasks(const Get& get, const std::function<bool()>& over, const Room& room);
  model::Result<void> fit(const Room& room);
  double usual_task_s() const;
  static double mean_run_s(const std::map<int, const RestTask*>& tasks);
  void count(double now);
  void read_log(double now);
  void draw_graph();
  void forget_oldest(const std::set<AttemptId>& listed);
  void take_jobs(const std::vector<RestJob>& jobs);
  bool is_given_up(const RestStage& newest) const;
  int stood_for_by(int stage) const;
  int job_of(int stage) const;
  bool goes_on(int stage) const;
  std::vector<std::string> keepers(const std::vector<const Kept*>& rdds, int partitions,
                                   const RestTask& task) const;

  std::vector<std::string> endpoints_;
  std::optional<uid_t> user_;
  OpenLog open_;
  std::size_t next_endpoint_ = 0;
  std::optional<model::Error> said_;  // from a server there that speaks HTTP, but is no driver
  std::string base_;                  // http://HOST:PORT/api/v1/applications/ID[/ATTEMPT]
  std::string id_;
  std::string attempt_;
  std::optional<double>
      started_;  // epoch seconds; from the first answer on where the driver does not tell it
  std::string version_;
  bool settings_read_ = false;
  bool shuffle_service_ = false;
  bool remote_shuffle_ = false;     // Celeborn's or Uniffle's servers keep its shuffle output
  bool keeps_disk_blocks_ = false;  // the shuffle service keeps blocks of RDDs too
  bool migration_ = false;
  Names names_;  // of executors
  std::map<AttemptId, Attempt> attempts_;
  std::vector<std::vector<int>> jobs_;       // stages of each
  std::vector<std::pair<int, int>> job_of_;  // stages, ascending, and the first job of each
  std::vector<int> going_on_;                // stages of jobs that still run, ascending
  // By kept RDD: its number of tasks, negative, and the stage that computed it.
  std::map<int, std::pair<int, int>> cached_by_;
  std::map<int, Kept> kept_;
  std::string cached_problem_;
  std::optional<EventLogFile> log_file_;
  EventLog log_;
  std::string log_problem_;
  double log_again_at_ = 0;  // after a problem
  StageGraph graph_;
  std::size_t graph_bytes_ = 0;
  double listed_at_ = 0;
  std::size_t tasks_ = 0;  // of all attempts
  std::int64_t forgotten_partitions_ = 0;
  bool caught_up_ = false;
  std::optional<model::ProgressReport> progress_;
};

}  // namespace berth::spark
