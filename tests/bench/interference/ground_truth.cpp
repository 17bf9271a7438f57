// SPDX-License-Identifier: Apache-2.0
// Learned models against constants, on a simulated machine that berth's model does not describe:
// `bench-ground-truth [SEEDS [MIXES [DIRECTORY]]]`. It prints tables in Markdown. With DIRECTORY, it draws
// them there, too: ground-truth.svg. The head of tests/unit/policies/interference/ground_truth/machine.h has
// the equations, and fleet.h the services.
#include "tests/bench/interference/plot.h"
#include "tests/unit/policies/interference/ground_truth/trial.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/core.h>

namespace {

using namespace berth::policies;           // NOLINT(google-build-using-namespace)
using namespace berth::policies::testing;  // NOLINT(google-build-using-namespace)
namespace bench = berth::bench;
namespace model = berth::model;

struct Host {
  const char* name = "";
  HostShape shape;
  double llc_mib = 16;
};

std::vector<Host> hosts() {
  const auto host = [](const char* name, int sockets, int llcs, int cores, double mib) {
    return Host{.name = name,
                .shape = {.sockets = sockets, .llcs_per_socket = llcs, .cores_per_llc = cores},
                .llc_mib = mib};
  };
  return {host("8 cores, one LLC", 1, 1, 8, 16), host("16 cores, two LLCs", 1, 2, 8, 16),
          host("16 cores, four LLCs", 1, 4, 4, 12), host("32 cores, two sockets", 2, 1, 16, 32),
          host("32 cores, four LLCs", 1, 4, 8, 32)};
}

// Of all seeds.
struct Summary {
  int services = 0;
  int accepted = 0;
  int bounded = 0;
  int changes = 0;
  std::array<Interference, 2> constants;
  std::array<Interference, 2> learned;
  Interference random;
  std::array<std::vector<double>, 2> ratios;  // one of each seed

  void add(const Trial& trial, int seeds) {
    services += trial.services;
    accepted += trial.accepted;
    bounded += trial.bounded;
    changes += trial.changes;
    const auto mean = [seeds](Interference& sum, const Interference& one) {
      sum.extra_cores += one.extra_cores / seeds;
      sum.slowdown += one.slowdown / seeds;
    };
    mean(random, trial.random);
    for (const Search search : {Search::window, Search::optimal}) {
      const std::size_t at = search == Search::window ? 0 : 1;
      mean(constants[at], trial.by_search[at].constants);
      mean(learned[at], trial.by_search[at].learned);
      ratios[at].push_back(trial.ratio(search));
    }
  }
  double extra_ratio(std::size_t at) const { return learned[at].extra_cores / constants[at].extra_cores; }
};

Summary summary_of(const Host& host, bool alike, const Lesson& lesson, int seeds, int mixes) {
  Summary summary;
  for (int seed = 1; seed <= seeds; ++seed) {
    summary.add(run_trial({.shape = host.shape,
                           .llc_mib = host.llc_mib,
                           .alike = alike,
                           .lesson = lesson,
                           .mixes = mixes,
                           .seed = static_cast<std::uint64_t>(seed)}),
                seeds);
  }
  return summary;
}

const char* name_of(std::size_t search) { return search == 0 ? "window" : "optimal"; }

double lowest(const std::vector<double>& values) { return *std::min_element(values.begin(), values.end()); }
double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}
double highest(const std::vector<double>& values) { return *std::max_element(values.begin(), values.end()); }

void print_heads() {
  fmt::print(
      "| host | services | search | extra CPU, constants | learned | ratio | of a seed, mean | "
      "lowest-highest | "
      "slowdown, constants | learned | random, extra CPU |\n|---|---|---|---|---|---|---|---|---|---|---|\n");
}

void print_rows(const Host& host, bool alike, const Summary& it) {
  for (std::size_t at = 0; at < 2; ++at) {
    fmt::print(
        "| {} | {} | {} | {:.2f} % | {:.2f} % | {:.2f} | **{:.2f}** | {:.2f}-{:.2f} | {:.1f} % | {:.1f} % | "
        "{:.2f} % "
        "|\n",
        host.name, alike ? "alike" : "differ", name_of(at), 100 * it.constants[at].extra_cores,
        100 * it.learned[at].extra_cores, it.extra_ratio(at), mean_of(it.ratios[at]), lowest(it.ratios[at]),
        highest(it.ratios[at]), 100 * it.constants[at].slowdown, 100 * it.learned[at].slowdown,
        100 * it.random.extra_cores);
  }
}

void print_learning(const Host& host, bool alike, const Summary& it) {
  fmt::print("| {} | {} | {} | {} | {} | {} |\n", host.name, alike ? "alike" : "differ", it.services,
             it.accepted, it.bounded, it.changes);
}

bench::Group group_of(const std::string& name, const Summary& it) {
  bench::Group group{.name = name, .series = {}};
  for (std::size_t at = 0; at < 2; ++at)
    group.series.push_back({.mean = it.extra_ratio(at), .points = it.ratios[at]});
  return group;
}

}  // namespace

int main(int argc, char** argv) {
  const int seeds = std::max(1, argc > 1 ? std::atoi(argv[1]) : 12);
  const int mixes = std::max(1, argc > 2 ? std::atoi(argv[2]) : 10);
  std::vector<bench::Group> groups;
  std::string learning;
  print_heads();
  struct Row {
    Host host;
    bool alike = false;
    Summary summary;
  };
  std::vector<Row> rows;
  for (const bool alike : {false, true}) {
    std::array<double, 2> ratio{};
    std::array<double, 2> of_seeds{};
    const auto count = static_cast<double>(hosts().size());
    for (const Host& host : hosts()) {
      rows.push_back({.host = host, .alike = alike, .summary = summary_of(host, alike, {}, seeds, mixes)});
      const Summary& summary = rows.back().summary;
      print_rows(host, alike, summary);
      groups.push_back(group_of(fmt::format("{}{}", host.name, alike ? ", alike" : ""), summary));
      for (std::size_t at = 0; at < 2; ++at) {
        ratio[at] += summary.extra_ratio(at) / count;
        of_seeds[at] += mean_of(summary.ratios[at]) / count;
      }
    }
    for (std::size_t at = 0; at < 2; ++at) {
      fmt::print("| mean of the hosts | {} | {} | | | {:.2f} | **{:.2f}** | | | | |\n",
                 alike ? "alike" : "differ", name_of(at), ratio[at], of_seeds[at]);
    }
  }
  fmt::print(
      "\n| host | services | of so many | accepted | bounded | found changed |\n|---|---|---|---|---|---|\n");
  for (const Row& row : rows) print_learning(row.host, row.alike, row.summary);

  fmt::print(
      "\n| response | of so many | accepted | bounded | ratio, window | ratio, optimal | lowest-highest "
      "|\n|---|---|---|---|---|---|---|\n");
  const Host middle = hosts()[1];
  for (const model::Response response : {model::Response::cpi, model::Response::cost, model::Response::cpu}) {
    Lesson lesson;
    lesson.response = response;
    const Summary it = summary_of(middle, false, lesson, seeds, mixes);
    fmt::print("| `{}` | {} | {} | {} | {:.2f} | {:.2f} | {:.2f}-{:.2f} |\n", model::to_string(response),
               it.services, it.accepted, it.bounded, it.extra_ratio(0), it.extra_ratio(1),
               lowest(it.ratios[1]), highest(it.ratios[1]));
  }
  if (argc > 3) {
    const std::filesystem::path file = std::filesystem::path(argv[3]) / "ground-truth.svg";
    const bench::Plot plot{.title = "Extra CPU with learned models, as a share of that with the constants",
                           .series = {"search \"window\"", "search \"optimal\""},
                           .groups = groups,
                           .line = 1};
    if (!bench::draw(plot, file)) {
      fmt::print(stderr, "cannot write {}\n", file.string());
      return 1;
    }
  }
  return 0;
}
