// SPDX-License-Identifier: Apache-2.0
// How far the search "optimal" ends above its lower bound on random hosts of 16 to 64 vCPUs, of which
// instances of 1 to 8 vCPUs own 85 %: `bench-optimal-gap [HOSTS]`, with so many hosts of each shape (60).
// Each instance draws a pressure and a model of its own. It also prints the ratio to the score of "window",
// the CPU time of the tick that places all, and of a later one without news. It fails if the mean gap of a
// shape is above 5 %, or a tick without news moves an instance.
#include "policies/decide.h"
#include "tests/unit/policies/draws.h"
#include "tests/unit/policies/hosts.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include <fmt/core.h>

namespace {

using namespace berth::policies;  // NOLINT(google-build-using-namespace)
namespace model = berth::model;

constexpr double kMostGap = 0.05;

struct Row {
  double gap = 0;
  double worst = 0;
  double of_window = 0;
  double all_new_s = 0;
  double settled_s = 0;
  double slowest_s = 0;  // of the settled ones
  int moves = 0;
  int hosts = 0;
  void add(const Row& other) {
    gap += other.gap;
    worst = std::max(worst, other.worst);
    of_window += other.of_window;
    all_new_s += other.all_new_s;
    settled_s += other.settled_s;
    slowest_s = std::max(slowest_s, other.slowest_s);
    moves += other.moves;
    hosts += other.hosts;
  }
};

std::vector<testing::HostShape> shapes() {
  const auto shape = [](int llcs, int cores, int threads) {
    return testing::HostShape{
        .sockets = 1, .llcs_per_socket = llcs, .cores_per_llc = cores, .threads_per_core = threads};
  };
  return {shape(1, 8, 2), shape(2, 4, 2),  shape(1, 16, 2), shape(2, 8, 2),  shape(4, 4, 2),
          shape(3, 8, 2), shape(4, 6, 2),  shape(1, 32, 2), shape(2, 16, 2), shape(4, 8, 2),
          shape(8, 4, 2), shape(2, 16, 1), shape(4, 8, 1)};
}

model::Snapshot random_host(const testing::HostShape& shape, int seed) {
  testing::Draws draws(static_cast<std::uint64_t>(seed));
  model::Snapshot snapshot = testing::snapshot_of(testing::host(shape));
  const int size = static_cast<int>(snapshot.topology.usable().size());
  int left = size * 85 / 100;
  snapshot.workloads.push_back(testing::best_effort("batch", draws.fraction() * (size - left)));
  for (int i = 0; left > 0; ++i) {
    const int vcpus = std::min(left, draws.number(1, 8));
    left -= vcpus;
    snapshot.workloads.push_back(testing::latency_sensitive(fmt::format("web-{:02}", i), vcpus, i));
    model::ServiceProfile& profile = snapshot.services[snapshot.workloads.back().service];
    profile.pressure = 0.05 + 0.9 * draws.fraction();
    profile.model = {.b0 = 0, .k1 = draws.fraction(), .k2 = draws.fraction()};
  }
  return snapshot;
}

model::InterferenceFindings tick(Search search, model::Snapshot& snapshot, double& cpu_s) {
  PolicySettings settings;
  settings.interference.search = search;
  settings.interference.isolation = model::Isolation::vcpus;
  const std::clock_t before = std::clock();
  const model::Plan plan = decide(snapshot, settings, {"interference"});
  cpu_s = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  testing::apply_and_date(plan, snapshot);
  return *plan.findings.interference;
}

Row measure(const testing::HostShape& shape, int seed) {
  Row row{.hosts = 1};
  model::Snapshot snapshot = random_host(shape, seed);
  model::Snapshot rival = snapshot;
  const auto found = tick(Search::optimal, snapshot, row.all_new_s);
  row.of_window = found.score_node / tick(Search::window, rival, row.settled_s).score_node;
  const double bound = found.lower_bound.value_or(0);
  row.gap = row.worst = found.score_node > bound ? found.score_node / bound - 1 : 0.0;
  snapshot.time += 60;
  row.moves = static_cast<int>(tick(Search::optimal, snapshot, row.settled_s).moved.size());
  row.slowest_s = row.settled_s;
  return row;
}

void print(const std::string& name, const Row& row) {
  const double hosts = row.hosts;
  fmt::print("{:36} {:8.2f}% {:8.2f}% {:9.3f} {:11.2f} {:11.2f} {:11.2f} {:6}\n", name, 100 * row.gap / hosts,
             100 * row.worst, row.of_window / hosts, 1000 * row.all_new_s / hosts,
             1000 * row.settled_s / hosts, 1000 * row.slowest_s, row.moves);
}

}  // namespace

int main(int argc, char** argv) {
  const int hosts = std::max(1, argc > 1 ? std::atoi(argv[1]) : 60);
  fmt::print("{:36} {:>9} {:>9} {:>9} {:>11} {:>11} {:>11} {:>6}\n", "", "mean gap", "worst", "of window",
             "all new, ms", "settled, ms", "slowest, ms", "moves");
  Row all;
  double most = 0;
  for (const testing::HostShape& shape : shapes()) {
    Row row;
    for (int seed = 1; seed <= hosts; ++seed) row.add(measure(shape, seed));
    print(fmt::format("{} domains x {} cores x {} threads", shape.llcs_per_socket, shape.cores_per_llc,
                      shape.threads_per_core),
          row);
    most = std::max(most, row.gap / row.hosts);
    all.add(row);
  }
  print(fmt::format("all {} hosts", all.hosts), all);
  if (most > kMostGap)
    fmt::print("the mean gap of a shape is {:.2f} %, above {:.0f} %\n", 100 * most, 100 * kMostGap);
  if (all.moves > 0) fmt::print("{} instances moved without a reason\n", all.moves);
  return most > kMostGap || all.moves > 0 ? 1 : 0;
}
