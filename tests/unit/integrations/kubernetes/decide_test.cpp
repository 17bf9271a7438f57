// SPDX-License-Identifier: Apache-2.0
#include "integrations/kubernetes/decide.h"

#include <gtest/gtest.h>

namespace berth::kubernetes {
namespace {

using model::SchedulingState;

// 14.2 cores and 2 GiB for best-effort work.
Berth healthy() {
  model::NodeState state;
  state.cpu = {.advertised = 18.2, .requested_latency_sensitive = 4, .utilisation = 0.5};
  state.memory = {.advertised = 4.0 * (1 << 30), .requested_latency_sensitive = 2.0 * (1 << 30)};
  return {.state = state, .silence = {}};
}

Berth closed(SchedulingState cpu, SchedulingState memory) {
  Berth berth = healthy();
  berth.state->cpu.state = cpu;
  berth.state->memory.state = memory;
  return berth;
}

TEST(KubernetesDecide, PublishesWhatIsLeft) {
  EXPECT_EQ(wanted_of(healthy(), true),
            (Wanted{.cpu_millis = 14200, .memory_bytes = 2147483648, .closed = ""}));
}

TEST(KubernetesDecide, RoundsDown) {
  Berth berth = healthy();
  berth.state->cpu.advertised = 4.0019999;
  berth.state->memory.advertised += 1048575;
  EXPECT_EQ(wanted_of(berth, true).cpu_millis, 1U);
  EXPECT_EQ(wanted_of(berth, true).memory_bytes, 2147483648U);
  berth.state->memory.advertised += 1;
  EXPECT_EQ(wanted_of(berth, true).memory_bytes, 2148532224U);
}

TEST(KubernetesDecide, HasLimits) {
  Berth berth = healthy();
  berth.state->cpu.advertised = 1e18;
  berth.state->memory.advertised = 1e18;
  EXPECT_EQ(wanted_of(berth, true).cpu_millis, kMaxCpuMillis);
  EXPECT_EQ(wanted_of(berth, true).memory_bytes, kMaxMemoryBytes);
  berth.state->cpu.advertised = 1;
  EXPECT_EQ(wanted_of(berth, true).cpu_millis, 0U);
}

TEST(KubernetesDecide, ASilentBerthdHasNothingAndNoTaint) {
  EXPECT_EQ(wanted_of({.state = std::nullopt, .silence = "berthd does not run"}, true), Wanted());
}

TEST(KubernetesDecide, TheTaintNamesTheWorseResource) {
  using enum SchedulingState;
  EXPECT_EQ(wanted_of(closed(no_schedule, schedule), true).closed, "cpu");
  EXPECT_EQ(wanted_of(closed(schedule, no_schedule), true).closed, "memory");
  EXPECT_EQ(wanted_of(closed(no_schedule, no_schedule), true).closed, "memory");
  EXPECT_EQ(wanted_of(closed(no_schedule, evict), true).closed, "memory");
  // The amounts stay: running pods have them.
  EXPECT_EQ(wanted_of(closed(no_schedule, evict), true).cpu_millis, 14200U);
}

TEST(KubernetesDecide, WithoutTheTaintAClosedHostHasNothing) {
  using enum SchedulingState;
  EXPECT_EQ(wanted_of(closed(no_schedule, schedule), false), Wanted());
  EXPECT_EQ(wanted_of(closed(schedule, evict), false), Wanted());
  EXPECT_EQ(wanted_of(healthy(), false).cpu_millis, 14200U);
}

TEST(KubernetesDecide, AChangeOfTheTaintAndOfNothingIsUrgent) {
  const Wanted some{.cpu_millis = 100, .memory_bytes = 100, .closed = ""};
  EXPECT_FALSE(is_urgent(some, some));
  EXPECT_FALSE(is_urgent({.cpu_millis = 1, .memory_bytes = 9999, .closed = ""}, some));
  EXPECT_TRUE(is_urgent({.cpu_millis = 100, .memory_bytes = 100, .closed = "cpu"}, some));
  EXPECT_TRUE(is_urgent({.cpu_millis = 0, .memory_bytes = 100, .closed = ""}, some));
  EXPECT_TRUE(is_urgent(some, {.cpu_millis = 100, .memory_bytes = 0, .closed = ""}));
}

TEST(KubernetesDecide, ASmallChangeIsNoNews) {
  const Wanted published{.cpu_millis = 1000, .memory_bytes = 1000, .closed = ""};
  const auto news = [&](std::uint64_t cpu, std::uint64_t memory, double share) {
    return is_news({.cpu_millis = cpu, .memory_bytes = memory, .closed = ""}, published, share);
  };
  EXPECT_FALSE(news(1009, 991, 0.01));
  EXPECT_TRUE(news(1010, 1000, 0.01));
  EXPECT_TRUE(news(1000, 990, 0.01));
  EXPECT_FALSE(news(1000, 1000, 0));
  EXPECT_TRUE(news(1001, 1000, 0));
}

TEST(KubernetesDecide, PatchesBerthsMembersAlone) {
  const Names names("example.org");
  EXPECT_EQ(status_patch({.cpu_millis = 14200, .memory_bytes = 2147483648, .closed = "cpu"}, names),
            R"({"status":{"allocatable":{"example.org/be-cpu":"14200","example.org/be-memory":"2147483648"},)"
            R"("capacity":{"example.org/be-cpu":"14200","example.org/be-memory":"2147483648"}}})");
  EXPECT_EQ(status_removal(names),
            R"({"status":{"allocatable":{"example.org/be-cpu":null,"example.org/be-memory":null},)"
            R"("capacity":{"example.org/be-cpu":null,"example.org/be-memory":null}}})");
}

}  // namespace
}  // namespace berth::kubernetes
