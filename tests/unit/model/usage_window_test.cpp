// SPDX-License-Identifier: Apache-2.0
#include "model/usage_window.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::model {

namespace {

using Samples = std::vector<UsageSample>;

UsageSample sample(double time, double cores, Maybe<std::uint64_t> bytes = {}) {
  UsageSample made;
  made.time = time;
  made.cpu_cores = cores;
  made.memory_bytes = bytes;
  return made;
}

// The window restated: a plain list, and loops over it.
struct Restated {
  Samples samples;

  void add(const UsageSample& sample, std::size_t most) {
    samples.push_back(sample);
    while (samples.size() > most) samples.erase(samples.begin());
  }

  UsageWindow::Figures cpu() const {
    UsageWindow::Figures figures;
    for (const UsageSample& each : samples) {
      figures.max = figures.known == 0 || each.cpu_cores > figures.max ? each.cpu_cores : figures.max;
      figures.sum += each.cpu_cores;
      ++figures.known;
    }
    return figures;
  }

  UsageWindow::Figures memory() const {
    UsageWindow::Figures figures;
    for (const UsageSample& each : samples) {
      if (!each.memory_bytes) continue;
      const auto bytes = static_cast<double>(*each.memory_bytes);
      figures.max = figures.known == 0 || bytes > figures.max ? bytes : figures.max;
      figures.sum += bytes;
      ++figures.known;
    }
    return figures;
  }

  bool without_cpu() const {
    return std::all_of(samples.begin(), samples.end(), [](const auto& each) { return each.cpu_cores == 0; });
  }

  bool without_progress() const {
    return std::none_of(samples.begin(), samples.end(),
                        [](const auto& each) { return each.progress.has_value(); });
  }

  bool with_steady_memory() const {
    return std::all_of(samples.begin(), samples.end(), [this](const auto& each) {
      return each.memory_bytes && each.memory_bytes == samples.front().memory_bytes;
    });
  }
};

// Idle, steady and busy times in turn; amounts that round, and amounts beyond 2^53.
UsageSample drawn(double time, const Samples& before) {
  UsageSample made = before.empty() ? sample(time, 0, 4096) : before.back();
  made.time = time;
  if (*rc::gen::weightedElement<bool>({{2, true}, {1, false}})) return made;  // as the one before
  made.cpu_cores = *rc::gen::weightedOneOf<double>(
      {{3, rc::gen::just(0.0)},
       {2, rc::gen::map(rc::gen::inRange(1, 1000), [](int it) { return it / 7.0; })}});
  const bool known = *rc::gen::weightedElement<bool>({{5, true}, {1, false}});
  made.memory_bytes = known ? Maybe<std::uint64_t>(*rc::gen::weightedOneOf<std::uint64_t>(
                                  {{4, rc::gen::just(made.memory_bytes.value_or(0))},
                                   {3, rc::gen::inRange<std::uint64_t>(0, std::uint64_t{1} << 40)},
                                   {1, rc::gen::just((std::uint64_t{1} << 60) + 1)}}))
                            : Maybe<std::uint64_t>();
  if (*rc::gen::weightedElement<bool>({{1, true}, {3, false}}))
    made.runq_latency_us = *rc::gen::inRange(0, 9);
  return made;
}

void check_figures(const UsageWindow& window, const Restated& restated) {
  RC_ASSERT(window.cpu() == restated.cpu());
  RC_ASSERT(window.memory() == restated.memory());
  RC_ASSERT(window.without_cpu() == restated.without_cpu());
  RC_ASSERT(window.without_progress() == restated.without_progress());
  RC_ASSERT(window.with_steady_memory() == restated.with_steady_memory());
}

void check_samples(const UsageWindow& window, const Samples& samples) {
  RC_ASSERT(window.size() == samples.size());
  RC_ASSERT(Samples(window.begin(), window.end()) == samples);
  RC_ASSERT(Samples(window.rbegin(), window.rend()) == Samples(samples.rbegin(), samples.rend()));
  for (std::size_t i = 0; i < samples.size(); ++i) RC_ASSERT(window[i] == samples[i]);
  if (samples.empty()) return;
  RC_ASSERT(window.front() == samples.front());
  RC_ASSERT(window.back() == samples.back());
}

}  // namespace

TEST(UsageWindow, KeepsTheNewestSamples) {
  UsageWindow window;
  for (int time = 0; time < 100; ++time) window.add(sample(time, 1), 60);
  ASSERT_EQ(window.size(), 60U);
  EXPECT_EQ(window.front().time, 40);
  EXPECT_EQ(window[1].time, 41);
  EXPECT_EQ(window.back().time, 99);
  EXPECT_EQ(window.rbegin()->time, 99);
  EXPECT_EQ(std::prev(window.rend())->time, 40);
}

TEST(UsageWindow, AShorterHistoryDropsWhatIsTooMuch) {
  UsageWindow window;
  for (int time = 0; time < 20; ++time) window.add(sample(time, 1), 20);
  window.add(sample(20, 1), 3);
  ASSERT_EQ(window.size(), 3U);
  EXPECT_EQ(window.front().time, 18);
}

TEST(UsageWindow, KeepsTheSignOfZero) {
  const UsageWindow window{sample(1, 0.0), sample(2, -0.0)};
  EXPECT_FALSE(std::signbit(window[0].cpu_cores));
  EXPECT_TRUE(std::signbit(window[1].cpu_cores));
}

TEST(UsageWindow, MovesWithItsSamples) {
  UsageWindow window{sample(1, 0.5), sample(2, 0.5)};
  const UsageWindow copy = window;
  EXPECT_EQ(UsageWindow(std::move(window)), copy);
}

RC_GTEST_PROP(UsageWindow, IsAPlainListWithLoopsToTheLastBit, ()) {
  const auto most = *rc::gen::inRange<std::size_t>(1, 40);
  const int count = *rc::gen::inRange(0, 120);
  UsageWindow window;
  Restated restated;
  for (int i = 0; i < count; ++i) {
    const UsageSample next = drawn(i, restated.samples);
    window.add(next, most);
    restated.add(next, most);
    if (*rc::gen::weightedElement<bool>({{1, true}, {3, false}})) {
      const auto progress = *rc::gen::elementOf(std::vector<Maybe<double>>{{}, 0.25, 0.5});
      window.set_progress(progress);
      restated.samples.back().progress = progress;
    }
    check_figures(window, restated);
  }
  check_samples(window, restated.samples);
  RC_ASSERT(UsageWindow(restated.samples) == window);
  check_figures(UsageWindow(restated.samples), restated);
}

// A neighbour misses a reading now and then, or has it at another time. Copies are left behind.
RC_GTEST_PROP(UsageWindow, TimesOfANeighbourChangeNoSample, ()) {
  const auto most = *rc::gen::inRange<std::size_t>(1, 12);
  const int count = *rc::gen::inRange(0, 60);
  std::array<UsageWindow, 3> windows;
  std::array<Restated, 3> restated;
  std::vector<std::pair<UsageWindow, Samples>> copies;
  for (int i = 0; i < count; ++i) {
    for (std::size_t which = 0; which < windows.size(); ++which) {
      const double late = *rc::gen::weightedElement<double>({{12, 0.0}, {1, 0.5}, {1, -1.0}});
      if (late < 0) continue;
      const UsageSample next = drawn(i + late, restated[which].samples);
      windows[which].add(next, most, which > 0 ? &windows[which - 1] : nullptr);
      restated[which].add(next, most);
    }
    const auto copied = *rc::gen::inRange<std::size_t>(0, 6);
    if (copied < windows.size()) copies.emplace_back(windows[copied], restated[copied].samples);
  }
  for (std::size_t which = 0; which < windows.size(); ++which) {
    check_samples(windows[which], restated[which].samples);
    check_figures(windows[which], restated[which]);
    RC_ASSERT(windows[which].times_hash() == UsageWindow(restated[which].samples).times_hash());
  }
  for (const auto& [copy, samples] : copies) check_samples(copy, samples);
}

TEST(UsageWindow, TakesTheTimesOfANeighbour) {
  UsageWindow a;
  UsageWindow b;
  for (int time = 0; time < 30; ++time) {
    a.add(sample(time, 1), 10);
    b.add(sample(time, 0), 10, &a);
  }
  EXPECT_EQ(&a.times(), &b.times());
}

TEST(UsageWindow, KnowsWindowsOfTheSameTimes) {
  UsageWindow a;
  UsageWindow b;
  for (int time = 0; time < 30; ++time) a.add(sample(time, 1), 10);
  for (int time = 20; time < 30; ++time) b.push_back(sample(time, 0, 4096));
  EXPECT_TRUE(a.at_times_of(b));
  EXPECT_EQ(a.times_hash(), b.times_hash());
  b.add(sample(30, 0), 10);
  EXPECT_FALSE(a.at_times_of(b));
  a.add(sample(30.5, 0), 10);
  EXPECT_FALSE(a.at_times_of(b));
}

}  // namespace berth::model
