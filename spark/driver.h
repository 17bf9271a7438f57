// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"
#include "model/snapshot.h"
#include "spark/event_log.h"
#include "spark/event_log_file.h"
#include "spark/rest.h"
#include "spark/stage_graph.h"

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace berth::spark {

// The body that a URL answers with. Blocks.
using Get = std::function<model::Result<std::string>(const std::string& url)>;

// One running driver, read bit by bit, so that no round costs it more than a few pages: what is finished is
// read once; of a running stage what came since.
class Driver {
 public:
  static constexpr int kPageTasks = 256;              // some 330 KB
  static constexpr int kPagesPerRound = 8;            // of all stages together
  static constexpr std::size_t kMostTasks = 200'000;  // of one application
  static constexpr double kListAgain_s = 30;          // all stages, though none seems to have changed
  static constexpr double kLongestWave_s = 60;        // between reports of progress, where it goes on

  // `endpoints`: where the driver's process listens; one of them is its web server, if it has any. `open`
  // opens its event log, which is read as far as it is `user`'s, as the driver is; without it none is read.
  explicit Driver(std::vector<std::string> endpoints, std::optional<uid_t> user = {}, OpenFile open = {})
      : endpoints_(std::move(endpoints)), user_(user), open_(std::move(open)) {}

  // Asks what is to be asked now, and reads on in its event log. `now`: epoch seconds. An error says what the
  // driver did wrong; what was read before stays, and the next round goes on. `taken`: applications that are
  // other drivers', for one that could be at any of many endpoints. `over`: whether the next round is to go
  // on with what can wait: other endpoints, more pages of tasks.
  model::Result<void> read(
      const Get& get, double now, const std::set<std::string>& taken = {},
      const std::function<bool()>& over = [] { return false; });

  // Empty before it has said so.
  const std::string& app_id() const { return id_; }
  // Whether read() failed only because some endpoints are still to be tried.
  bool searching() const { return id_.empty() && next_endpoint_ > 0; }
  // As of the last round; nullopt before everything that was finished then has been read.
  std::optional<model::SparkApp> app(double now) const;
  // Its completed tasks of all that are known, and when they were counted; nullopt before they are. The end
  // of the application counts as one more, since more may come until then: so this is below 1, and falls
  // where stages appear that nobody knew of. Tasks that were begun together end together, and a rate between
  // two of them would say nothing: where progress goes on, it is not counted again before a task's usual time
  // is over.
  const std::optional<model::ProgressReport>& progress() const { return progress_; }
  // Why its event log is not read though it writes one; empty where it is. Then the order of stages in their
  // jobs stands for what they read.
  const std::string& log_problem() const { return log_problem_; }
  // Why it is not known what its executors keep; empty where it is.
  const std::string& cached_problem() const { return cached_problem_; }

 private:
  // A stage's attempt: its tasks in the order of being launched.
  struct Attempt {
    RestStage stage;
    std::vector<RestTask> tasks;
    std::size_t first_open = 0;  // all before it are finished
    std::size_t next = 0;        // of one that is over: not looked at since it ended
    bool read = false;           // nothing more will come
  };
  using AttemptId = std::pair<int, int>;  // stage, attempt
  // An RDD of which executors keep partitions.
  struct Kept {
    int partitions = 0;
    bool known = false;                // where they are
    std::map<int, std::string> alone;  // by partition: the executor that nobody else has it beside
  };

  model::Result<void> find_server(const Get& get, const std::set<std::string>& taken,
                                  const std::function<bool()>& over);
  model::Result<void> read_settings(const Get& get);
  model::Result<void> read_stages(const Get& get, double now);
  model::Result<void> read_cached(const Get& get, const std::vector<RestStage>& stages);
  model::Result<void> read_page(const Get& get, Attempt& attempt, std::size_t offset, int& pages);
  model::Result<void> read_tasks(const Get& get, const std::function<bool()>& over);
  double usual_task_s() const;
  void count(double now);
  void read_log(double now);
  void draw_graph();
  void forget_oldest(const std::set<AttemptId>& listed);
  void take_jobs(const std::vector<RestJob>& jobs);
  bool is_given_up(const RestStage& newest) const;
  int stood_for_by(int stage) const;
  static std::vector<std::string> keepers(const std::vector<const Kept*>& rdds, int partitions, int partition,
                                          const std::string& ran);

  std::vector<std::string> endpoints_;
  std::optional<uid_t> user_;
  OpenFile open_;
  std::size_t next_endpoint_ = 0;
  std::optional<model::Error> said_;  // by what speaks HTTP there, and is not it
  std::string base_;                  // http://HOST:PORT/api/v1/applications/ID[/ATTEMPT]
  std::string id_;
  std::string attempt_;
  double started_ = 0;
  std::string version_;
  bool settings_read_ = false;
  bool shuffle_service_ = false;
  bool keeps_disk_blocks_ = false;  // the shuffle service, of RDDs too
  bool migration_ = false;
  std::map<AttemptId, Attempt> attempts_;
  std::vector<std::vector<int>> jobs_;  // stages of each
  std::map<int, int> job_of_;           // a stage's first
  std::set<int> going_on_;              // stages of jobs that are not over
  // Of RDDs that executors keep: the stage that computed it, after its number of tasks, negative.
  std::map<int, std::pair<int, int>> cached_by_;
  std::map<int, Kept> kept_;
  std::string cached_problem_;
  std::optional<EventLogFile> log_file_;
  EventLog log_;
  std::string log_problem_;
  double log_again_at_ = 0;  // after a problem
  StageGraph graph_;
  double listed_at_ = 0;
  std::size_t tasks_ = 0;  // of all attempts
  std::int64_t forgotten_partitions_ = 0;
  bool caught_up_ = false;
  std::optional<model::ProgressReport> progress_;
};

}  // namespace berth::spark
