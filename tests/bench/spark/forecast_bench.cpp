// SPDX-License-Identifier: Apache-2.0
// The forecast of memory against the published rule, the last value and a straight line: families of shapes
// with noise from several seeds, and recorded memory of real processes. Prints for each family how many
// crossings each method missed and how many of its warnings were needless, and their sum as a ratio to the
// best of the three rivals. The same seeds give the same figures everywhere.
#include "policies/eviction/forecast/backtest.h"
#include "tests/bench/spark/traces.h"
#include "tests/paths.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

namespace {

using namespace berth;
using policies::ForecastVerdict;
using policies::kForecastMethods;

constexpr double kReserve = 0.05;  // of the capacity
constexpr std::array kHorizons_s{10.0, 30.0};
constexpr double kGiB = 1024.0 * 1024 * 1024;

using Verdicts = std::array<ForecastVerdict, kForecastMethods.size()>;

void add(policies::ForecastFaults& sum, const policies::ForecastFaults& more) {
  sum.events += more.events;
  sum.bytes += more.bytes;
}

void add(ForecastVerdict& sum, const ForecastVerdict& more) {
  sum.crossings += more.crossings;
  add(sum.missed, more.missed);
  add(sum.sudden, more.sudden);
  add(sum.needless, more.needless);
}

void judge(const bench::Trace& trace, Verdicts& verdicts) {
  for (const double horizon_s : kHorizons_s) {
    for (std::size_t i = 0; i < kForecastMethods.size(); ++i) {
      const auto expected =
          policies::expectations_of(kForecastMethods[i], trace.demand, {.horizon_s = horizon_s});
      for (const double line : trace.lines)
        add(verdicts[i],
            policies::judge_forecast(trace.demand, expected, {line / (1 - kReserve), line, horizon_s}));
    }
  }
}

double faults(const ForecastVerdict& verdict) {
  return static_cast<double>(verdict.missed.events + verdict.needless.events);
}

// The learned method's figure by the least one of the rivals; "-" where they have none to beat.
template <typename Figure>
std::string ratio(const Verdicts& verdicts, Figure figure) {
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t i = 1; i < verdicts.size(); ++i) best = std::min(best, figure(verdicts[i]));
  if (best == 0) return figure(verdicts[0]) == 0 ? "0 / 0" : "n / 0";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f", figure(verdicts[0]) / best);
  return text.data();
}

void print(const char* family, const Verdicts& verdicts) {
  std::printf("%-13s %9zu %6zu |", family, verdicts[0].crossings, verdicts[0].sudden.events);
  for (const ForecastVerdict& verdict : verdicts)
    std::printf("  %5zu %6zu", verdict.missed.events, verdict.needless.events);
  std::printf(" | %8s\n", ratio(verdicts, faults).c_str());
}

void print_sums(const Verdicts& all) {
  std::printf("\nGiB           %16s |", "");
  for (const ForecastVerdict& verdict : all)
    std::printf("  %5.0f %6.0f", verdict.missed.bytes / kGiB, verdict.needless.bytes / kGiB);
  std::printf(
      "\n\nlearned by the best of the three, over all: missed + needless %s, missed %s, bytes of both %s\n",
      ratio(all, faults).c_str(),
      ratio(all, [](const auto& it) { return static_cast<double>(it.missed.events); }).c_str(),
      ratio(all, [](const auto& it) { return it.missed.bytes + it.needless.bytes; }).c_str());
}

std::vector<bench::Trace> recorded() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(BERTH_MEMORY))
    if (entry.path().extension() == ".csv") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<bench::Trace> traces;
  for (const auto& file : files) {
    std::ifstream in(file);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    auto demand = policies::parse_memory_trace(text);
    if (!demand) {
      std::fprintf(stderr, "%s: %s\n", file.c_str(), demand.error().message().c_str());
      std::exit(1);
    }
    traces.push_back(bench::recorded_trace(*std::move(demand)));
  }
  return traces;
}

}  // namespace

int main(int argc, char** argv) {
  const auto first = static_cast<std::uint64_t>(argc > 1 ? std::atoi(argv[1]) : 1);
  const auto seeds = static_cast<std::uint64_t>(argc > 2 ? std::atoi(argv[2]) : 20);
  std::printf("seeds %zu to %zu, horizons 10 and 30 s; missed and needless events\n", first,
              first + seeds - 1);
  std::printf("%-13s %9s %6s |", "", "crossings", "sudden");
  for (const auto method : kForecastMethods) std::printf("  %12s", policies::to_string(method));
  std::printf(" | %8s\n", "ratio");
  Verdicts all{};
  const auto finish = [&all](const char* family, const Verdicts& verdicts) {
    print(family, verdicts);
    for (std::size_t i = 0; i < all.size(); ++i) add(all[i], verdicts[i]);
  };
  for (const std::string& family : bench::families()) {
    Verdicts verdicts{};
    for (std::uint64_t seed = first; seed < first + seeds; ++seed)
      judge(bench::trace_of(family, seed), verdicts);
    finish(family.c_str(), verdicts);
  }
  Verdicts verdicts{};
  for (const bench::Trace& trace : recorded()) judge(trace, verdicts);
  finish("recorded", verdicts);
  print("all", all);
  print_sums(all);
  return 0;
}
