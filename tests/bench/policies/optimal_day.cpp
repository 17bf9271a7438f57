// SPDX-License-Identifier: Apache-2.0
// Instances come and go, and every search decides about the same ones: `bench-optimal-day [EVENTS]`. It
// prints the mean score_node for each, its ratio to that of "window", the moves for each event, the mean gap,
// and the CPU time of a tick.
#include "policies/decide.h"
#include "tests/bench/policies/crowded_host.h"
#include "tests/unit/policies/draws.h"
#include "tests/unit/policies/hosts.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include <fmt/core.h>

namespace {

using namespace berth::policies;  // NOLINT(google-build-using-namespace)
namespace model = berth::model;

constexpr int kTicks = 12;  // for each event; a second each

struct Rival {
  const char* name = "";
  InterferenceSettings settings;
};

struct Outcome {
  double score = 0;
  double gap = 0;
  int moves = 0;
  int ticks = 0;
  double cpu_s = 0;
};

double cpu_time_s() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// The vCPUs that all instances together ask for follow a wave between 40 and 95 % of the host.
int wanted_vcpus(int event, int events, int host) {
  const double wave = std::abs(2.0 * (event % (events / 4 + 1)) / (events / 4 + 1) - 1);
  return static_cast<int>(host * (0.40 + 0.55 * wave));
}

int draw_size(testing::Draws& draws) {
  const double which = draws.fraction();
  return which < 0.3 ? 1 : which < 0.7 ? 2 : which < 0.9 ? 4 : 8;
}

// One instance comes or goes.
void change(int event, int events, const bench::Crowd& crowd, model::Snapshot& snapshot,
            testing::Draws& draws) {
  const int host = static_cast<int>(snapshot.topology.usable().size());
  int owned = 0;
  for (const model::Workload& workload : snapshot.workloads) owned += workload.vcpus.value_or(0);
  const int wanted = wanted_vcpus(event, events, host);
  const int size = draw_size(draws);
  const int service = draws.number(0, crowd.services - 1);
  const int leaver = draws.number(1, std::max(1, static_cast<int>(snapshot.workloads.size()) - 1));
  if (owned + size <= std::min(wanted, host - 1)) {
    model::Workload workload =
        testing::latency_sensitive(fmt::format("web-{:06}", event), size, snapshot.time);
    workload.service = fmt::format("service-{:04}", service);
    snapshot.workloads.push_back(std::move(workload));
  } else if (snapshot.workloads.size() > 1) {
    snapshot.workloads.erase(snapshot.workloads.begin() + leaver);
  }
  // Best-effort work keeps the rest half busy.
  double owned_now = 0;
  for (const model::Workload& workload : snapshot.workloads) owned_now += workload.vcpus.value_or(0);
  testing::change_samples(snapshot.workloads.front(), [&](std::vector<model::UsageSample>& samples) {
    for (model::UsageSample& sample : samples) sample.cpu_cores = crowd.best_effort * (host - owned_now);
  });
}

Outcome run(const bench::Crowd& crowd, const Rival& rival, int events) {
  PolicySettings settings;
  settings.interference = rival.settings;
  settings.interference.isolation = model::Isolation::vcpus;
  model::Snapshot snapshot = bench::crowded_host(crowd);
  testing::Draws draws(crowd.seed + 1000);
  Outcome outcome;
  for (int event = 0; event < events; ++event) {
    change(event, events, crowd, snapshot, draws);
    for (int tick = 0; tick < kTicks; ++tick) {
      snapshot.time += 1;
      const double before = cpu_time_s();
      const model::Plan plan = decide(snapshot, settings, {"interference"});
      outcome.cpu_s += cpu_time_s() - before;
      testing::apply_and_date(plan, snapshot);
      outcome.score += plan.findings.interference->score_node;
      outcome.gap += plan.findings.interference->gap.value_or(0);
      outcome.moves += static_cast<int>(plan.findings.interference->moved.size());
      ++outcome.ticks;
    }
  }
  return outcome;
}

std::vector<Rival> rivals() {
  std::vector<Rival> list{{.name = "window", .settings = {}}};
  const auto add = [&](const char* name, double min_gain, int max_moves) {
    list.push_back({.name = name,
                    .settings = {.search = Search::optimal, .min_gain = min_gain, .max_moves = max_moves}});
  };
  add("optimal, no moves", 0.05, 0);
  add("optimal", 0.05, 2);
  add("optimal, min_gain 0.02", 0.02, 2);
  add("optimal, min_gain 0.01", 0.01, 2);
  add("optimal, min_gain 0.005", 0.005, 2);
  return list;
}

void compare(const char* title, const bench::Crowd& crowd, int events) {
  fmt::print("{}, {} events\n{:26} {:>10} {:>10} {:>8} {:>7} {:>9}\n", title, events, "", "score",
             "of window", "moves", "gap", "ms a tick");
  double window = 0;
  for (const Rival& rival : rivals()) {
    const Outcome it = run(crowd, rival, events);
    if (window == 0) window = it.score;
    const double ticks = it.ticks;
    fmt::print("{:26} {:10.5f} {:10.3f} {:8.2f} {:6.1f}% {:9.3f}\n", rival.name, it.score / ticks,
               it.score / window, static_cast<double>(it.moves) / events, 100 * it.gap / ticks,
               1000 * it.cpu_s / ticks);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int events = std::max(8, argc > 1 ? std::atoi(argv[1]) : 200);
  const auto crowd = [](int sockets, int cores, int llcs) {
    return bench::Crowd{
        .sockets = sockets, .cores_per_socket = cores, .llcs_per_socket = llcs, .instances = 0, .vcpus = 0};
  };
  compare("1 socket x 4 cores x 2 threads", crowd(1, 4, 1), events);
  compare("1 socket x 16 cores x 2 threads, 2 LLCs", crowd(1, 16, 2), events);
  compare("2 sockets x 64 cores x 2 threads, 8 LLCs each", crowd(2, 64, 8), events);
  return 0;
}
