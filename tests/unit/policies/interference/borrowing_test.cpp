// SPDX-License-Identifier: Apache-2.0
// Borrowing idle vCPUs, tick by tick, on a host where a service owns half of the vCPUs.
#include "policies/interference/borrowing/borrowing.h"

#include "policies/decide.h"
#include "policies/explain.h"
#include "policies/interference/borrowing/lender.h"
#include "tests/unit/policies/hosts.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::policies {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

namespace {

constexpr float kUsual_us = 200;
constexpr float kLong_us = 5000;

void add_sample(model::Workload& workload, double time, double cores, std::optional<float> delay_us) {
  model::UsageSample sample;
  sample.time = time;
  sample.cpu_cores = cores;
  if (delay_us) sample.runq_latency_us = *delay_us;
  workload.usage.add(sample, 60);
}

std::vector<std::string> kinds(const model::Plan& plan) {
  std::vector<std::string> list;
  for (const model::Action& action : plan.actions)
    list.push_back(std::string(action.kind()) + " " + *action.workload());
  return list;
}

// Eight vCPUs with one thread each: web owns 0-3 and uses 0.8 cores, batch has the rest and would use more.
class Borrow : public ::testing::Test {
 protected:
  Borrow() {
    settings_.interference.borrow = true;
    settings_.safety.repin_cooldown_s = 10;
    auto web = testing::pinned(testing::latency_sensitive("web", 4), "0-3");
    web.pinned_at = 900;
    auto batch = testing::pinned(testing::best_effort("batch", 4), "4-7");
    batch.usage = {};
    snapshot_.workloads = {batch, web};
  }
  model::Workload& batch() { return snapshot_.workloads[0]; }
  model::Workload& web() { return snapshot_.workloads[1]; }

  // One tick of the host, whose plan is carried out.
  model::Plan tick() {
    snapshot_.time += 1;
    for (model::Workload& workload : snapshot_.workloads) {
      if (workload.workload_class == model::WorkloadClass::best_effort) {
        const double cores = batch_cores_.value_or(busy_ * static_cast<double>(workload.cpus.size()));
        add_sample(workload, snapshot_.time, cores, 0.0F);
      } else {
        add_sample(workload, snapshot_.time, cores_, delay_us_);
      }
    }
    model::Plan plan = decide(snapshot_, settings_, {"interference"});
    testing::apply(plan, snapshot_);
    return plan;
  }
  model::Plan ticks(int count) {
    model::Plan plan;
    for (int i = 0; i < count; ++i) plan = tick();
    return plan;
  }
  // Until web lends so many vCPUs, or for two minutes.
  void lend(std::size_t count) {
    for (int i = 0; i < 120 && lent().size() < count; ++i) tick();
    ASSERT_EQ(lent().size(), count);
  }
  model::CpuSet lent(const std::string& id = "web") const {
    for (const model::Workload& workload : snapshot_.workloads) {
      if (workload.id == id && workload.lending) return workload.lending->cpus;
    }
    return {};
  }
  static const model::Lender& lender(const model::Plan& plan, const std::string& id = "web") {
    return plan.findings.interference->borrowing->lenders.at(id);
  }
  static const model::Borrower& borrower(const model::Plan& plan, const std::string& id = "batch") {
    return plan.findings.interference->borrowing->borrowers.at(id);
  }

  PolicySettings settings_;
  model::Snapshot snapshot_ = testing::snapshot_of(
      testing::host({.sockets = 1, .llcs_per_socket = 1, .cores_per_llc = 8, .threads_per_core = 1}));
  double busy_ = 1;                    // share of its vCPUs that best-effort work uses
  std::optional<double> batch_cores_;  // or so many cores
  double cores_ = 0.8;
  std::optional<float> delay_us_ = kUsual_us;
};

TEST_F(Borrow, NothingIsLentUnlessItIsSwitchedOn) {
  settings_.interference.borrow = false;
  const auto plan = ticks(60);
  EXPECT_FALSE(plan.findings.interference->borrowing);
  EXPECT_THAT(plan.actions, IsEmpty());
  EXPECT_EQ(batch().cpus, testing::cpus("4-7"));
}

TEST_F(Borrow, MeasuresFirstThenMakesTheWorkIdleThenLendsOneVcpuATick) {
  for (std::size_t i = 0; i < kLenderSamples; ++i) {
    const auto plan = tick();
    EXPECT_THAT(plan.actions, IsEmpty()) << i;
    EXPECT_THAT(lender(plan).reason, HasSubstr("measured with nothing lent")) << i;
  }
  auto plan = tick();
  EXPECT_THAT(kinds(plan), ElementsAre("set-cpu-idle batch"));
  EXPECT_DOUBLE_EQ(lender(plan).target_s.value(), kDelayRise * kUsual_us * 1e-6);
  EXPECT_THAT(borrower(plan).reason, HasSubstr("idle priority first"));
  EXPECT_TRUE(batch().cpu_idle);
  EXPECT_TRUE(lent().empty()) << "not before the priority is known to be idle";
  plan = tick();
  EXPECT_THAT(testing::pins(plan), ElementsAre("batch=3-7"));
  EXPECT_THAT(plan.actions[0].reason, HasSubstr("it borrows vCPUs 3"));
  EXPECT_EQ(borrower(plan).cpus, testing::cpus("3"));
  EXPECT_THAT(borrower(plan).reason, HasSubstr("borrows from web"));
  EXPECT_THAT(testing::pins(tick()), ElementsAre("batch=2-7"));
  EXPECT_THAT(testing::pins(tick()), ElementsAre("batch=1-7"));
  plan = ticks(5);
  EXPECT_THAT(plan.actions, IsEmpty()) << "it keeps as many vCPUs as it uses, rounded up";
  EXPECT_THAT(lender(plan).reason, HasSubstr("used up to 0.8 of its 4 vCPUs"));
}

TEST_F(Borrow, AStepMayBeOfSeveralVcpus) {
  settings_.interference.borrow_step = 2;
  lend(2);
  EXPECT_EQ(lent(), testing::cpus("2-3"));
}

TEST_F(Borrow, AMissTakesAllBackInThatTickAndLendsAgainAfterAPause) {
  lend(3);
  delay_us_ = kLong_us;
  auto plan = tick();
  EXPECT_THAT(testing::pins(plan), ElementsAre("batch=4-7"));
  EXPECT_TRUE(lender(plan).missed);
  EXPECT_EQ(lender(plan).withdrawn, testing::cpus("1-3"));
  EXPECT_THAT(lender(plan).reason, HasSubstr("waited 5 ms"));
  EXPECT_TRUE(batch().cpu_idle) << "its vCPUs go first";
  delay_us_ = kUsual_us;
  plan = tick();
  EXPECT_THAT(kinds(plan), ElementsAre("set-cpu-idle batch"));
  EXPECT_FALSE(batch().cpu_idle);
  EXPECT_THAT(lender(plan).reason, HasSubstr("pauses for another 9 s"));
  const double missed_at = snapshot_.time - 1;
  lend(1);
  EXPECT_GE(snapshot_.time, missed_at + kFirstPause_s);
}

TEST_F(Borrow, ThePauseDoublesUpToItsLimitAndIsForgiven) {
  double expected = kFirstPause_s;
  for (int i = 0; i < 9; ++i) {
    for (int waited = 0; waited < 700 && lent().empty(); ++waited) tick();
    ASSERT_FALSE(lent().empty()) << i;
    delay_us_ = kLong_us;
    EXPECT_TRUE(lender(tick()).missed);
    delay_us_ = kUsual_us;
    EXPECT_DOUBLE_EQ(web().lending->pause_s, expected) << i;
    EXPECT_DOUBLE_EQ(*web().lending->paused_until, snapshot_.time + expected);
    expected = std::min(2 * expected, kLongestPause_s);
  }
  ticks(static_cast<int>(kLongestPause_s + kForgiven_s) + 1);
  EXPECT_DOUBLE_EQ(web().lending->pause_s, 0);
}

TEST_F(Borrow, TheOperatorsLimitIsTheTarget) {
  settings_.interference.max_runq_latency_s = 0.002;
  lend(3);
  delay_us_ = 1900;
  EXPECT_FALSE(lender(tick()).missed);
  delay_us_ = 2100;
  const auto plan = tick();
  EXPECT_TRUE(lender(plan).missed);
  EXPECT_DOUBLE_EQ(lender(plan).target_s.value(), 0.002);
}

TEST_F(Borrow, TheTargetIsNeverBelowWhatASwitchOfContextTakes) {
  delay_us_ = 10;
  lend(3);
  delay_us_ = 90;
  EXPECT_FALSE(lender(tick()).missed);
}

TEST_F(Borrow, TheUsualDelayIsMeasuredAgainWithNothingLent) {
  lend(3);
  const double measured_at = *web().lending->measured_at;
  while (snapshot_.time < measured_at + kMeasuredAgain_s - 1) tick();
  EXPECT_THAT(lent(), SizeIs(3));
  auto plan = tick();
  EXPECT_TRUE(lent().empty());
  EXPECT_FALSE(lender(plan).missed);
  EXPECT_THAT(lender(plan).reason, HasSubstr("measured again"));
  EXPECT_EQ(web().lending->pause_s, 0);
  delay_us_ = 2 * kUsual_us;
  lend(1);
  EXPECT_DOUBLE_EQ(*web().lending->usual_delay_s, 2e-6 * kUsual_us);
}

TEST_F(Borrow, AMeasurementWithoutADelayIsNone) {
  ticks(5);
  web().lending = model::LendingState{};
  web().lending->quiet_since = web().lending->measured_at = snapshot_.time;
  const auto plan = tick();
  EXPECT_FALSE(lender(plan).target_s);
  EXPECT_THAT(lender(plan).reason, HasSubstr("usual delay is not known yet"));
  lend(3);
}

TEST_F(Borrow, NothingIsAddedWhileTheResponseRisesAndAllGoesBackWhenItRoseTooFar) {
  web().cpi = 1;
  lend(1);
  web().cpi = 1.15;
  auto plan = ticks(20);
  EXPECT_THAT(lent(), SizeIs(::testing::Le(2U))) << "the figure is smoothed, so that one more may be lent";
  EXPECT_THAT(lender(plan).reason, HasSubstr("cycles per instruction"));
  web().cpi = 1.5;
  bool missed = false;
  for (int i = 0; i < 20 && !missed; ++i) missed = lender(tick()).missed;
  EXPECT_TRUE(missed);
  EXPECT_TRUE(lent().empty());
}

TEST_F(Borrow, AStragglerAYoungOneAndOneThatMayNotLendLendNothing) {
  lend(3);
  web().straggled_at = snapshot_.time;
  auto plan = tick();
  EXPECT_TRUE(lent().empty());
  EXPECT_THAT(lender(plan).reason, HasSubstr("straggler"));
  EXPECT_FALSE(lender(plan).missed) << "so it gets no pause";
  web().straggled_at.reset();
  web().borrow = false;
  EXPECT_THAT(lender(tick()).reason, HasSubstr("borrow is false"));
  web().borrow = true;
  web().created = snapshot_.time;
  EXPECT_THAT(lender(tick()).reason, HasSubstr("younger than 60 s"));
  ticks(static_cast<int>(kYoungLender_s));
  EXPECT_THAT(lender(tick()).reason, ::testing::Not(HasSubstr("younger")));
}

TEST_F(Borrow, AnInstanceWhoseDelayIsNotKnownLendsNothing) {
  delay_us_.reset();
  auto plan = ticks(30);
  EXPECT_TRUE(lent().empty());
  cores_ = 0;
  plan = ticks(30);
  EXPECT_THAT(lent(), SizeIs(3)) << "threads that do not run do not wait either";
  cores_ = 0.5;
  ticks(static_cast<int>(kBlindSamples) - 1);
  EXPECT_FALSE(lent().empty()) << "one reading may fail";
  plan = tick();
  EXPECT_TRUE(lent().empty()) << "they run, and nobody knows how long they wait";
  EXPECT_TRUE(lender(plan).missed);
  EXPECT_THAT(lender(plan).reason, HasSubstr("not known any more"));
  EXPECT_EQ(web().lending->pause_s, kFirstPause_s);
}

TEST_F(Borrow, AnInstanceAtIdlePriorityLendsNothing) {
  web().cpu_idle = web().fixed.cpu_idle = true;
  const auto plan = ticks(30);
  EXPECT_TRUE(lent().empty());
  EXPECT_THAT(lender(plan).reason, HasSubstr("idle priority itself"));
}

TEST_F(Borrow, NoMoreIsLentThanTheWorkUses) {
  batch_cores_ = 3.5;
  ticks(30);
  EXPECT_THAT(lent(), SizeIs(1)) << "3.5 cores on 4 vCPUs and what web leaves of one";
}

TEST_F(Borrow, WorkThatIsNotOnThePoolIsNoNeed) {
  batch_cores_ = 1;
  auto elsewhere = testing::best_effort("work-elsewhere", 1);
  elsewhere.allowed_cpus = testing::cpus("0");
  elsewhere.usage = {};
  snapshot_.workloads.push_back(elsewhere);
  for (int i = 0; i < 30; ++i) {
    add_sample(snapshot_.workloads[2], snapshot_.time + 0.5, 20, 0.0F);
    tick();
  }
  EXPECT_TRUE(lent().empty());
}

TEST_F(Borrow, WorkThatHasEnoughVcpusBorrowsNone) {
  busy_ = 0.6;
  auto plan = ticks(30);
  EXPECT_TRUE(lent().empty());
  EXPECT_THAT(lender(plan).reason, HasSubstr("enough vCPUs"));
  EXPECT_FALSE(batch().cpu_idle);
  busy_ = 1;
  lend(3);
  busy_ = 0.2;
  ticks(12);
  EXPECT_TRUE(lent().empty()) << "it goes back when it is no longer wanted";
  EXPECT_EQ(web().lending->pause_s, 0);
}

TEST_F(Borrow, IdlePriorityCountsBesideTheInstanceAlone) {
  EXPECT_TRUE(yields_to("batch.service", "system.slice/web.service"));
  EXPECT_TRUE(yields_to("system.slice/batch.service", "system.slice/a.slice/web.service"));
  EXPECT_FALSE(yields_to("batch.slice/batch.service", "system.slice/web.service"));
  EXPECT_FALSE(yields_to("system.slice/b.slice/batch", "system.slice/web.service"));
  EXPECT_FALSE(yields_to("system/batch", "system.slice/web"));
  batch().id = "batch.slice/batch";
  const auto plan = ticks(30);
  EXPECT_TRUE(lent().empty());
  EXPECT_THAT(borrower(plan, "batch.slice/batch").reason, HasSubstr("cgroups of /batch.slice"));
  EXPECT_THAT(lender(plan).reason, HasSubstr("no best-effort work can borrow"));
}

TEST_F(Borrow, WorkThatMayNotBecomeIdleOrNotBorrowDoesNot) {
  batch().fixed.cpu_idle = true;
  auto plan = ticks(20);
  EXPECT_TRUE(lent().empty());
  EXPECT_THAT(borrower(plan).reason, HasSubstr("cannot give it idle priority"));
  batch().cpu_idle = true;  // its owner made it so
  lend(1);
  batch().borrow = false;
  plan = tick();
  EXPECT_TRUE(lent().empty());
  EXPECT_THAT(borrower(plan).reason, HasSubstr("borrow is false"));
  EXPECT_THAT(kinds(plan), ElementsAre("pin batch")) << "its owner's priority stays";
}

TEST_F(Borrow, OnlyVcpusThatTheWorkMayUseAreLent) {
  batch().allowed_cpus = testing::cpus("0,4-7");
  lend(1);
  EXPECT_EQ(lent(), testing::cpus("0"));
  ticks(5);
  EXPECT_EQ(lent(), testing::cpus("0"));
  EXPECT_EQ(batch().cpus, testing::cpus("0,4-7"));
}

TEST_F(Borrow, WorkThatMayUseNoVcpuOfAnInstanceKeepsItsPriority) {
  batch().allowed_cpus = testing::cpus("4-7");
  const auto plan = ticks(30);
  EXPECT_FALSE(batch().cpu_idle);
  EXPECT_THAT(lender(plan).reason, HasSubstr("no best-effort work can borrow"));
}

TEST_F(Borrow, ThePriorityDoesNotFlapWithTheNeed) {
  // The mean of three samples is 0.8 of the pool once in six ticks.
  constexpr std::array kCores{2.3, 4.0, 3.4, 2.0, 2.0, 2.3};
  batch_cores_ = kCores.back();
  ticks(10);
  std::vector<std::string> changes;
  for (std::size_t i = 0; i < 10 * kCores.size(); ++i) {
    batch_cores_ = kCores[i % kCores.size()];
    for (const std::string& kind : kinds(tick())) {
      if (kind == "set-cpu-idle batch") changes.push_back(kind);
    }
  }
  EXPECT_THAT(changes, SizeIs(1));
  batch_cores_ = 0;
  ticks(12);
  EXPECT_FALSE(batch().cpu_idle) << "work that has enough gets its priority back";
}

TEST_F(Borrow, TheInstanceWithMostSlackLendsFirst) {
  auto other = testing::pinned(testing::latency_sensitive("other", 2), "4-5");
  other.pinned_at = 900;
  snapshot_.workloads.insert(snapshot_.workloads.begin() + 1, other);
  batch().cpus = testing::cpus("6-7");
  // Both use 0.8 cores: 0.2 of each vCPU of web, and 0.4 of each of other.
  for (int i = 0; i < 30 && lent("web").empty(); ++i) {
    ASSERT_TRUE(lent("other").empty());
    tick();
  }
  EXPECT_FALSE(lent("web").empty());
}

TEST_F(Borrow, AMissOfOneLenderKeepsTheOthersFromLendingMore) {
  auto other = testing::pinned(testing::latency_sensitive("other", 2), "4-5");
  other.pinned_at = 900;
  snapshot_.workloads.insert(snapshot_.workloads.begin() + 1, other);
  batch().cpus = testing::cpus("6-7");
  lend(1);
  ASSERT_TRUE(snapshot_.workloads[2].id == "web");
  delay_us_ = kLong_us;
  const auto plan = tick();
  EXPECT_TRUE(lent("web").empty());
  EXPECT_TRUE(lent("other").empty());
  EXPECT_FALSE(lender(plan, "other").missed) << "it lent nothing";
}

TEST_F(Borrow, SwitchedOffVcpusGoBackFirstAndPrioritiesAfterwards) {
  lend(3);
  settings_.interference.borrow = false;
  auto plan = tick();
  EXPECT_THAT(kinds(plan), ElementsAre("pin batch"));
  EXPECT_EQ(batch().cpus, testing::cpus("4-7"));
  EXPECT_THAT(kinds(tick()), ElementsAre("set-cpu-idle batch"));
  EXPECT_FALSE(batch().cpu_idle);
  EXPECT_THAT(tick().actions, IsEmpty());
}

TEST_F(Borrow, WorkThatBecomesLatencySensitiveIsIdleNoMore) {
  lend(1);
  batch().workload_class = model::WorkloadClass::latency_sensitive;
  const auto plan = tick();
  EXPECT_FALSE(batch().cpu_idle);
  EXPECT_THAT(kinds(plan), ::testing::Contains("set-cpu-idle batch"));
}

TEST_F(Borrow, AnInstanceThatMovesLendsNothing) {
  lend(3);
  web().allowed_cpus = testing::cpus("0,2-7");
  const auto plan = tick();
  EXPECT_TRUE(lent().empty());
  EXPECT_THAT(lender(plan).reason, HasSubstr("pin changes"));
  const auto owned = web().cpus;
  EXPECT_FALSE(batch().cpus.intersects(owned));
}

// The load swings: it uses its vCPUs for five seconds, and rests for five.
TEST_F(Borrow, ALoadThatSwingsDoesNotFlap) {
  int changes = 0;
  model::CpuSet before;
  for (int i = 0; i < 600; ++i) {
    const bool busy = i / 5 % 2 == 0;
    cores_ = busy ? 2.6 : 0.1;
    // Its threads wait longer while others are on its vCPUs, as a real service's do.
    delay_us_ = busy ? (lent().empty() ? 800.F : 900.F) : 100.F;
    tick();
    if (lent() != before) ++changes;
    before = lent();
  }
  EXPECT_LE(changes, 6) << "it lends what it never uses, and measures once in ten minutes";
  EXPECT_FALSE(lent().empty());
}

TEST_F(Borrow, ALoadThatSuffersInEachSwingIsLeftAloneForLongerAndLonger) {
  int misses = 0;
  for (int i = 0; i < 1800; ++i) {
    const bool busy = i / 5 % 2 == 0;
    cores_ = busy ? 1.6 : 0.1;
    delay_us_ = busy && !lent().empty() ? kLong_us : 100.F;
    if (lender(tick()).missed) ++misses;
  }
  EXPECT_LE(misses, 9) << "10, 20, 40, 80, 160, 320 s, and then ten minutes";
  EXPECT_GE(misses, 3);
}

// The service uses all of its vCPUs alike. Best-effort work gets the rest of each lent one.
TEST_F(Borrow, BestEffortWorkGainsAQuarterBesideAServiceThatUsesThirtyPercent) {
  cores_ = 0.3 * 4;
  ticks(60);
  const double of_its_own = 4;
  const double lent_share = static_cast<double>(lent().size()) * (1 - cores_ / 4);
  EXPECT_GE(of_its_own + lent_share, 1.25 * of_its_own);
}

TEST_F(Borrow, IsExplained) {
  lend(1);
  const auto plan = tick();
  const auto web_says = explain(snapshot_, plan, settings_, "web");
  ASSERT_TRUE(web_says.workload->lending);
  EXPECT_FALSE(web_says.workload->lending->state.cpus.empty());
  const auto batch_says = explain(snapshot_, plan, settings_, "batch");
  ASSERT_TRUE(batch_says.workload->borrowing);
  EXPECT_THAT(batch_says.workload->borrowing->reason, HasSubstr("borrows from web"));
}

TEST(NextPause, DoublesUpToTenMinutes) {
  EXPECT_EQ(next_pause_s(0), 10);
  EXPECT_EQ(next_pause_s(10), 20);
  EXPECT_EQ(next_pause_s(320), 600);
  EXPECT_EQ(next_pause_s(600), 600);
}

}  // namespace
}  // namespace berth::policies
