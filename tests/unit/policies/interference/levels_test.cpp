// SPDX-License-Identifier: Apache-2.0
// How much of its place a service has alone: docs/decisions/levels.md.
#include "policies/after.h"
#include "policies/decide.h"
#include "policies/explain.h"
#include "policies/placement/admission.h"
#include "policies/share.h"
#include "tests/unit/policies/hosts.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::policies {

namespace {

using model::Isolation;
using testing::best_effort;
using testing::cpus;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::latency_sensitive;
using testing::pinned;
using testing::pins;
using testing::two_domains;
using ::testing::UnorderedElementsAre;

void use(model::Workload& workload, double cores, float delay_us = 0, double until = 1000) {
  std::vector<model::UsageSample> samples;
  for (int i = 2; i >= 0; --i) {
    model::UsageSample sample;
    sample.time = until - i;
    sample.cpu_cores = cores;
    sample.runq_latency_us = delay_us;
    samples.push_back(sample);
  }
  workload.usage = samples;
}

model::Workload service(const std::string& id, int vcpus, double cores) {
  auto made = latency_sensitive(id, vcpus);
  made.isolation.reset();
  use(made, cores);
  return made;
}

// Ticks in observe mode: what a plan would hold is on the next snapshot.
class Levels : public ::testing::Test {
 protected:
  void on(const testing::HostShape& shape) { snapshot_.topology = testing::host(shape); }
  model::Plan tick() {
    snapshot_.time += 1;
    model::Plan plan = decide(snapshot_, settings_, {"interference"});
    standing_ = after(std::move(standing_), snapshot_, plan, assumed(plan), settings_);
    model::take_off(snapshot_);
    model::put_on(standing_, snapshot_);
    return plan;
  }
  static const model::InterferenceFindings& findings(const model::Plan& plan) {
    return *plan.findings.interference;
  }

  PolicySettings settings_;
  model::Snapshot snapshot_ = testing::snapshot_of(testing::host({}));
  model::Standing standing_;
};

}  // namespace

TEST_F(Levels, ASharedServiceOnAHostWithOneDomainIsNotPinned) {
  snapshot_.workloads = {service("web", 2, 1)};
  const model::Plan plan = tick();
  EXPECT_THAT(pins(plan), IsEmpty());
  EXPECT_EQ(findings(plan).shared.at("web").home, cpus("0"));
}

TEST_F(Levels, ASharedServiceIsNotWithoutAPlace) {
  auto undeclared = service("web", 2, 1);
  undeclared.vcpus.reset();
  snapshot_.workloads = {service("busy", 1, 3), undeclared};
  const model::Plan plan = tick();
  EXPECT_THAT(findings(plan).unplaceable, IsEmpty());
  EXPECT_THAT(findings(plan).warnings, IsEmpty());
  EXPECT_EQ(findings(plan).shared.size(), 2U);
}

TEST_F(Levels, SharedServicesArePinnedToTheDomainWhereTheScoreRisesLeast) {
  on(two_domains());
  snapshot_.workloads = {service("a", 2, 2), service("b", 2, 1), service("c", 1, 0.5)};
  EXPECT_THAT(pins(tick()), ElementsAre("a=0-1,4-5", "b=2-3,6-7", "c=2-3,6-7"));
}

TEST_F(Levels, AHomeStaysWhileItStands) {
  on(two_domains());
  snapshot_.workloads = {service("a", 2, 1), service("b", 2, 0.9)};
  EXPECT_THAT(pins(tick()), ElementsAre("a=0-1,4-5", "b=2-3,6-7"));
  use(snapshot_.workloads[0], 0.1);
  use(snapshot_.workloads[1], 3);
  const model::Plan plan = tick();
  EXPECT_THAT(pins(plan), IsEmpty());
  EXPECT_THAT(findings(plan).shared.at("a").reason, HasSubstr("at home in LLC 0, as before"));
}

TEST_F(Levels, AServiceWhoseUseIsNotKnownMayRunAnywhere) {
  on(two_domains());
  snapshot_.workloads = {service("new", 2, 0)};
  snapshot_.workloads[0].usage = {};
  model::Plan plan = tick();
  EXPECT_THAT(pins(plan), IsEmpty());
  EXPECT_TRUE(findings(plan).shared.at("new").home.empty());
  EXPECT_EQ(findings(plan).shared.at("new").cores, 2) << "its request counts";
  use(snapshot_.workloads[0], 1);
  EXPECT_THAT(pins(tick()), ElementsAre("new=0-1,4-5"));
}

TEST_F(Levels, AServiceThatSharesItsVcpusCountsWithItsRequest) {
  auto own = service("own", 2, 1);
  own.isolation = Isolation::vcpus;
  snapshot_.workloads = {service("new", 2, 0), own};
  snapshot_.workloads[0].usage = {};
  EXPECT_THAT(pins(tick()), UnorderedElementsAre("new=2-7", "own=0-1"));
  EXPECT_EQ(share_of(snapshot_.workloads[0], model::Resource::cpu, 8).asked, 2);
}

TEST_F(Levels, AHomeIsNeverSmallerThanTheUse) {
  on(two_domains());
  snapshot_.workloads = {service("big", 2, 5)};
  const model::Plan plan = tick();
  EXPECT_THAT(pins(plan), IsEmpty()) << "both domains are the host";
  EXPECT_EQ(findings(plan).shared.at("big").home, cpus("0-1"));
}

TEST_F(Levels, AServiceThatKeepsItsHomeBusyGetsAWiderOne) {
  on(two_domains());
  snapshot_.workloads = {service("web", 2, 1)};
  EXPECT_THAT(pins(tick()), ElementsAre("web=0-1,4-5"));
  use(snapshot_.workloads[0], 3.7);
  EXPECT_THAT(pins(tick()), ElementsAre("web=")) << "it never uses more than the four that it has";
}

TEST_F(Levels, ServicesThatKeepTheirHomeBusyTogetherGetAWiderOne) {
  on(two_domains());
  snapshot_.workloads = {service("a", 2, 2), service("b", 2, 1), service("c", 1, 0.5)};
  EXPECT_THAT(pins(tick()), ElementsAre("a=0-1,4-5", "b=2-3,6-7", "c=2-3,6-7"));
  use(snapshot_.workloads[1], 2);
  use(snapshot_.workloads[2], 1.7);
  EXPECT_THAT(pins(tick()), ElementsAre("c="));
}

TEST_F(Levels, APinThatWouldCutTheUseOfAllServicesIsNone) {
  auto own = service("own", 2, 1);
  own.isolation = Isolation::vcpus;
  snapshot_.workloads = {own, service("a", 2, 4), service("b", 2, 4)};
  EXPECT_THAT(pins(tick()), ElementsAre("a=2-7", "own=0-1")) << "they use more than six together";
}

TEST_F(Levels, ServicesWithoutUseAreSpread) {
  on(two_domains());
  snapshot_.workloads = {service("a", 2, 0), service("b", 2, 0)};
  EXPECT_THAT(pins(tick()), ElementsAre("a=0-1,4-5", "b=2-3,6-7"));
}

TEST_F(Levels, AHomeStandsWithoutADomainThatWentAway) {
  on({.llcs_per_socket = 3, .cores_per_llc = 2});
  snapshot_.workloads = {service("web", 2, 5)};
  tick();
  ASSERT_EQ(snapshot_.workloads[0].home, cpus("0-1"));
  auto list = testing::cpus_of({.llcs_per_socket = 3, .cores_per_llc = 2});
  for (model::Cpu& cpu : list) cpu.online = cpu.llc != 0;
  snapshot_.topology = model::Topology::make(list).value();
  use(snapshot_.workloads[0], 1);
  EXPECT_EQ(findings(tick()).shared.at("web").home, cpus("1"));
}

TEST_F(Levels, PinsWaitForVcpusThatCameBackOnlyNow) {
  auto own = service("own", 2, 1);
  own.isolation = Isolation::vcpus;
  snapshot_.workloads = {own, service("web", 2, 1)};
  EXPECT_THAT(pins(tick()), ElementsAre("own=0-1", "web=2-7"));
  snapshot_.workloads.erase(snapshot_.workloads.begin());
  EXPECT_THAT(pins(tick()), IsEmpty()) << "it may come again at once";
  snapshot_.time += 30;
  EXPECT_THAT(pins(tick()), ElementsAre("web="));
}

TEST_F(Levels, PinsThatAreTooSmallDoNotWaitForVcpusThatCameBack) {
  auto own = service("own", 2, 1);
  own.isolation = Isolation::vcpus;
  snapshot_.workloads = {own, service("web", 2, 1)};
  tick();
  snapshot_.workloads.erase(snapshot_.workloads.begin());
  use(snapshot_.workloads[0], 5.5);
  EXPECT_THAT(pins(tick()), ElementsAre("web="));
}

TEST_F(Levels, AServiceThatBerthLeavesAloneAsksForNoWiderHome) {
  settings_.interference.max_runq_latency_s = 0.005;
  snapshot_.workloads = {service("web", 2, 1)};
  use(snapshot_.workloads[0], 1, 20000);
  snapshot_.workloads[0].left_alone = "its owner says so";
  EXPECT_THAT(findings(tick()).waiting, IsEmpty());
}

TEST_F(Levels, AServiceThatWaitsGetsAWiderHomeAndKeepsIt) {
  on(two_domains());
  settings_.interference.max_runq_latency_s = 0.005;
  snapshot_.workloads = {service("web", 2, 1)};
  EXPECT_THAT(pins(tick()), ElementsAre("web=0-1,4-5"));
  snapshot_.time = 1020;
  use(snapshot_.workloads[0], 1, 20000, 1020);
  model::Plan plan = tick();
  EXPECT_THAT(pins(plan), ElementsAre("web="));
  EXPECT_EQ(findings(plan).waiting.size(), 1U);
  snapshot_.time = 1040;
  use(snapshot_.workloads[0], 0.1, 10, 1040);
  plan = tick();
  EXPECT_THAT(pins(plan), IsEmpty());
  EXPECT_EQ(findings(plan).shared.at("web").home, cpus("0-1"));
}

TEST_F(Levels, AServiceThatIsAtHomeInEveryDomainAsksForNoWiderHome) {
  settings_.interference.max_runq_latency_s = 0.005;
  snapshot_.workloads = {service("web", 2, 1)};
  use(snapshot_.workloads[0], 1, 20000);
  tick();
  EXPECT_THAT(findings(tick()).waiting.at("web").reason, HasSubstr("every domain already"));
}

TEST_F(Levels, AQuotaIsNoReasonForAWiderHome) {
  on(two_domains());
  settings_.interference.max_runq_latency_s = 0.005;
  snapshot_.workloads = {service("web", 2, 1)};
  tick();
  snapshot_.time = 1020;
  use(snapshot_.workloads[0], 1, 20000, 1020);
  snapshot_.workloads[0].cpu_throttled = 0.2;
  const model::Plan plan = tick();
  EXPECT_THAT(pins(plan), IsEmpty());
  EXPECT_EQ(findings(plan).waiting.at("web").cause, model::WaitCause::quota);
}

TEST_F(Levels, ASharedServiceStaysOffTheVcpusThatAnotherOwns) {
  auto own = service("own", 2, 1);
  own.isolation = Isolation::vcpus;
  snapshot_.workloads = {own, service("web", 2, 1)};
  const model::Plan plan = tick();
  EXPECT_THAT(pins(plan), ElementsAre("own=0-1", "web=2-7"));
  EXPECT_FALSE(findings(plan).shared.contains("own"));
}

TEST_F(Levels, ASharedServiceStaysOffTheVcpusOfAContainer) {
  auto list = testing::cpus_of({});
  for (model::Cpu& cpu : list) cpu.allowed = cpu.cpu != 0;
  snapshot_.topology = model::Topology::make(list).value();
  snapshot_.owned_cpus = {{.owner = "pod", .cpus = cpus("0"), .how = model::OwnedHow::kubelet}};
  snapshot_.workloads = {service("new", 2, 0), service("web", 2, 1)};
  snapshot_.workloads[0].usage = {};
  EXPECT_THAT(pins(tick()), ElementsAre("new=1-7", "web=1-7"));
}

TEST_F(Levels, ASharedServiceStaysOffReservedVcpus) {
  settings_.interference.reserved_cpus = cpus("0,4");
  snapshot_.workloads = {service("web", 2, 1)};
  EXPECT_THAT(pins(tick()), ElementsAre("web=1-3,5-7"));
}

TEST_F(Levels, ASharedServiceKeepsToItsAllowedCpus) {
  on(two_domains());
  snapshot_.workloads = {service("web", 2, 1)};
  snapshot_.workloads[0].allowed_cpus = cpus("2-3");
  const model::Plan plan = tick();
  EXPECT_THAT(pins(plan), IsEmpty()) << "they are all of its home already";
  EXPECT_EQ(findings(plan).shared.at("web").home, cpus("1"));
}

TEST_F(Levels, ANewLevelGivesThePinBack) {
  settings_.interference.isolation = Isolation::vcpus;
  snapshot_.workloads = {service("web", 2, 1)};
  EXPECT_THAT(pins(tick()), ElementsAre("web=0-1"));
  snapshot_.workloads[0].isolation = Isolation::shared;
  EXPECT_THAT(pins(tick()), ElementsAre("web="));
  snapshot_.workloads[0].isolation = Isolation::vcpus;
  EXPECT_THAT(pins(tick()), ElementsAre("web=0-1"));
  EXPECT_TRUE(snapshot_.workloads[0].home.empty());
}

TEST_F(Levels, BestEffortWorkGetsTheCoresThatSharedServicesLeave) {
  snapshot_.workloads = {best_effort("batch", 4), service("web", 2, 1)};
  const model::Plan plan = tick();
  EXPECT_THAT(pins(plan), ElementsAre("batch=1-3,5-7"));
  EXPECT_EQ(findings(plan).best_effort.domains.at(0).cores, 3);
  EXPECT_EQ(findings(plan).best_effort.cpus, cpus("1-3,5-7"));
}

TEST_F(Levels, BestEffortCoresFallWithTheNextSampleAndGrowStepByStep) {
  snapshot_.workloads = {best_effort("batch", 4), service("web", 2, 1)};
  tick();
  use(snapshot_.workloads[1], 4);
  EXPECT_THAT(pins(tick()), ElementsAre("batch=3,7"));
  use(snapshot_.workloads[1], 1);
  EXPECT_THAT(pins(tick()), IsEmpty());
  snapshot_.time += 5;
  EXPECT_THAT(pins(tick()), ElementsAre("batch=2-3,6-7"));
}

TEST_F(Levels, BestEffortWorkMayUseAllWhereSharedServicesAreIdle) {
  snapshot_.workloads = {best_effort("batch", 4), service("web", 2, 0)};
  EXPECT_THAT(pins(tick()), IsEmpty());
}

TEST_F(Levels, ServicesLeaveTheSlowerVcpusWhileTheFasterOnesHaveRoom) {
  snapshot_.topology = testing::hybrid_host();
  snapshot_.workloads = {best_effort("batch", 4), service("web", 2, 2)};
  EXPECT_THAT(pins(tick()), ElementsAre("web=0-3", "batch=4-7"));
}

TEST_F(Levels, ServicesReturnToTheFasterVcpusOnceTheseHaveAFifthToSpare) {
  snapshot_.topology = testing::hybrid_host();
  snapshot_.workloads = {service("web", 2, 4.5)};
  EXPECT_THAT(pins(tick()), IsEmpty());
  use(snapshot_.workloads[0], 3.5);
  EXPECT_THAT(pins(tick()), IsEmpty());
  use(snapshot_.workloads[0], 3);
  EXPECT_THAT(pins(tick()), ElementsAre("web=0-3"));
  use(snapshot_.workloads[0], 3.5);
  EXPECT_THAT(pins(tick()), IsEmpty());
}

TEST_F(Levels, ServicesThatKeepTheFasterVcpusBusyGetTheSlowerOnes) {
  snapshot_.topology = testing::hybrid_host();
  snapshot_.workloads = {service("web", 2, 2)};
  EXPECT_THAT(pins(tick()), ElementsAre("web=0-3"));
  use(snapshot_.workloads[0], 3.9);
  EXPECT_THAT(pins(tick()), ElementsAre("web=")) << "it never uses more than the four that it has";
}

TEST_F(Levels, AServiceWithoutFasterVcpusKeepsTheSlowerOnes) {
  snapshot_.topology = testing::hybrid_host();
  auto slow = service("slow", 2, 1);
  slow.allowed_cpus = cpus("4-7");
  snapshot_.workloads = {slow, service("web", 2, 1)};
  EXPECT_THAT(pins(tick()), IsEmpty());
}

TEST_F(Levels, OwnedVcpusKeepTheirPoolInOtherDomains) {
  on(two_domains());
  auto own = service("own", 2, 1);
  own.isolation = Isolation::vcpus;
  own.allowed_cpus = cpus("0-1,4-5");
  snapshot_.workloads = {best_effort("batch", 4), own, service("web", 2, 1)};
  EXPECT_THAT(pins(tick()), ElementsAre("own=0-1", "web=2-3,6-7", "batch=3-5,7"));
}

TEST_F(Levels, WholeCoresAreRoundedUp) {
  settings_.interference.isolation = Isolation::cores;
  snapshot_.workloads = {best_effort("batch", 1), service("web", 3, 1)};
  const model::Plan plan = tick();
  EXPECT_THAT(pins(plan), ElementsAre("web=0-1,4-5", "batch=2-3,6-7"));
  EXPECT_THAT(pins(tick()), IsEmpty()) << "it stands";
}

TEST_F(Levels, WholeCoresThatDoNotFitAreNoPlace) {
  settings_.interference.isolation = Isolation::cores;
  snapshot_.workloads = {service("a", 3, 1), service("b", 5, 1)};
  for (const Search search : {Search::window, Search::optimal}) {
    settings_.interference.search = search;
    const model::Plan plan = decide(snapshot_, settings_, {"interference"});
    EXPECT_EQ(findings(plan).instances.at("a").cpus, cpus("0-1,4-5"));
    ASSERT_EQ(findings(plan).unplaceable.size(), 1U);
    EXPECT_THAT(findings(plan).unplaceable[0].reason, HasSubstr("asks whole cores with 5 vCPUs"));
  }
}

TEST_F(Levels, AllServicesLeaveBestEffortWorkItsLeast) {
  settings_.interference.isolation = Isolation::cores;
  snapshot_.workloads = {service("a", 8, 1)};
  EXPECT_THAT(findings(tick()).unplaceable[0].reason, HasSubstr("be_min_cpus"));
}

TEST_F(Levels, APinOfSingleThreadsIsExchangedForWholeCores) {
  settings_.interference.isolation = Isolation::cores;
  snapshot_.workloads = {pinned(service("web", 2, 1), "0-1")};
  const model::Plan plan = tick();
  EXPECT_THAT(pins(plan), ElementsAre("web=0,4"));
  EXPECT_THAT(plan.actions[0].reason, HasSubstr("of a core that it has not all of"));
}

TEST_F(Levels, WholeCoresDoNotMoveForABetterScore) {
  settings_.interference.isolation = Isolation::cores;
  settings_.interference.search = Search::optimal;
  on(two_domains());
  auto other = service("other", 2, 2);
  other.isolation = Isolation::vcpus;
  snapshot_.workloads = {pinned(other, "2-3"), pinned(service("web", 1, 1), "1,5")};
  const model::Plan plan = tick();
  EXPECT_EQ(findings(plan).instances.at("web").cpus, cpus("1,5"));
}

TEST_F(Levels, AdmissionCountsASharedServiceByItsRequest) {
  snapshot_.workloads = {service("web", 6, 1)};
  const Host host(snapshot_, settings_);
  model::PendingWorkload owner;
  owner.id = owner.service = "new";
  owner.isolation = Isolation::vcpus;
  owner.vcpus = 2;
  Host first = host;
  EXPECT_FALSE(admit(first, owner).admitted);
  owner.vcpus = 1;
  Host second = host;
  EXPECT_TRUE(admit(second, owner).admitted);
}

TEST_F(Levels, AdmissionGivesASharedNewcomerNoVcpusOfItsOwn) {
  Host host(snapshot_, settings_);
  model::PendingWorkload newcomer;
  newcomer.id = newcomer.service = "new";
  newcomer.vcpus = 6;
  EXPECT_TRUE(admit(host, newcomer).admitted);
  EXPECT_EQ(host.bins()[0].unowned, cpus("0-7"));
  newcomer.id = newcomer.service = "more";
  EXPECT_FALSE(admit(host, newcomer).admitted);
}

TEST_F(Levels, ExplanationsNameLevelAndHome) {
  snapshot_.workloads = {service("web", 2, 1)};
  const model::Plan plan = tick();
  const auto explained = explain(snapshot_, plan, settings_, "web");
  EXPECT_EQ(explained.workload->isolation, Isolation::shared);
  EXPECT_EQ(explained.workload->shared->home, cpus("0"));
}

}  // namespace berth::policies
