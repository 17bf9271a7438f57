// SPDX-License-Identifier: Apache-2.0
// The division of waits over who ran, as the BPF program does it: on simulated vCPUs whose every nanosecond
// is known.
#include "ebpf/slices.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace berth::ebpf {
namespace {

using Shares = std::map<std::uint64_t, double>;  // ns by culprit

constexpr std::uint64_t kOwn = 100;     // the cgroup that is asked about
constexpr std::uint64_t kHog = 200;     // a workload
constexpr std::uint64_t kNoRule = 300;  // and up: cgroups without a rule
constexpr std::uint64_t kUs = 1000;
constexpr std::uint64_t kMs = 1000 * kUs;

// What the hooks do, on one vCPU.
class Vcpu {
 public:
  void runs(std::uint64_t by, std::uint64_t now) {
    berth_end_slice(state_.get(), now);
    state_->by = by;
  }
  void interrupted(std::uint64_t ns) { state_->interrupt_ns += ns; }
  void throttled(std::uint64_t all_ns, std::uint64_t now) {
    berth_begin_throttling(state_.get(), kOwn, all_ns, now);
  }
  // Ends a wait; `before_ns` as of berth_find_hole().
  void divide(std::uint64_t from, std::uint64_t to, std::uint64_t throttled_ns, std::uint64_t before_ns,
              Shares& shares) {
    berth_wait wait{from, to, 0, 0};
    berth_find_hole(state_.get(), kOwn, throttled_ns, before_ns, &wait);
    __u64 interrupts = 0;
    const __u64 unknown = berth_divide(state_.get(), &wait, &interrupts);
    for (const auto& sum : state_->sum) {
      if (sum.ns > 0) shares[sum.by] += static_cast<double>(sum.ns);
    }
    const auto add = [&](std::uint64_t by, __u64 ns) {
      if (ns > 0) shares[by] += static_cast<double>(ns);
    };
    add(BERTH_BY_INTERRUPTS, interrupts);
    add(BERTH_BY_UNKNOWN, unknown);
    add(BERTH_BY_QUOTA, berth_overlap(from, to, wait.hole_ns, wait.hole_end_ns));
  }

 private:
  std::unique_ptr<berth_blame_cpu> state_ = std::make_unique<berth_blame_cpu>();
};

double total(const Shares& shares) {
  double sum = 0;
  for (const auto& [by, ns] : shares) sum += ns;
  return sum;
}

// The part of both that is blamed on the right one.
double common(const Shares& truth, const Shares& said) {
  double sum = 0;
  for (const auto& [by, ns] : truth) {
    const auto found = said.find(by);
    if (found != said.end()) sum += std::min(ns, found->second);
  }
  return sum;
}

TEST(Slices, AWaitIsDividedOverThoseWhoRan) {
  Vcpu vcpu;
  vcpu.runs(kHog, 1 * kMs);
  vcpu.runs(kNoRule, 3 * kMs);
  vcpu.runs(BERTH_BY_IDLE, 4 * kMs);
  vcpu.runs(kOwn, 6 * kMs);
  Shares said;
  vcpu.divide(2 * kMs, 6 * kMs, 0, ~0ULL, said);
  EXPECT_EQ(said, (Shares{{kHog, 1.0 * kMs}, {kNoRule, 1.0 * kMs}, {BERTH_BY_IDLE, 2.0 * kMs}}));
}

TEST(Slices, AWaitLongerThanTheRingIsUnknownInItsFirstPart) {
  Vcpu vcpu;
  std::uint64_t now = kMs;
  for (int i = 0; i < 200; ++i) vcpu.runs(i % 2 ? kHog : kNoRule, now += 10 * kUs);
  vcpu.runs(kOwn, now += 10 * kUs);
  Shares said;
  vcpu.divide(now - kMs, now, 0, ~0ULL, said);
  EXPECT_DOUBLE_EQ(total(said), kMs);
  EXPECT_DOUBLE_EQ(said[BERTH_BY_UNKNOWN], kMs - BERTH_SLICES_WALKED * 10.0 * kUs);
}

TEST(Slices, InterruptsOfAnHourLongSliceAreSharedOut) {
  constexpr std::uint64_t hour = 3'600'000 * kMs;
  Vcpu vcpu;
  vcpu.runs(BERTH_BY_IDLE, kMs);
  vcpu.runs(kHog, 2 * kMs);
  vcpu.interrupted(hour / 4);
  vcpu.runs(kOwn, 2 * kMs + hour);
  Shares said;
  vcpu.divide(2 * kMs + hour / 2, 2 * kMs + hour, 0, ~0ULL, said);
  EXPECT_DOUBLE_EQ(total(said), hour / 2.0);
  EXPECT_NEAR(said[BERTH_BY_INTERRUPTS], hour / 8.0, hour * 1e-4);
}

TEST(Slices, SlicesOfOneCulpritInARowAreOne) {
  Vcpu vcpu;
  std::uint64_t now = kMs;
  for (int i = 0; i < 1000; ++i) vcpu.runs(kHog, now += 10 * kUs);
  vcpu.runs(kOwn, now += 10 * kUs);
  Shares said;
  vcpu.divide(now - 9 * kMs, now, 0, ~0ULL, said);
  EXPECT_EQ(said, (Shares{{kHog, 9.0 * kMs}}));
}

TEST(Slices, BeforeTheFirstSwitchNobodyIsKnown) {
  Vcpu vcpu;
  vcpu.runs(kOwn, 5 * kMs);
  Shares said;
  vcpu.divide(1 * kMs, 5 * kMs, 0, ~0ULL, said);
  EXPECT_EQ(said, (Shares{{BERTH_BY_UNKNOWN, 4.0 * kMs}}));
}

TEST(Slices, MoreCulpritsThanSumsAreUnknownAndNeverAnothers) {
  Vcpu vcpu;
  std::uint64_t now = kMs;
  for (std::uint64_t i = 0; i < 40; ++i) vcpu.runs(kNoRule + i, now += 10 * kUs);
  vcpu.runs(kOwn, now += 10 * kUs);
  Shares said;
  vcpu.divide(now - 400 * kUs, now, 0, ~0ULL, said);
  EXPECT_DOUBLE_EQ(total(said), 400.0 * kUs);
  EXPECT_EQ(said.size(), BERTH_SUMS + 1U);
  EXPECT_DOUBLE_EQ(said[BERTH_BY_UNKNOWN], (40 - BERTH_SUMS) * 10.0 * kUs);
}

// A quota that is used up while other threads of the group wait, over several periods.
TEST(Slices, TheQuotaIsBlamedForEveryPeriodOfAWait) {
  Vcpu vcpu;
  vcpu.runs(kOwn, 1 * kMs);
  vcpu.throttled(0, 3 * kMs);  // one thread runs, another one was preempted at 1 ms
  vcpu.runs(kHog, 3 * kMs);
  vcpu.runs(kOwn, 101 * kMs);
  vcpu.throttled(98 * kMs, 104 * kMs);
  vcpu.runs(BERTH_BY_IDLE, 104 * kMs);
  vcpu.runs(kOwn, 201 * kMs);
  Shares said;
  vcpu.divide(1 * kMs, 201 * kMs, (98 + 97) * kMs, 0, said);
  EXPECT_DOUBLE_EQ(said[BERTH_BY_QUOTA], 195.0 * kMs);
  EXPECT_DOUBLE_EQ(total(said), 200.0 * kMs);
}

TEST(Slices, AThreadThatWakesWithoutQuotaWaitsForIt) {
  Vcpu vcpu;
  vcpu.runs(kHog, 1 * kMs);
  vcpu.runs(kOwn, 20 * kMs);
  Shares before;
  vcpu.divide(19 * kMs, 20 * kMs, 7 * kMs, ~0ULL, before);  // of earlier throttling nothing is known
  vcpu.runs(BERTH_BY_IDLE, 21 * kMs);
  vcpu.runs(kOwn, 60 * kMs);
  Shares said;
  vcpu.divide(30 * kMs, 60 * kMs, 36 * kMs, ~0ULL, said);
  EXPECT_DOUBLE_EQ(said[BERTH_BY_QUOTA], 29.0 * kMs);
  EXPECT_DOUBLE_EQ(said[BERTH_BY_IDLE], 1.0 * kMs);
}

// --- mixes of known culprits ---

// A mix: how much each kind of culprit wants to run.
struct Mix {
  double own = 0;
  double hog = 0;
  double no_rule = 0;
  double kernel = 0;
  double interrupts = 0;                                 // share of the time
  std::optional<std::uint64_t> quota_ns = std::nullopt;  // of each 100 ms
  int groups = 1;                                        // without a rule
  std::uint64_t slice_ns = 3 * kMs;
};

// Runs two vCPUs, on which one thread of the asked group wakes, waits and runs, and sometimes moves. Truth
// and answer are collected side by side.
class Simulation {
 public:
  Simulation(const Mix& mix, unsigned seed) : mix_(mix), random_(seed) {}

  void run() {
    for (int turn = 0; turn < 1000; ++turn) take_turn();
  }
  Shares truth;
  Shares said;

 private:
  double uniform() { return std::uniform_real_distribution<double>(0, 1)(random_); }
  std::uint64_t exponential(double mean) {
    return 1 + static_cast<std::uint64_t>(std::exponential_distribution<double>(1 / mean)(random_));
  }
  std::uint64_t pick() {
    const std::array<std::pair<std::uint64_t, double>, 4> wants{
        {{kOwn, mix_.own},
         {kHog, mix_.hog},
         {kNoRule + static_cast<std::uint64_t>(uniform() * mix_.groups), mix_.no_rule},
         {BERTH_BY_KERNEL, mix_.kernel}}};
    double all = 0;
    for (const auto& [by, want] : wants) all += want;
    double at = uniform() * all;
    for (const auto& [by, want] : wants) {
      if ((at -= want) < 0) return by;
    }
    return BERTH_BY_IDLE;
  }
  // Somebody runs while the thread waits or sleeps. Interrupts come in it at a place that nobody knows.
  void others_run(std::uint64_t ns, bool waits) {
    const std::uint64_t by = throttled_ ? kHog : pick();
    vcpu().runs(by, now_);
    const auto interrupts =
        static_cast<std::uint64_t>(mix_.interrupts * static_cast<double>(ns) * (0.5 + uniform()));
    vcpu().interrupted(interrupts);
    now_ += ns;
    if (!waits) return;
    if (throttled_) {
      truth[BERTH_BY_QUOTA] += static_cast<double>(ns);
      return;
    }
    truth[BERTH_BY_INTERRUPTS] += static_cast<double>(interrupts);
    truth[by] += static_cast<double>(ns - interrupts);
  }
  void take_turn() {
    // It sleeps in the middle of a slice of somebody's, waits for some more, and runs.
    for (int n = 0; n < 2; ++n) others_run(exponential(static_cast<double>(mix_.slice_ns)), false);
    const std::uint64_t woken = now_;
    std::uint64_t begin = woken;
    const int slices = 1 + static_cast<int>(uniform() * 6);
    for (int n = 0; n < slices; ++n) {
      others_run(exponential(static_cast<double>(mix_.slice_ns)), true);
      if (n + 1 < slices && uniform() < 0.1) {
        end_wait(begin, ~0ULL);
        move();
        begin = now_;
      }
    }
    end_wait(begin, ~0ULL);
    vcpu().runs(kOwn, now_);
    std::uint64_t runs = exponential(static_cast<double>(mix_.slice_ns));
    if (!mix_.quota_ns || runs < *mix_.quota_ns) {
      now_ += runs;
      return;
    }
    // It uses its quota up, and must wait for the next period while others run.
    now_ += *mix_.quota_ns;
    std::uint64_t& throttled_ns = throttled_ns_.at(at_);
    const std::uint64_t before = throttled_ns;
    vcpu().throttled(before, now_);
    begin = now_;
    throttled_ = true;
    while (now_ - begin < 60 * kMs) others_run(exponential(static_cast<double>(mix_.slice_ns)), true);
    throttled_ = false;
    throttled_ns += now_ - begin;
    others_run(exponential(static_cast<double>(mix_.slice_ns)), true);
    end_wait(begin, before);
    vcpu().runs(kOwn, now_);
    now_ += 100 * kUs;
  }
  void end_wait(std::uint64_t begin, std::uint64_t before_ns) {
    vcpu().runs(kOwn, now_);
    vcpu().divide(begin, now_, throttled_ns_.at(at_), before_ns, said);
  }
  void move() {
    at_ ^= 1;
    vcpu().runs(BERTH_BY_IDLE, now_ - 1);
  }
  Vcpu& vcpu() { return vcpus_.at(at_); }

  Mix mix_;
  std::mt19937 random_;
  std::array<Vcpu, 2> vcpus_;
  std::size_t at_ = 0;
  std::uint64_t now_ = 10 * kMs;
  bool throttled_ = false;
  std::array<std::uint64_t, 2> throttled_ns_{};  // by vCPU
};

class BlameMixes : public ::testing::TestWithParam<int> {
 protected:
  // A hundred mixes that `draw` makes of shares 0..1; each has its culprits right in 0.98 of the time.
  template <typename Draw>
  void judge(Draw draw) {
    std::mt19937 random(static_cast<unsigned>(GetParam()));
    const auto uniform = [&] { return std::uniform_real_distribution<double>(0, 1)(random); };
    for (unsigned mix = 0; mix < 100; ++mix) {
      Simulation simulation(draw(uniform), mix);
      simulation.run();
      const double right = common(simulation.truth, simulation.said);
      EXPECT_GE(right / total(simulation.said), 0.98) << "precision of mix " << mix;
      EXPECT_GE(right / total(simulation.truth), 0.98) << "recall of mix " << mix;
    }
  }
};

TEST_P(BlameMixes, FindWhoRanAmongWorkloadsAndTheKernel) {
  judge([](const auto& uniform) {
    Mix mix{.own = uniform(), .hog = uniform(), .no_rule = uniform(), .kernel = uniform() / 4};
    mix.groups = 1 + static_cast<int>(uniform() * 10);
    mix.slice_ns = static_cast<std::uint64_t>((0.1 + 5 * uniform()) * kMs);
    return mix;
  });
}

TEST_P(BlameMixes, FindAFloodOfInterrupts) {
  judge([](const auto& uniform) {
    return Mix{.own = uniform(), .hog = uniform(), .no_rule = uniform(), .interrupts = 0.6 * uniform()};
  });
}

TEST_P(BlameMixes, FindTheQuota) {
  judge([](const auto& uniform) {
    Mix mix{.own = uniform() / 4, .hog = uniform(), .no_rule = uniform(), .kernel = uniform() / 4};
    mix.quota_ns = static_cast<std::uint64_t>((1 + 4 * uniform()) * kMs);
    return mix;
  });
}

INSTANTIATE_TEST_SUITE_P(Seeds, BlameMixes, ::testing::Values(1, 2, 3));

}  // namespace
}  // namespace berth::ebpf
