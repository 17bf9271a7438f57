// SPDX-License-Identifier: Apache-2.0
// The question that berthd puts to berth-sparkd, and its answer (docs/spark.md). berthd knows the processes.
// berth-sparkd asks their web servers, and reads everything that strangers write.
#pragma once

#include "model/error.h"
#include "model/snapshot.h"
#include "os/file_descriptor.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace berth::spark {

// One process of this boot: its pid, and field 22 of /proc/PID/stat.
using ProcessId = std::pair<pid_t, std::uint64_t>;

// A driver's process, and where it can be asked.
struct DriverPlace {
  static constexpr std::size_t kMostEndpoints = 32;  // that are tried; a driver listens at four or five

  ProcessId process;
  std::optional<uid_t> user;
  std::vector<std::string> endpoints;  // "127.0.0.1:4040"; one of them is its web server, if it has any
  // The endpoints may belong to another driver of this user.
  bool guessed = false;
  friend bool operator==(const DriverPlace&, const DriverPlace&) = default;
};

struct Question {
  double now = 0;                    // epoch seconds
  double wall_ahead_s = 0;           // drivers tell times of the wall clock, which is so far ahead of `now`
  std::vector<DriverPlace> drivers;  // all that run; facts of others are forgotten
  friend bool operator==(const Question&, const Question&) = default;
};

// The facts that a driver told, and its faults. Any user can write a driver: see Claims.
struct DriverFacts {
  // The facts of one application: more of any is no answer.
  static constexpr std::size_t kMostProblems = 3;
  static constexpr std::size_t kMostProblemBytes = 400;

  ProcessId process;
  std::string app_id;                  // empty until the driver has told it
  double read_at = 0;                  // epoch seconds of the last success; 0 before the first one
  std::optional<model::SparkApp> app;  // nullopt until all stages that were finished have been read
  std::optional<model::ProgressReport> progress;
  std::vector<std::string> problems;  // short, without control characters
  friend bool operator==(const DriverFacts&, const DriverFacts&) = default;
};

struct Answer {
  std::vector<DriverFacts> drivers;
  // Whether the next round has open work besides news: a driver was not asked yet, or not at all of its
  // endpoints.
  bool goes_on = false;
  friend bool operator==(const Answer&, const Answer&) = default;
};

// Puts the question. Blocks for as long as the drivers take. An error names the fault of berth-sparkd.
using Ask = std::function<model::Result<Answer>(const Question& question)>;

// Opens a file or directory for reading, wherever a user wants it to be: without being led to anything that
// hangs, or does something when it is opened. Error `gone` where there is none.
using OpenFile = std::function<model::Result<os::FileDescriptor>(const std::filesystem::path& path)>;

// A part of a driver's event log as berth-sparkd gets it: an open file, or the names of the parts in the
// directory of a rolled log (events_...).
struct LogFile {
  os::FileDescriptor file;
  std::optional<std::vector<std::string>> parts;  // set for a directory, which has no `file`
};
// Opens it for berth-sparkd, which has no rights of its own.
using OpenLog = std::function<model::Result<LogFile>(const std::filesystem::path& path)>;

// Of an answer: the values of all applications, in memory. berthd has four copies at most: the answer, the
// observation that follows it, the one before, and the snapshot.
inline constexpr std::size_t kMostAnswerBytes = std::size_t{8} << 20;

}  // namespace berth::spark
