// SPDX-License-Identifier: Apache-2.0
// Placement by berth against baselines, over a day of arrivals and departures on a simulated machine:
// `bench-placement [SEEDS [NODE]]`, with the number of the only node to play, 1 to 4. It prints tables in
// Markdown. `bench-placement moves [HOURS [NODE]]` counts the moves of pinned instances under noise
// (moves.h), and `bench-placement variants ...` also with other settings.
// tests/unit/policies/interference/ground_truth has the machine (machine.h), the day (day.h) and the
// baselines (baselines.h). berth's own score has no part in the figures.
#include "tests/bench/placement/moves.h"
#include "tests/bench/placement/nodes.h"
#include "tests/unit/policies/interference/ground_truth/day.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <ctime>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace {

using namespace berth::policies;           // NOLINT(google-build-using-namespace)
using namespace berth::policies::testing;  // NOLINT(google-build-using-namespace)
namespace model = berth::model;
using bench::Node;
using bench::nodes;

using Models = std::map<std::string, model::ServiceProfile>;

struct Load {
  const char* name = "";
  double least = 0;
  double most = 0;
};
constexpr std::array kLoads{Load{"30 %", 0.30, 0.30}, Load{"60 %", 0.60, 0.60}, Load{"95 %", 0.95, 0.95},
                            Load{"30-95 %", 0.30, 0.95}};

// A way of berth.
struct Way {
  Search search = Search::window;
  Weighting weighting = Weighting::overlap;
  bool learned = false;

  InterferenceSettings settings() const {
    InterferenceSettings settings;
    settings.search = search;
    settings.weighting = weighting;
    settings.isolation = model::Isolation::vcpus;
    return settings;
  }
  std::string name() const {
    return fmt::format("{}, {}, {}", search == Search::window ? "window" : "optimal",
                       weighting == Weighting::overlap ? "overlap" : "request",
                       learned ? "learned" : "constants");
  }
};
constexpr std::array kWays{
    Way{Search::window, Weighting::overlap, false},  Way{Search::window, Weighting::overlap, true},
    Way{Search::window, Weighting::request, false},  Way{Search::window, Weighting::request, true},
    Way{Search::optimal, Weighting::overlap, false}, Way{Search::optimal, Weighting::overlap, true},
    Way{Search::optimal, Weighting::request, false}, Way{Search::optimal, Weighting::request, true}};

// Methods by number: the baselines, then the ways of berth.
constexpr std::size_t kFirstWay = kBaselines.size();
constexpr std::size_t kMethods = kFirstWay + kWays.size();
constexpr std::size_t kWindow = kFirstWay;  // the default of berth, before it has learned
constexpr std::array kShown{kWindow, kFirstWay + 4, kFirstWay + 5};
constexpr int kDefaultSeeds = 3;

std::string name_of(std::size_t method) {
  return method < kFirstWay ? to_string(kBaselines[method]) : kWays[method - kFirstWay].name();
}

using Scores = std::vector<Score>;  // by seed

// One node at one load.
struct Case {
  std::size_t node = 0;
  std::size_t load = 0;
  std::array<Scores, kMethods> methods;
};

using Figure = double Score::*;

double mean(const Scores& scores, Figure figure) {
  double sum = 0;
  for (const Score& score : scores) sum += score.*figure;
  return sum / static_cast<double>(scores.size());
}

// One method's figure as a share of another's: that of the means, and the lowest and highest of a seed.
struct Ratio {
  double of_means = 0;
  double lowest = 1e9;
  double highest = 0;
};
Ratio ratio(const Case& row, std::size_t method, std::size_t to, Figure figure) {
  Ratio it;
  it.of_means = mean(row.methods[method], figure) / mean(row.methods[to], figure);
  for (std::size_t seed = 0; seed < row.methods[method].size(); ++seed) {
    const double one = row.methods[method][seed].*figure / row.methods[to][seed].*figure;
    it.lowest = std::min(it.lowest, one);
    it.highest = std::max(it.highest, one);
  }
  return it;
}

// The baseline with the least extra CPU.
std::size_t best_baseline(const Case& row) {
  std::size_t best = 0;
  for (std::size_t at = 1; at < kFirstWay; ++at) {
    if (mean(row.methods[at], &Score::extra_cores) < mean(row.methods[best], &Score::extra_cores)) best = at;
  }
  return best;
}

std::vector<Case> rows_of(std::size_t number, const Node& node, int seeds) {
  std::vector<Case> rows;
  for (std::size_t load = 0; load < kLoads.size(); ++load)
    rows.push_back({.node = number, .load = load, .methods = {}});
  for (int i = 1; i <= seeds; ++i) {
    const auto seed = static_cast<std::uint64_t>(i);
    const World world = make_world(
        {.shape = node.shape, .llc_mib = node.llc_mib, .alike = false, .services = 8, .seed = seed});
    Lesson lesson;
    lesson.mixes = node.lesson_mixes;
    const Training training(world, lesson, 1000 + seed);
    Judge judge(world);
    for (Case& row : rows) {
      const Load& load = kLoads[row.load];
      const Day day = draw_day(world, {.least = load.least, .most = load.most, .seed = 2000 + seed});
      for (std::size_t at = 0; at < kFirstWay; ++at)
        row.methods[at].push_back(judge.play(day, *make_method(world, kBaselines[at], seed)));
      for (std::size_t at = kFirstWay; at < kMethods; ++at) {
        const Way& way = kWays[at - kFirstWay];
        const Models models = way.learned ? training.services() : Models();
        row.methods[at].push_back(judge.play(day, *make_method(world, way.settings(), models, seed)));
      }
    }
  }
  return rows;
}

void print_head(const std::vector<std::string>& columns) {
  fmt::print("\n|");
  for (const std::string& column : columns) fmt::print(" {} |", column);
  fmt::print("\n|");
  for (std::size_t i = 0; i < columns.size(); ++i) fmt::print("---|");
  fmt::print("\n");
}

std::string beginning_of(const Case& row) {
  return fmt::format("| {} | {} |", nodes()[row.node].name, kLoads[row.load].name);
}

// One figure of all baselines and of three ways of berth, in per cent.
void print_means(const std::string& title, const std::vector<Case>& rows, Figure figure) {
  fmt::print("\n{}\n", title);
  std::vector<std::string> columns{"node", "load"};
  for (std::size_t at = 0; at < kFirstWay; ++at) columns.push_back(name_of(at));
  for (const std::size_t at : kShown) columns.push_back(name_of(at));
  print_head(columns);
  for (const Case& row : rows) {
    fmt::print("{}", beginning_of(row));
    for (std::size_t at = 0; at < kFirstWay; ++at)
      fmt::print(" {:.2f} |", 100 * mean(row.methods[at], figure));
    for (const std::size_t at : kShown) fmt::print(" {:.2f} |", 100 * mean(row.methods[at], figure));
    fmt::print("\n");
  }
}

// The ways that are shown, as a share of the best baseline of each row and of "window".
void print_ratios(const std::vector<Case>& rows) {
  print_head({"node", "load", "way of berth", "best baseline", "extra CPU / its", "slowdown / its",
              "batch work / its", "extra CPU / window", "slowdown / window", "batch work / window"});
  for (const Case& row : rows) {
    const std::size_t best = best_baseline(row);
    for (const std::size_t way : kShown) {
      fmt::print("{} {} | {} |", beginning_of(row), name_of(way), name_of(best));
      for (const std::size_t to : {best, kWindow}) {
        for (const Figure figure : {&Score::extra_cores, &Score::slowdown, &Score::batch}) {
          const Ratio it = ratio(row, way, to, figure);
          fmt::print(" {:.2f} ({:.2f}-{:.2f}) |", it.of_means, it.lowest, it.highest);
        }
      }
      fmt::print("\n");
    }
  }
}

// Every way of berth against the best baseline of each row, and against "window": means over the rows.
void print_ways(const std::vector<Case>& rows, const std::string& load) {
  print_head({"way of berth, " + (load.empty() ? "all loads" : "load " + load), "extra CPU / best baseline",
              "slowdown / its", "batch work / its", "extra CPU / window", "moves an hour",
              "% without vCPUs of their own", "% of work without a CPU"});
  for (std::size_t at = kFirstWay; at < kMethods; ++at) {
    std::array<double, 7> sum{};
    double count = 0;
    for (const Case& row : rows) {
      if (!load.empty() && load != kLoads[row.load].name) continue;
      const std::size_t best = best_baseline(row);
      count += 1;
      sum[0] += ratio(row, at, best, &Score::extra_cores).of_means;
      sum[1] += ratio(row, at, best, &Score::slowdown).of_means;
      sum[2] += ratio(row, at, best, &Score::batch).of_means;
      sum[3] += ratio(row, at, kWindow, &Score::extra_cores).of_means;
      sum[4] += mean(row.methods[at], &Score::moves);
      sum[5] += 100 * mean(row.methods[at], &Score::unplaced);
      sum[6] += 100 * mean(row.methods[at], &Score::undone);
    }
    fmt::print("| {} |", name_of(at));
    for (const double one : sum) fmt::print(" {:.2f} |", one / count);
    fmt::print("\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "moves" || what == "variants") {
    const double hours = argc > 2 ? std::atof(argv[2]) : 1;
    const int node = argc > 3 ? std::atoi(argv[3]) : 0;
    bench::print_moves({.hours = std::clamp(hours, 0.1, 24.0), .variants = what == "variants", .only = node});
    return 0;
  }
  const int seeds = std::max(1, argc > 1 ? std::atoi(argv[1]) : kDefaultSeeds);
  const int only = argc > 2 ? std::atoi(argv[2]) : 0;
  std::vector<Case> rows;
  for (std::size_t number = 0; number < nodes().size(); ++number) {
    if (only > 0 && static_cast<std::size_t>(only) != number + 1) continue;
    const std::clock_t before = std::clock();
    for (Case& row : rows_of(number, nodes()[number], seeds)) rows.push_back(std::move(row));
    fmt::print(stderr, "{}: {:.1f} s of CPU\n", nodes()[number].name,
               static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC);
  }
  if (rows.empty()) {
    fmt::print(stderr, "there is no node {}; the nodes are 1 to {}\n", only, nodes().size());
    return 1;
  }
  print_means("Extra CPU, per cent of the host", rows, &Score::extra_cores);
  print_means("Slowdown of the services, per cent", rows, &Score::slowdown);
  print_means("Batch work done, per cent", rows, &Score::batch);
  print_ratios(rows);
  print_ways(rows, "");
  for (const Load& load : kLoads) print_ways(rows, load.name);
  return 0;
}
