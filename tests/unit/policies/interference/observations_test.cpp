// SPDX-License-Identifier: Apache-2.0
#include "policies/interference/learning/observations.h"

#include "tests/unit/policies/interference/shared_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::policies {

using model::Response;
using ::testing::HasSubstr;

namespace {

constexpr auto kLs = model::WorkloadClass::latency_sensitive;
constexpr auto kBe = model::WorkloadClass::best_effort;

class ObservationsTest : public ::testing::Test {
 protected:
  ObservationsTest() {
    host.add("web-1", kLs, {0});
    host.add("web-2", kLs, {1});
    host.add("batch", kBe, {4});
    tick(0, 0, 0);
  }
  Observations::Tick tick(double web_1, double web_2, double batch) {
    host.next();
    host.use("web-1", web_1);
    host.use("web-2", web_2);
    host.use("batch", batch);
    return observations.take(host.snapshot, model::DomainKind::llc);
  }

  void reports(const std::string& id, double fraction) {
    host.of(id).progress = {{.time = host.snapshot.time, .fraction = fraction}};
  }

  testing::SharedHost host;
  Observations observations;
};

}  // namespace

TEST_F(ObservationsTest, TellWhatNeighboursUsedInTheInterval) {
  const auto seen = tick(0.4, 0.6, 1).seen;
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[0].service, "web");
  EXPECT_EQ(seen[0].instance, "web-1");
  EXPECT_EQ(seen[0].time, host.snapshot.time);
  EXPECT_EQ(seen[0].response, Response::cpu);
  EXPECT_DOUBLE_EQ(seen[0].y, 0.4);
  EXPECT_DOUBLE_EQ(seen[0].u, 0.4);
  EXPECT_DOUBLE_EQ(seen[0].sc, 1);        // the batch job on its sibling
  EXPECT_DOUBLE_EQ(seen[0].ss, 0.6 / 6);  // web-2 among six vCPUs
  EXPECT_FALSE(seen[0].llc);
  EXPECT_DOUBLE_EQ(seen[1].sc, 0);
  EXPECT_DOUBLE_EQ(seen[1].ss, 1.4 / 6);
}

// A user who starts processes has others moved. The rest is learned of all the same.
TEST_F(ObservationsTest, ANeighbourThatMovedCountsAtEachPlaceForItsPartOfTheInterval) {
  const double begin = host.snapshot.time;
  Moves moves;
  host.next();
  const double interval_s = host.snapshot.time - begin;
  host.use("web-1", 0.4);
  host.use("web-2", 0.6);
  host.use("batch", 1);
  // Beside web-2 for a quarter of the time, anywhere for another one, beside web-1 for the rest.
  moves["batch"] = {{.cpus = model::CpuSet{5}, .until = begin + interval_s / 4},
                    {.cpus = {}, .until = begin + interval_s / 2}};
  const auto seen = observations.take(host.snapshot, model::DomainKind::llc, moves).seen;
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_DOUBLE_EQ(seen[0].sc, 0.5 + 0.25 / 8);
  EXPECT_DOUBLE_EQ(seen[1].sc, 0.25 + 0.25 / 8);
  EXPECT_DOUBLE_EQ(tick(0.4, 0.6, 1).seen[0].sc, 1) << "later it stays where it is";
}

TEST_F(ObservationsTest, AnInstanceThatMovedIsNotObservedAndItsWorkBeginsAnew) {
  reports("web-1", 0.1);
  tick(1, 0, 0);
  reports("web-1", 0.2);
  tick(1, 0, 0);
  Moves moves;
  moves["web-1"] = {{.cpus = model::CpuSet{2}, .until = host.snapshot.time + 1}};
  host.next();
  host.use("web-1", 1);
  host.use("web-2", 0.5);
  reports("web-1", 0.3);
  const auto seen = observations.take(host.snapshot, model::DomainKind::llc, moves).seen;
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].instance, "web-2");
  for (const double begun_anew : {0.4, 0.5}) {
    reports("web-1", begun_anew);
    EXPECT_TRUE(tick(1, 0, 0).seen.empty()) << begun_anew;
  }
  reports("web-1", 0.6);
  EXPECT_EQ(tick(1, 0, 0).seen.size(), 1U);
}

TEST_F(ObservationsTest, NothingIsObservedOfWhatUsedNoCpu) {
  EXPECT_TRUE(tick(0, 0, 1).seen.empty());
  EXPECT_EQ(tick(0.5, 0, 1).seen.size(), 1U);
  // A snapshot that is assembled again has no new use.
  host.snapshot.time += 1;
  EXPECT_TRUE(observations.take(host.snapshot, model::DomainKind::llc).seen.empty());
}

TEST_F(ObservationsTest, CyclesPerInstructionComeFirst) {
  host.of("web-1").cpi = 1.5;
  host.of("web-1").llc_misses_per_s = 1e6;
  host.of("web-2").llc_misses_per_s = 2e6;
  host.of("batch").llc_misses_per_s = 6e6;
  reports("web-1", 0.5);
  const auto seen = tick(0.4, 0.6, 1).seen;
  EXPECT_EQ(seen[0].response, Response::cpi);
  EXPECT_EQ(seen[0].y, 1.5);
  EXPECT_DOUBLE_EQ(*seen[0].llc, 1e6);  // eight million on eight vCPUs
  EXPECT_EQ(seen[1].response, Response::cpu);
}

TEST_F(ObservationsTest, WorkIsAddedUpUntilTheProgressRises) {
  reports("web-1", 0.05);
  tick(1, 0, 0);
  reports("web-1", 0.1);
  EXPECT_EQ(tick(1, 0, 0).seen.size(), 0U);  // the beginning
  EXPECT_EQ(tick(1, 0, 0).seen.size(), 0U);
  reports("web-1", 0.3);
  const auto seen = tick(0.5, 0, 1).seen;
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].response, Response::cost);
  EXPECT_NEAR(seen[0].y, (5 + 2.5) / 0.2, 1e-9);  // CPU seconds for the whole task
  EXPECT_DOUBLE_EQ(seen[0].sc, 0.5);              // busy in one tick of two
  EXPECT_DOUBLE_EQ(seen[0].u, 0.75);
}

TEST_F(ObservationsTest, WorkWithAMissingTickIsNoObservation) {
  reports("web-1", 0.1);
  tick(1, 0, 0);
  reports("web-1", 0.2);
  tick(1, 0, 0);
  host.next();
  host.use("web-1", 1);  // no snapshot of this tick
  reports("web-1", 0.3);
  EXPECT_TRUE(tick(1, 0, 0).seen.empty());
  // The step to 0.4 may have begun in the tick that was missed.
  reports("web-1", 0.4);
  EXPECT_TRUE(tick(1, 0, 0).seen.empty());
  reports("web-1", 0.5);
  const auto next = tick(1, 0, 0).seen;
  ASSERT_EQ(next.size(), 1U);
  EXPECT_NEAR(next[0].y, 5 / 0.1, 1e-9);
  // Idle time needs no tick.
  host.next();
  host.use("web-1", 0);
  reports("web-1", 0.7);
  const auto after = tick(1, 0, 0).seen;
  ASSERT_EQ(after.size(), 1U);
  EXPECT_NEAR(after[0].y, 5 / 0.2, 1e-9);
}

TEST_F(ObservationsTest, TheRestOfAStepIsNoStep) {
  // berthd begins in the middle of a step of 20 s.
  reports("web-1", 0.1);
  tick(1, 0, 0);
  tick(1, 0, 0);
  reports("web-1", 0.2);
  EXPECT_TRUE(tick(1, 0, 0).seen.empty());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(tick(1, 0, 0).seen.empty());
  reports("web-1", 0.3);
  const auto whole = tick(1, 0, 0).seen;
  ASSERT_EQ(whole.size(), 1U);
  EXPECT_NEAR(whole[0].y, 20 / 0.1, 1e-9);
  // A tick is missed in the middle of the next one.
  tick(1, 0, 0);
  host.next();
  host.use("web-1", 1);
  tick(1, 0, 0);
  reports("web-1", 0.4);
  EXPECT_TRUE(tick(1, 0, 0).seen.empty());
  // The next one takes longer than neighbours are followed.
  for (int i = 0; i < 123; ++i) tick(1, 0, 0);
  reports("web-1", 0.5);
  EXPECT_TRUE(tick(1, 0, 0).seen.empty());
  reports("web-1", 0.6);
  EXPECT_EQ(tick(1, 0, 0).seen.size(), 1U);
}

TEST_F(ObservationsTest, ProgressThatFallsIsSaidAndTeachesNothing) {
  reports("web-1", 0.5);
  tick(1, 0, 0);
  reports("web-1", 0.2);
  const auto fallen = tick(1, 0, 0);
  EXPECT_TRUE(fallen.seen.empty());
  ASSERT_EQ(fallen.fallen.size(), 1U);
  EXPECT_EQ(fallen.fallen[0].instance, "web-1");
  EXPECT_THAT(fallen.fallen[0].why, HasSubstr("fell from 0.5 to 0.2"));
  reports("web-1", 0.4);
  EXPECT_EQ(tick(1, 0, 0).seen.size(), 1U);
}

TEST_F(ObservationsTest, AnotherRunOfTheSameNameBeginsAnew) {
  reports("web-1", 0.5);
  tick(1, 0, 0);
  host.of("web-1").created += 7;
  reports("web-1", 0.6);
  EXPECT_TRUE(tick(1, 0, 0).seen.empty());
}

TEST_F(ObservationsTest, AQuotaThatThrottlesHidesTheUse) {
  host.of("web-1").cpu_throttled = 0.3;
  const auto seen = tick(1, 1, 0);
  ASSERT_EQ(seen.seen.size(), 1U);
  EXPECT_EQ(seen.seen[0].instance, "web-2");
  EXPECT_EQ(seen.throttled, 1U);
}

}  // namespace berth::policies
