// SPDX-License-Identifier: Apache-2.0
// judge-simulation two-vcpus: the configurations of two_vcpus.h with the seed --seed, one JSON line for each.
// judge-simulation table: every row with every way (rows.h).
// judge-simulation hindsight: every host of every row with the fixed pins of hindsight.h, and with ways;
// JSON.
#include "tests/judge/hindsight.h"
#include "tests/judge/loads.h"
#include "tests/judge/rows.h"
#include "tests/judge/two_vcpus.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>

namespace berth::judge {

namespace {

// The arrivals thread of judge-load runs for so long at each request: the median between two sched_switch.
constexpr Time kBringing = 12 * kMicrosecond;

struct Options {
  double seconds = 60;
  std::uint64_t seed = 1;   // of the table: the first
  std::uint64_t seeds = 5;  // of the table
  std::vector<Way> ways;    // of the table; empty: all
  Rules rules;
  bool json = false;
  unsigned jobs = std::max(1U, std::thread::hardware_concurrency());
};

Outcome simulate(const Configuration& it, Sharing way, const Options& options) {
  const auto places = shape(1, 1, 2, 1);
  Group service;
  service.per_thread = true;
  service.mask.set(0).set(1);
  Group batch = service;
  batch.idle = way == Sharing::idle_class;
  if (way == Sharing::own_vcpu) {
    service.mask.reset(1);
    batch.mask.reset(0);
  }
  std::vector<BatchLoad> others;
  if (way != Sharing::alone) others.push_back({.group = 1, .threads = kBatchThreads});
  ServiceLoad load;
  load.cores = it.cores;
  load.work_s = it.work_ms * 1e-3;
  load.threads = it.threads;
  load.bringer = 0;
  load.bringing = kBringing;
  Simulation run(places, options.rules, {service, batch}, {load}, others, options.seed);
  run.run(static_cast<Time>(options.seconds * 1e9), kSecond);
  Outcome outcome;
  outcome.p99_ms = quantile(run.answers(0).times_s, 0.99) * 1e3;
  outcome.batch_cores = run.kernel().used(1).cpu_s / options.seconds;
  return outcome;
}

int two_vcpus(const Options& options) {
  for (const Configuration& it : kTwoVcpus) {
    const Outcome alone = simulate(it, Sharing::alone, options);
    const Outcome found = simulate(it, it.way, options);
    fmt::print("{}", line_of(it, alone, found));
  }
  return 0;
}

Figures mean(const std::vector<Figures>& all) {
  Figures mean;
  constexpr std::array kMembers{&Figures::violations, &Figures::p50_ratio,   &Figures::p99_ratio,
                                &Figures::p999_ratio, &Figures::worst_ratio, &Figures::batch,
                                &Figures::emu};
  for (const auto member : kMembers) {
    for (const Figures& it : all) mean.*member += it.*member / static_cast<double>(all.size());
  }
  return mean;
}

void print(const Options& options, const Row& row, const std::string& way, const Figures& it) {
  if (options.json) {
    fmt::print(
        R"({{"row": "{}", "way": "{}", "violations": {:.4f}, "p50_ratio": {:.4f}, "p99_ratio": {:.4f}, "p999_ratio": {:.4f}, "worst_ratio": {:.4f}, "batch": {:.4f}, "emu": {:.4f}}})"
        "\n",
        row.name, way, it.violations, it.p50_ratio, it.p99_ratio, it.p999_ratio, it.worst_ratio, it.batch,
        it.emu);
    return;
  }
  fmt::print(
      "  {:42} violations {:5.1f} %  p50 {:5.2f}  p99 {:6.2f}  p99.9 {:6.2f}  worst {:7.2f}  batch {:4.2f}  "
      "EMU {:4.2f}\n",
      way, 100 * it.violations, it.p50_ratio, it.p99_ratio, it.p999_ratio, it.worst_ratio, it.batch, it.emu);
}

// A line for each row and way, as means of the seeds.
int table(const Options& options) {
  const auto rows = all_rows();
  const auto ways = options.ways.empty() ? all_ways() : options.ways;
  judge_rows(rows, ways, options.rules, static_cast<Time>(options.seconds * 1e9), options.seed, options.seeds,
             options.jobs, [&](std::size_t row, const std::vector<std::vector<Figures>>& by_seed) {
               if (!options.json) fmt::print("{}\n", rows[row].name);
               for (std::size_t way = 0; way < ways.size(); ++way) {
                 std::vector<Figures> all;
                 for (const auto& figures : by_seed) all.push_back(figures[way]);
                 print(options, rows[row], ways[way].name, mean(all));
               }
               std::fflush(stdout);
             });
  return 0;
}

// A line for each host and each way or number of the batch's vCPUs. `services`: what all of them use, of the
// host.
int hindsight(const Options& options) {
  const auto length = static_cast<Time>(options.seconds * 1e9);
  for (std::uint64_t seed = options.seed; seed < options.seed + options.seeds; ++seed) {
    for (const Row& row : all_rows()) {
      const Host host = draw_host(row, seed);
      const Alone alone = alone_on(host, options.rules, length, seed);
      double services = 0;
      for (const ServiceLoad& load : host.loads()) services += load.cores / host.capacity();
      const auto line = [&](const std::string& way, const Figures& it) {
        fmt::print(
            R"({{"row": "{}", "seed": {}, "services": {:.4f}, "way": "{}", "violations": {:.4f}, "batch": {:.4f}, "emu": {:.4f}}})"
            "\n",
            row.name, seed, services, way, it.violations, it.batch, it.emu);
        std::fflush(stdout);
      };
      for (const Way& way : options.ways)
        line(way.name, judge(host, way, alone, options.rules, length, seed));
      for (const FixedPins& it : try_fixed_pins(host, alone, options.rules, length, seed))
        line(fmt::format("fixed {}", fmt::join(it.vcpus, " ")), it.figures);
    }
  }
  return 0;
}

// "switch_cost=1.25": that much of its default.
bool change_constant(Rules& rules, const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos) return false;
  const std::string name = text.substr(0, equals);
  const double factor = std::strtod(text.c_str() + equals + 1, nullptr);
  Time* const constant = name == "switch_cost"     ? &rules.switch_cost
                         : name == "spread_period" ? &rules.spread_period
                         : name == "cache_memory"  ? &rules.cache_memory
                                                   : nullptr;
  if (constant == nullptr || !(factor > 0)) return false;
  *constant = static_cast<Time>(static_cast<double>(*constant) * factor);
  return true;
}

bool add_way(std::vector<Way>& ways, const std::string& name) {
  for (Way& way : all_ways()) {
    if (way.name != name) continue;
    ways.push_back(std::move(way));
    return true;
  }
  fmt::print(stderr, "no way of the judge has the name \"{}\"\n", name);
  return false;
}

int usage() {
  fmt::print(
      stderr,
      "usage: judge-simulation two-vcpus [--seconds S] [--seed N] [--cfs] [--constant NAME=FACTOR]\n"
      "       judge-simulation table [--seconds S] [--seed FIRST] [--seeds N] [--way NAME]... [--jobs N] "
      "[--cfs] [--json] [--constant NAME=FACTOR]\n"
      "       judge-simulation hindsight [--seconds S] [--seed FIRST] [--seeds N] [--way NAME]... [--cfs]\n");
  return 2;
}

}  // namespace

}  // namespace berth::judge

int main(int argc, char** argv) {
  using namespace berth::judge;
  Options options;
  if (argc < 2) return usage();
  const std::string_view command = argv[1];
  if (command != "two-vcpus" && command != "table" && command != "hindsight") return usage();
  for (int i = 2; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--cfs") {
      options.rules.version = Version::cfs;
    } else if (word == "--json") {
      options.json = true;
    } else if (word == "--seconds" && i + 1 < argc) {
      options.seconds = std::strtod(argv[++i], nullptr);
    } else if (word == "--constant" && i + 1 < argc) {
      if (!change_constant(options.rules, argv[++i])) return usage();
    } else if (word == "--way" && i + 1 < argc) {
      if (!add_way(options.ways, argv[++i])) return 2;
    } else if (word == "--jobs" && i + 1 < argc) {
      options.jobs = std::max(1U, static_cast<unsigned>(std::strtoul(argv[++i], nullptr, 10)));
    } else if (word == "--seed" && i + 1 < argc) {
      options.seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (word == "--seeds" && i + 1 < argc) {
      options.seeds = std::strtoull(argv[++i], nullptr, 10);
    } else {
      return usage();
    }
  }
  if (!(options.seconds > 1) || options.seeds == 0) return usage();
  if (command == "hindsight") return hindsight(options);
  return command == "table" ? table(options) : two_vcpus(options);
}
