// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/spark/traces.h"

#include "tests/unit/policies/draws.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <stdexcept>
#include <utility>

namespace berth::bench {

namespace {

using policies::testing::Draws;

constexpr double kGiB = 1024.0 * 1024 * 1024;

double between(Draws& draws, double least, double most) { return least + (most - least) * draws.fraction(); }

// The sum of twelve draws is close to a normal one.
double nearly_normal(Draws& draws) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += draws.fraction();
  return sum;
}

// `shape`: GiB at each second. The noise has a memory of some seconds, as that of real services does.
Trace noisy(Draws& draws, int readings, double gap_s, const std::function<double(double)>& shape) {
  Trace trace;
  const double sd = between(draws, 0.005, 0.08);
  double slow = 0;
  for (int i = 0; i < readings; ++i) {
    slow = 0.8 * slow + 0.6 * sd * nearly_normal(draws);
    const double gib = std::max(0.1, shape(i * gap_s) + 0.7 * slow + 0.7 * sd * nearly_normal(draws));
    trace.demand.push_back({i * gap_s, static_cast<std::uint64_t>(gib * kGiB)});
  }
  return trace;
}

struct Range {
  double least = 0;
  double size = 0;
};

Range range_of(const std::vector<model::MemoryReading>& demand) {
  const auto [low, high] = std::minmax_element(
      demand.begin(), demand.end(), [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  const auto least = static_cast<double>(low->bytes);
  const auto most = static_cast<double>(high->bytes);
  return {.least = least, .size = std::max(most - least, 0.05 * most)};
}

// Lines inside and outside of what the trace reaches.
void add_lines(Draws& draws, Trace& trace, double least, double most) {
  const Range range = range_of(trace.demand);
  for (int i = 0; i < 4; ++i) {
    const double share = least + (most - least) * (i + draws.fraction()) / 4;
    trace.lines.push_back(range.least + share * range.size);
  }
}

Trace flat(Draws& draws) {
  const double level = between(draws, 2, 10);
  Trace trace = noisy(draws, 600, 1, [=](double) { return level; });
  add_lines(draws, trace, 0.9, 4);
  return trace;
}

Trace step(Draws& draws) {
  const double level = between(draws, 2, 6);
  const double height = between(draws, 1, 5);
  const double at = between(draws, 150, 350);
  const double takes = between(draws, 0.5, 6);
  Trace trace =
      noisy(draws, 700, 1, [=](double t) { return level + height * std::clamp((t - at) / takes, 0.0, 1.0); });
  add_lines(draws, trace, 0.3, 2.2);
  return trace;
}

Trace ramp(Draws& draws) {
  const double level = between(draws, 2, 5);
  const double begin = between(draws, 60, 200);
  const double lasts = between(draws, 60, 300);
  const double height = between(draws, 2, 8);
  Trace trace = noisy(draws, 700, 1,
                      [=](double t) { return level + height * std::clamp((t - begin) / lasts, 0.0, 1.0); });
  add_lines(draws, trace, 0.3, 1.6);
  return trace;
}

Trace accelerating(Draws& draws) {
  const double level = between(draws, 2, 5);
  const double begin = between(draws, 60, 150);
  const double lasts = between(draws, 100, 300);
  const double height = between(draws, 3, 10);
  const double power = between(draws, 1.6, 3);
  Trace trace = noisy(draws, 600, 1, [=](double t) {
    return level + height * std::pow(std::clamp((t - begin) / lasts, 0.0, 1.0), power);
  });
  add_lines(draws, trace, 0.3, 1.6);
  return trace;
}

Trace saw_tooth(Draws& draws) {
  const double level = between(draws, 2, 5);
  const double height = between(draws, 0.8, 4);
  const double period = between(draws, 25, 120);
  const double drift = draws.chance(0.3) ? between(draws, 0, 0.003) : 0;
  // Each period differs from the others in length and height.
  std::vector<double> begins{-period * draws.fraction()};
  std::vector<double> heights{height};
  while (begins.back() < 900) {
    begins.push_back(begins.back() + period * between(draws, 0.85, 1.15));
    heights.push_back(height * between(draws, 0.92, 1.08));
  }
  Trace trace = noisy(draws, 800, 1, [&](double t) {
    std::size_t i = 0;
    while (begins[i + 1] <= t) ++i;
    return level + drift * t + heights[i] * (t - begins[i]) / (begins[i + 1] - begins[i]);
  });
  add_lines(draws, trace, 0.6, 2);
  return trace;
}

// Half an hour of a day, in which demand rises.
Trace tide(Draws& draws) {
  const double level = between(draws, 3, 6);
  const double height = between(draws, 1, 5);
  const double begin = between(draws, -18000, 14400);
  Trace trace = noisy(draws, 1800, 1, [=](double t) {
    return level + height / 2 * (1 + std::sin(2 * std::numbers::pi * (begin + t) / 86400));
  });
  add_lines(draws, trace, 0.4, 1.6);
  return trace;
}

Trace bursts(Draws& draws) {
  const double level = between(draws, 2, 5);
  const double height = between(draws, 0.5, 4);
  std::vector<std::pair<double, double>> times;
  for (double t = between(draws, 20, 100); t < 800;) {
    const double lasts = between(draws, 3, 25);
    times.emplace_back(t, t + lasts);
    t += lasts + between(draws, 10, 120);
  }
  Trace trace = noisy(draws, 800, 1, [&](double t) {
    for (const auto& [from, to] : times)
      if (t >= from && t < to) return level + height * std::min(1.0, (t - from + 1) / 2);
    return level;
  });
  add_lines(draws, trace, 0.4, 2);
  return trace;
}

using Maker = Trace (*)(Draws&);
const std::vector<std::pair<std::string, Maker>> kMakers{
    {"flat", flat},           {"step", step}, {"ramp", ramp},     {"accelerating", accelerating},
    {"saw-tooth", saw_tooth}, {"tide", tide}, {"bursts", bursts},
};

}  // namespace

const std::vector<std::string>& families() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> made;
    for (const auto& [name, maker] : kMakers) made.push_back(name);
    return made;
  }();
  return names;
}

Trace trace_of(const std::string& family, std::uint64_t seed) {
  for (std::size_t i = 0; i < kMakers.size(); ++i) {
    if (kMakers[i].first != family) continue;
    Draws draws(seed * 1000 + i);
    return kMakers[i].second(draws);
  }
  throw std::invalid_argument("no such family: " + family);
}

Trace recorded_trace(std::vector<model::MemoryReading> demand) {
  Trace trace{.demand = std::move(demand), .lines = {}};
  const Range range = range_of(trace.demand);
  for (const double share : {0.5, 0.7, 0.85, 0.95, 1.1, 1.3, 1.7})
    trace.lines.push_back(range.least + share * range.size);
  return trace;
}

}  // namespace berth::bench
