// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "spark/interview.h"
#include "spark/sparkd/budget.h"
#include "spark/sparkd/driver.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

namespace berth::spark {

// Asks drivers. Blocks for as long as they take.
//
// If the address of a driver is not known, its user's servers are tried. Applications of other drivers are
// passed over there.
//
// Drivers are asked in turns. A turn is short, and so is a round. A driver with more to tell goes on in the
// next round, as does a driver that was not asked. Drivers that answer come before the others, in each group
// those first that were asked longest ago. Every second round begins with one of the others. So a thousand
// silent drivers do not keep any other from being heard.
//
// Drivers share one limit of memory by user (Budget). A driver that would need more is refused: its facts are
// forgotten, its problem says so, and it is asked again later.
class Interviewer {
 public:
  using Clock = std::function<double()>;  // monotonic, seconds
  // Opens a part of a driver's event log; see OpenLog.
  using OpenFor =
      std::function<model::Result<LogFile>(const ProcessId& driver, const std::filesystem::path& path)>;

  static constexpr double kTurn_s = 3;          // after that, no work begins that can wait
  static constexpr double kRound_s = 6;         // no turn is begun after that
  static constexpr double kLongestWait_s = 60;  // before a driver that failed is asked again
  // Of all drivers together, with the copies that berthd makes (Driver::bytes). A larger driver is refused.
  static constexpr std::size_t kMostBytes = std::size_t{32} << 20;
  static_assert(kMostBytes / Driver::kCopies <= kMostAnswerBytes);

  // `open`: opens event logs; without it none is read. `most_bytes`: for all drivers together.
  explicit Interviewer(Get get, OpenFor open = {}, Clock clock = steady_clock(),
                       std::size_t most_bytes = kMostBytes);

  static Clock steady_clock();

  // One round.
  Answer ask(const Question& question);

 private:
  struct Known {
    Driver driver;
    DriverPlace place;
    std::uint64_t asked = 0;  // number of its turn, of all turns so far
    double read_at = 0;       // time of the last success
    // Of the wall clock when the driver first told when its application began.
    std::optional<double> wall_ahead_s = {};
    double ask_at = 0;    // not before
    double wait_s = 0;    // doubled with each failure
    std::string problem;  // of the last time
  };

  void take(const Question& question);
  void meet(const DriverPlace& place, double now);
  void ask_one(const ProcessId& id, Known& known, const Question& question, double round_ends);
  model::Result<void> make_room(const ProcessId& id, std::size_t bytes, double now);
  static void wait(Known& known, double now, const std::string& why);
  static DriverFacts facts_of(const Known& known, double now);

  Get get_;
  OpenFor open_;
  Clock clock_;
  std::uint64_t turns_ = 0;
  std::uint64_t rounds_ = 0;
  std::map<ProcessId, Known> drivers_;
  Budget budget_;
};

}  // namespace berth::spark
