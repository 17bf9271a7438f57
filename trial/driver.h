// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"
#include "model/snapshot.h"
#include "trial/figures.h"
#include "trial/permutation.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace berth::trial {

enum class Side { a, b };
inline const char* to_string(Side side) { return side == Side::a ? "a" : "b"; }

// The windows of a trial, in seconds.
struct Pace {
  double window_s = 60;
  double warm_up_s = 15;    // of each window: its first part, which does not count
  double tick_s = 1;        // between two looks
  std::size_t blocks = 30;  // of two windows, one of each side

  double counted_s() const { return window_s - warm_up_s; }
  double length_s() const { return window_s * 2 * static_cast<double>(blocks); }
};

// Ticks that a window must count at least.
inline constexpr double kFewestTicks = 5;
inline constexpr std::size_t kMostBlocks = 500;
inline constexpr double kLongestWindow_s = 6 * 3600.0;
inline constexpr double kLongestTrial_s = 30 * 86400.0;
// Services with rows of their own. The first ones by name; all count for the host.
inline constexpr std::size_t kMostServices = 100;

// Windows for a trial of `length_s`. `window_s`: 0 for a thirtieth, from 20 to 60 s, or as long as
// kMostBlocks needs. Warm-up is a quarter, or three ticks where that is more. Error refused where the trial
// could tell nothing; it says what would do.
model::Result<Pace> make_pace(double length_s, double window_s, double tick_s);

// The order of the sides in each block, by coin: each side has as many windows, and neither follows a rhythm
// of the host's load. The same for the same seed.
std::vector<std::array<Side, 2>> make_order(std::size_t blocks, std::uint64_t seed);

// Why a trial would measure nothing; nullopt where it would. `with_metric`: the caller has a number of its
// own.
std::optional<std::string> why_useless(const model::Snapshot& snapshot, bool with_metric);

// The host on which a trial runs.
class Host {
 public:
  virtual ~Host() = default;

  // Puts the side's settings in force, for `lease_s` at most without another call.
  virtual model::Result<void> use(Side side, double lease_s) = 0;
  // The state after the last tick, with the samples since the last look.
  virtual model::Result<model::Snapshot> look() = 0;
  // Monotonic seconds.
  virtual double now() = 0;
  // False where the trial is to end at once.
  virtual bool wait(double seconds) = 0;
  // A window begins to count, and will for so long: the caller's command, where there is one, starts.
  virtual void begin_metric(double seconds) = 0;
  // The window ends: the number that the command printed, or why there is none. nullopt without a command.
  virtual std::optional<model::Result<double>> end_metric() = 0;
  // So many windows are over; the present one has `side`.
  virtual void show(std::size_t windows, std::size_t of, Side side, double left_s) = 0;
};

// A measured trial.
struct Measured {
  Pace pace;
  std::vector<std::array<Side, 2>> order;
  std::vector<std::array<Figures, 2>> blocks;  // whole ones; of side a and of side b
  bool interrupted = false;                    // by the user
  std::optional<model::Error> failure;         // why else it ended early
  std::size_t metric_failures = 0;             // windows
  std::optional<std::string> metric_problem;   // of the last of them
};

// Begins window after window. Ends early where the host fails, and where the first block measured nothing or
// the command printed no number in the first window: an hour would not change that.
Measured run(Host& host, const Pace& pace, std::uint64_t seed);

struct Row {
  Key key;
  Change change;
};
struct Result {
  std::vector<Row> rows;     // by service, the host first
  std::size_t left_out = 0;  // services that have no rows of their own
};
// Compares what was measured. Figures that no block knows of both windows have no row.
Result evaluate(const Measured& measured, std::uint64_t seed);

// The side that has a difference for the better in that figure of the host; nullopt where none is shown.
std::optional<Side> better_side(const Result& result, Figure figure);
std::optional<Side> better_side(const Row& row);

}  // namespace berth::trial
