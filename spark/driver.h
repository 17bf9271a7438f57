// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"
#include "model/snapshot.h"
#include "spark/rest.h"

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

  // `endpoints`: where the driver's process listens; one of them is its web server, if it has any.
  explicit Driver(std::vector<std::string> endpoints) : endpoints_(std::move(endpoints)) {}

  // Asks what is to be asked now. `now`: epoch seconds. An error says what the driver did wrong; what was
  // read before stays, and the next round goes on.
  // `taken`: applications that are other drivers', for one that could be at any of many endpoints.
  model::Result<void> read(const Get& get, double now, const std::set<std::string>& taken = {});

  // Empty before it has said so.
  const std::string& app_id() const { return id_; }
  // As of the last round; nullopt before everything that was finished then has been read.
  std::optional<model::SparkApp> app(double now) const;

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

  model::Result<void> find_server(const Get& get, const std::set<std::string>& taken);
  model::Result<void> read_settings(const Get& get);
  model::Result<void> read_stages(const Get& get, double now);
  model::Result<void> read_page(const Get& get, Attempt& attempt, std::size_t offset, int& pages);
  model::Result<void> read_tasks(const Get& get);
  std::map<int, std::vector<int>> parents() const;

  std::vector<std::string> endpoints_;
  std::string base_;  // http://HOST:PORT/api/v1/applications/ID[/ATTEMPT]
  std::string id_;
  double started_ = 0;
  bool settings_read_ = false;
  bool shuffle_service_ = false;
  bool migration_ = false;
  std::map<AttemptId, Attempt> attempts_;
  std::vector<std::vector<int>> jobs_;
  double listed_at_ = 0;
  std::size_t tasks_ = 0;
  bool caught_up_ = false;
};

}  // namespace berth::spark
