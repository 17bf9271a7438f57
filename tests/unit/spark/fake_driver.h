// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace berth::spark::test {

struct FakeTask {
  std::string executor = "0";
  std::string status = "SUCCESS";
  double run_ms = 1000;
  std::uint64_t input = 0;
  std::uint64_t shuffle_read = 0;
  int partition = -1;  // -1: as many as come before it
};

struct FakeStage {
  int id = 0;
  int attempt = 0;
  std::string status = "COMPLETE";
  int tasks = 0;
  std::uint64_t shuffle_write = 0;
  std::vector<FakeTask> list;     // in the order of being launched
  int rdd = -1;                   // the RDD that it computes; -1: one of its own
  std::vector<int> through = {};  // other RDDs
};

// A kept partition.
struct FakeBlock {
  int partition = 0;
  std::vector<std::string> executors;
  std::uint64_t disk = 0;
};

// Answers as the web server of a Spark 3.5 driver does, with the members that its REST API documents.
struct FakeDriver {
  std::string id = "app-20261121101500-0000";
  std::string attempt;
  std::int64_t started_ms = 1'790'000'000'000;
  bool completed = false;
  std::string version = "3.5.3";
  std::vector<FakeStage> stages;
  std::vector<std::vector<int>> jobs;
  std::map<int, std::string> job_status;         // by number; the others run
  std::map<int, int> cached;                     // RDD -> partitions that are kept
  std::map<int, std::vector<FakeBlock>> blocks;  // RDD -> the same, one by one
  int rdd_partitions = 4;                        // of each RDD
  std::vector<std::pair<std::string, std::string>> properties;
  std::map<std::string, std::string> instead;  // path below the application -> body
  int page_limit = 1'000'000;                  // a driver may give fewer tasks than asked for

  std::vector<std::string> asked;  // paths below the application, query included
  std::size_t tasks_given = 0;

  // As berth::spark::Get, at whatever host.
  model::Result<std::string> get(const std::string& url);

  std::string applications() const;

 private:
  std::string stages_json(const std::string& query) const;
  std::string tasks_json(const std::string& path);
};

}  // namespace berth::spark::test
