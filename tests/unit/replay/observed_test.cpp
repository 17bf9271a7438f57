// SPDX-License-Identifier: Apache-2.0
// The account of what recorded ticks teach, and of what they lack.
#include "replay/observed.h"

#include "tests/unit/policies/interference/shared_host.h"
#include "tests/unit/policies/interference/simulated_host.h"

#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::replay {
namespace {

using model::Response;
using policies::testing::SharedHost;
using policies::testing::SimulatedHost;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kLs = model::WorkloadClass::latency_sensitive;
constexpr auto kLlc = model::DomainKind::llc;

TEST(Observed, CountsByServiceAndResponse) {
  SimulatedHost host(Response::cpi);
  Observed observed;
  for (int i = 0; i < 10; ++i) {
    const auto seen = observed.take(host.tick(), kLlc);
    EXPECT_EQ(seen.size(), i == 0 ? 0U : 2U);  // one sample covers no interval
  }
  EXPECT_EQ(observed.ticks(), 10U);
  EXPECT_EQ(observed.missing(), 0U);
  EXPECT_EQ(observed.observations(), 18U);
  EXPECT_EQ(observed.host(), "host-1");
  EXPECT_EQ(observed.ended() - observed.begun(), 45);
  ASSERT_EQ(observed.counts().size(), 1U);
  const auto& [key, count] = *observed.counts().begin();
  EXPECT_EQ(key.service, "web");
  EXPECT_EQ(key.response, Response::cpi);
  EXPECT_EQ(count.observations, 18U);
  EXPECT_EQ(count.at_once, 2U);
  EXPECT_EQ(count.with_llc, 0U);
  EXPECT_THAT(observed.lacks(), ElementsAre(HasSubstr("no llc: ")));
  for (auto& workload : host.host().snapshot.workloads) workload.llc_misses_per_s = 1e6;
  observed.take(host.tick(), kLlc);
  EXPECT_EQ(observed.counts().begin()->second.with_llc, 2U);
  EXPECT_TRUE(observed.lacks().empty());
}

TEST(Observed, TakesTheDomainOfTheSettings) {
  std::vector<model::Cpu> cpus;
  for (int cpu = 0; cpu < 4; ++cpu)
    cpus.push_back({.cpu = cpu, .core = cpu, .llc = cpu / 2, .efficiency = {}});
  SharedHost host;
  host.snapshot.topology = *model::Topology::make(cpus);
  host.add("batch", model::WorkloadClass::best_effort, {2});
  host.add("web-1", kLs, {0}).cpi = 1.2;
  Observed by_cache;
  Observed by_socket;
  for (int i = 0; i < 2; ++i) {
    host.next();
    host.use("batch", 0.9);
    host.use("web-1", 0.5);
    const auto near = by_cache.take(host.snapshot, kLlc);
    const auto far = by_socket.take(host.snapshot, model::DomainKind::socket);
    if (i == 0) continue;
    ASSERT_EQ(near.size(), 1U);
    EXPECT_EQ(near[0].ss, 0);
    ASSERT_EQ(far.size(), 1U);
    EXPECT_DOUBLE_EQ(far[0].ss, 0.3);  // one of three
  }
}

TEST(Observed, SaysWhyAServiceHasNoObservation) {
  SharedHost host;
  host.add("idle-1", kLs, {0});
  host.add("slow-1", kLs, {1}).progress = {{.time = 1, .fraction = 0.5}};
  host.add("tight-1", kLs, {2}).cpu_throttled = 0.4;
  host.add("wide-1", kLs, {3}).vcpus.reset();
  Observed observed;
  for (int i = 0; i < 3; ++i) {
    host.next();
    host.use("idle-1", 0);
    for (const char* id : {"slow-1", "tight-1", "wide-1"}) host.use(id, 0.5);
    EXPECT_TRUE(observed.take(host.snapshot, kLlc).empty());
  }
  EXPECT_THAT(
      observed.lacks(),
      ElementsAre("nothing of wide: no instance requests vCPUs", "nothing of idle: no instance used CPU",
                  "nothing of slow: no rise of its progress was seen over ticks without a gap",
                  HasSubstr("nothing of tight: its own quota throttled it"),
                  "a quota throttled an instance 2 times, which hides its use"));
}

TEST(Observed, SaysWhatItHasOnlyAWeakResponseOf) {
  SharedHost host;
  host.add("web-1", kLs, {0});
  Observed observed;
  for (int i = 0; i < 2; ++i) {
    host.next();
    host.use("web-1", 0.5);
    observed.take(host.snapshot, kLlc);
  }
  const auto lacks = observed.lacks();
  EXPECT_THAT(lacks, Contains(HasSubstr("no cpi of web: ")));
  EXPECT_THAT(lacks, Contains(HasSubstr("no cost of web: ")));
  EXPECT_THAT(lacks, Contains(HasSubstr("web by cpu teaches nothing: there were never two instances")));
  EXPECT_THAT(Observed().lacks(), ElementsAre("no workload was latency-sensitive"));
}

TEST(Observed, CountsTicksThatOnlySamplesTellOf) {
  SharedHost host;
  host.add("web-1", kLs, {0}).cpi = 1.2;
  Observed observed;
  for (int i = 0; i < 6; ++i) {
    host.next();
    host.use("web-1", 0.5);
    if (i != 2 && i != 4) observed.take(host.snapshot, kLlc);
  }
  EXPECT_EQ(observed.ticks(), 4U);
  EXPECT_EQ(observed.missing(), 2U);
  EXPECT_EQ(observed.observations(), 3U);
  EXPECT_THAT(observed.lacks(), Contains(HasSubstr("2 ticks are missing")));
}

TEST(Observed, LeavesOutWhatNoLearningMaySee) {
  SharedHost host;
  host.add("web-1", kLs, {0}).cpi = std::numeric_limits<double>::quiet_NaN();
  Observed observed;
  for (int i = 0; i < 2; ++i) {
    host.next();
    host.use("web-1", 0.5);
    EXPECT_TRUE(observed.take(host.snapshot, kLlc).empty());
  }
  EXPECT_EQ(observed.observations(), 0U);
  EXPECT_THAT(observed.lacks(), Contains("nothing of web: all its observations had impossible figures"));
  EXPECT_THAT(observed.lacks(), Contains(HasSubstr("1 observation was left out for an impossible figure, "
                                                   "first web-1 by cpi at 1790000010.000: y is nan")));
}

// A hostile trace may have a new name in each tick.
TEST(Observed, KeepsNoMoreServicesThanItsLimit) {
  SharedHost host;
  Observed observed;
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < Observed::kMostServices + 50; ++i) {
    host.snapshot.workloads.clear();
    const std::string id = "s" + std::to_string(i) + "-1";
    host.add(id, kLs, {0}).cpi = 1.2;
    for (int sample = 0; sample < 2; ++sample) {
      host.next();
      host.use(id, 0.5);
    }
    all += observed.take(host.snapshot, kLlc).size();
  }
  EXPECT_EQ(all, Observed::kMostServices + 50);
  EXPECT_EQ(observed.observations(), all);
  EXPECT_EQ(observed.counts().size(), Observed::kMostServices);
  EXPECT_THAT(observed.lacks(), ElementsAre(HasSubstr("no llc: "), HasSubstr("ticks are missing")));
}

}  // namespace
}  // namespace berth::replay
