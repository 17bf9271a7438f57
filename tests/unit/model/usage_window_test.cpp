// SPDX-License-Identifier: Apache-2.0
#include "model/usage_window.h"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <set>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::model {

namespace {

UsageSample sample(double time, double cores, Maybe<std::uint64_t> bytes = {}) {
  UsageSample made;
  made.time = time;
  made.cpu_cores = cores;
  made.memory_bytes = bytes;
  return made;
}

// What a loop over the samples finds.
UsageWindow::Figures cpu_of(const UsageWindow& window) {
  UsageWindow::Figures figures;
  for (const UsageSample& each : window) {
    figures.max = figures.known == 0 || each.cpu_cores > figures.max ? each.cpu_cores : figures.max;
    figures.sum += each.cpu_cores;
    ++figures.known;
  }
  return figures;
}

UsageWindow::Figures memory_of(const UsageWindow& window) {
  UsageWindow::Figures figures;
  for (const UsageSample& each : window) {
    if (!each.memory_bytes) continue;
    const auto bytes = static_cast<double>(*each.memory_bytes);
    figures.max = figures.known == 0 || bytes > figures.max ? bytes : figures.max;
    figures.sum += bytes;
    ++figures.known;
  }
  return figures;
}

// Idle, steady and busy times in turn; amounts that round, and amounts beyond 2^53.
UsageSample drawn(double time, const UsageWindow& window) {
  const bool idle = *rc::gen::weightedElement<bool>({{3, true}, {2, false}});
  const auto bytes = *rc::gen::weightedOneOf<std::uint64_t>(
      {{4, rc::gen::just(window.empty() ? std::uint64_t{4096} : window.back().memory_bytes.value_or(0))},
       {3, rc::gen::inRange<std::uint64_t>(0, std::uint64_t{1} << 40)},
       {1, rc::gen::just((std::uint64_t{1} << 60) + 1)}});
  const bool known = *rc::gen::weightedElement<bool>({{5, true}, {1, false}});
  return sample(time, idle ? 0 : *rc::gen::inRange(1, 1000) / 7.0,
                known ? Maybe<std::uint64_t>(bytes) : Maybe<std::uint64_t>());
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

RC_GTEST_PROP(UsageWindow, FiguresAreThoseOfALoopToTheLastBit, ()) {
  const auto most = *rc::gen::inRange<std::size_t>(1, 20);
  const int count = *rc::gen::inRange(0, 80);
  UsageWindow window;
  for (int i = 0; i < count; ++i) {
    window.add(drawn(i, window), most);
    RC_ASSERT(window.cpu() == cpu_of(window));
    RC_ASSERT(window.memory() == memory_of(window));
    bool used = false;
    std::set<std::uint64_t> amounts;
    for (const UsageSample& each : window) {
      used = used || each.cpu_cores != 0;
      amounts.insert(each.memory_bytes ? *each.memory_bytes : ~std::uint64_t{0});
    }
    RC_ASSERT(window.without_cpu() == !used);
    RC_ASSERT(window.with_steady_memory() == (amounts.size() == 1 && !amounts.contains(~std::uint64_t{0})));
  }
  RC_ASSERT(UsageWindow(std::vector(window.begin(), window.end())) == window);
}

TEST(UsageWindow, KnowsWindowsOfTheSameTimes) {
  UsageWindow a;
  UsageWindow b;
  for (int time = 0; time < 30; ++time) a.add(sample(time, 1), 10);
  for (int time = 20; time < 30; ++time) b.push_back(sample(time, 0, 4096));
  EXPECT_TRUE(a.at_times_of(b));
  EXPECT_EQ(a.times(), b.times());
  b.add(sample(30, 0), 10);
  EXPECT_FALSE(a.at_times_of(b));
  a.add(sample(30.5, 0), 10);
  EXPECT_FALSE(a.at_times_of(b));
}

}  // namespace berth::model
