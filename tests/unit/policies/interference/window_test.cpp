// SPDX-License-Identifier: Apache-2.0
// Where `window` places latency-sensitive instances, by hand.
#include "policies/interference/policy.h"
#include "tests/unit/policies/hosts.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::policies {

namespace {

using testing::cpus;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::host;
using ::testing::IsEmpty;
using testing::latency_sensitive;
using testing::pinned;
using testing::pins;
using ::testing::SizeIs;
using testing::snapshot_of;

// Two hot instances and a cold one, on four cores with two threads each.
model::Snapshot worked_example(int instances) {
  model::Snapshot snapshot = snapshot_of(host({.cores_per_llc = 4, .threads_per_core = 2}));
  snapshot.services["hot"] = {.pressure = 0.8,
                              .model = model::InterferenceModel{.b0 = 0, .k1 = 0.4, .k2 = 0.1}};
  snapshot.services["cold"] = {.pressure = 0.2,
                               .model = model::InterferenceModel{.b0 = 0, .k1 = 0.2, .k2 = 0.05}};
  const std::vector<std::string> names{"a", "b", "c"};
  for (int i = 0; i < instances; ++i) {
    model::Workload workload = latency_sensitive(names[static_cast<std::size_t>(i)], 2, i);
    workload.service = i < 2 ? "hot" : "cold";
    snapshot.workloads.push_back(workload);
  }
  return snapshot;
}

double domain_score(int instances, Weighting weighting) {
  return propose_pins(worked_example(instances), {.weighting = weighting}).findings.domains.at(0);
}

std::vector<std::string> unplaceable(const InterferenceProposal& proposal) {
  std::vector<std::string> list;
  for (const auto& finding : proposal.findings.unplaceable)
    list.push_back(finding.workload + ": " + finding.reason);
  return list;
}

model::Workload allowed(model::Workload workload, const std::string& cpulist) {
  workload.allowed_cpus = cpus(cpulist);
  return workload;
}

model::Workload with_usage(model::Workload workload, std::vector<double> cores) {
  for (const double used : cores) {
    model::UsageSample sample;
    sample.cpu_cores = used;
    workload.usage.push_back(sample);
  }
  return workload;
}

}  // namespace

TEST(WindowWorkedExample, PlacesAllThreeAsPublished) {
  for (const Weighting weighting : {Weighting::request, Weighting::overlap}) {
    EXPECT_THAT(pins(propose_pins(worked_example(3), {.weighting = weighting}).actions),
                ElementsAre("a=0-1", "b=2-3", "c=4-5"));
  }
}

TEST(WindowWorkedExample, ScoresTheDomainByRequest) {
  EXPECT_DOUBLE_EQ(domain_score(1, Weighting::request), 0);
  EXPECT_DOUBLE_EQ(domain_score(2, Weighting::request), 0.04);
  EXPECT_DOUBLE_EQ(domain_score(3, Weighting::request), 0.1025);
}

TEST(WindowWorkedExample, ScoresTheDomainByOverlap) {
  EXPECT_DOUBLE_EQ(domain_score(1, Weighting::overlap), 0);
  EXPECT_DOUBLE_EQ(domain_score(2, Weighting::overlap), 0.02);
  EXPECT_DOUBLE_EQ(domain_score(3, Weighting::overlap), 0.0875);
}

TEST(WindowWorkedExample, ReportsWhatEachInstanceSuffers) {
  const auto findings = propose_pins(worked_example(3), {.weighting = Weighting::overlap}).findings;
  const model::PlacedInstance& c = findings.instances.at("c");
  EXPECT_DOUBLE_EQ(c.cpu_sc, 0.8);
  EXPECT_DOUBLE_EQ(c.cpu_ss, 0.4);
  EXPECT_DOUBLE_EQ(c.score, 0.18);
  EXPECT_DOUBLE_EQ(c.pressure, 0.2);
  EXPECT_EQ(c.model, model::ModelOrigin::given);
  EXPECT_EQ(findings.weighting, "overlap");
  EXPECT_EQ(findings.search, "window");
  EXPECT_DOUBLE_EQ(findings.score_node, 0.0875);
  EXPECT_EQ(findings.lower_bound, std::nullopt);
}

TEST(Window, SeesThatAnInstanceOnBothThreadsCompetesWithItself) {
  // Both sockets hold a single core: two vCPUs can only be siblings.
  model::Snapshot snapshot = snapshot_of(host({.sockets = 2, .cores_per_llc = 1}));
  snapshot.services["a"].pressure = 0.6;
  snapshot.workloads = {latency_sensitive("a", 2)};
  EXPECT_DOUBLE_EQ(propose_pins(snapshot, {}).findings.instances.at("a").cpu_sc, 0.6);
  EXPECT_DOUBLE_EQ(
      propose_pins(snapshot, {.weighting = Weighting::request}).findings.instances.at("a").cpu_sc, 0);
}

TEST(Window, TakesTheQuieterDomain) {
  model::Snapshot snapshot = snapshot_of(host({.sockets = 2, .cores_per_llc = 2, .threads_per_core = 1}));
  snapshot.workloads = {pinned(latency_sensitive("a", 1, 0), "0"), latency_sensitive("b", 1, 1)};
  const InterferenceProposal proposal = propose_pins(snapshot, {});
  EXPECT_THAT(pins(proposal.actions), ElementsAre("b=2"));
  EXPECT_THAT(proposal.actions.front().reason,
              HasSubstr("placed on 2 of LLC 1: score_domain 0 against 0.05 on 1 of LLC 0 (2 candidates"));
  EXPECT_THAT(
      proposal.actions.front().reason,
      HasSubstr(
          "pressure 0.5 (no samples yet), model default k1 0.3 k2 0.1 (no model is given for service 'b')"));
}

TEST(Window, PrefersTheLowerDomainAndPositionWhereScoresTie) {
  model::Snapshot snapshot = snapshot_of(host({.sockets = 2, .cores_per_llc = 4}));
  snapshot.workloads = {latency_sensitive("a", 2)};
  EXPECT_THAT(pins(propose_pins(snapshot, {}).actions), ElementsAre("a=0-1"));
}

TEST(Window, SlidesBySteps) {
  // vCPU 0 is taken and hot; windows over the free 1-3, 4-7 start at 1, 3, 5 with step 2 and at 1, 4, 7 with
  // step 3.
  model::Snapshot snapshot = snapshot_of(host({.cores_per_llc = 4}));
  snapshot.workloads = {pinned(latency_sensitive("a", 1, 0), "0"), latency_sensitive("b", 1, 1)};
  EXPECT_THAT(propose_pins(snapshot, {.window_step = 2}).actions.front().reason, HasSubstr("(4 candidates"));
  EXPECT_THAT(propose_pins(snapshot, {.window_step = 3}).actions.front().reason, HasSubstr("(3 candidates"));
}

TEST(Window, ServesTheOlderFirst) {
  model::Snapshot snapshot = snapshot_of(host({.cores_per_llc = 4, .threads_per_core = 1}));
  snapshot.workloads = {latency_sensitive("a", 2, 20), latency_sensitive("z", 2, 10)};
  const InterferenceProposal proposal = propose_pins(snapshot, {});
  EXPECT_EQ(proposal.findings.instances.at("z").cpus, cpus("0-1"));
  EXPECT_THAT(unplaceable(proposal),
              ElementsAre(HasSubstr("a: asks 2 vCPUs; 2 of 4 are unowned, and 1 must stay so")));
}

TEST(Window, LeavesAStandingInstanceWhereItIsThoughABetterPlaceIsFree) {
  model::Snapshot snapshot = snapshot_of(host({.sockets = 2, .cores_per_llc = 4}));
  snapshot.workloads = {pinned(latency_sensitive("a", 2), "0,8")};
  const InterferenceProposal proposal = propose_pins(snapshot, {});
  EXPECT_THAT(proposal.actions, IsEmpty());
  EXPECT_EQ(proposal.findings.instances.at("a").cpus, cpus("0,8"));
}

TEST(Window, GivesADepartedInstancesVcpusToTheNext) {
  model::Snapshot snapshot = snapshot_of(host({.cores_per_llc = 3, .threads_per_core = 1}));
  snapshot.workloads = {pinned(latency_sensitive("a", 2, 0), "0-1"), latency_sensitive("b", 2, 1)};
  EXPECT_THAT(unplaceable(propose_pins(snapshot, {})), SizeIs(1));
  snapshot.workloads.erase(snapshot.workloads.begin());
  EXPECT_THAT(pins(propose_pins(snapshot, {}).actions), ElementsAre("b=0-1"));
}

struct Fault {
  const char* name;
  model::Workload workload;
  const char* said;
};

TEST(Window, PlacesAnewAnInstanceWhosePinDoesNotStand) {
  std::vector<model::Cpu> list = testing::cpus_of({.sockets = 2, .cores_per_llc = 4, .threads_per_core = 1});
  list[2].online = false;
  list[3].allowed = false;
  model::Snapshot snapshot = snapshot_of(model::Topology::make(list).value());
  const InterferenceSettings settings{.reserved_cpus = cpus("7")};
  const std::vector<Fault> faults{
      {"size", pinned(latency_sensitive("a", 2), "0"), "it holds 1 vCPU and asks 2"},
      {"offline", pinned(latency_sensitive("a", 2), "1-2"), "vCPU 2 is offline"},
      {"unknown", pinned(latency_sensitive("a", 2), "1,99"), "vCPU 99 is offline"},
      {"not allowed", pinned(latency_sensitive("a", 2), "1,3"), "berth may not use vCPU 3"},
      {"reserved", pinned(latency_sensitive("a", 2), "6-7"), "vCPUs 7 are reserved"},
      {"two domains", pinned(latency_sensitive("a", 2), "1,4"), "it does not lie in one domain"},
      {"not permitted", allowed(pinned(latency_sensitive("a", 2), "0-1"), "1,4-6"),
       "it may not use vCPUs 0 any more"}};
  for (const Fault& fault : faults) {
    snapshot.workloads = {fault.workload};
    const InterferenceProposal proposal = propose_pins(snapshot, settings);
    ASSERT_THAT(proposal.actions, SizeIs(1)) << fault.name;
    EXPECT_TRUE(proposal.actions.front().sets<model::CpuSet>() != nullptr) << fault.name;
    EXPECT_THAT(proposal.actions.front().reason,
                HasSubstr(std::string(" is no longer valid: ") + fault.said));
  }
}

TEST(Window, OfTwoThatOverlapKeepsTheOlder) {
  model::Snapshot snapshot = snapshot_of(host({.cores_per_llc = 6, .threads_per_core = 1}));
  snapshot.workloads = {pinned(latency_sensitive("a", 2, 9), "1-2"),
                        pinned(latency_sensitive("b", 2, 3), "0-1")};
  const InterferenceProposal proposal = propose_pins(snapshot, {});
  EXPECT_THAT(pins(proposal.actions), ElementsAre("a=2-3"));
  EXPECT_THAT(proposal.actions.front().reason, HasSubstr("pin 1-2 is no longer valid: vCPU 1 belongs to b"));
}

TEST(Window, LiftsThePinOfAnInstanceThatHasBecomeUnplaceable) {
  model::Snapshot snapshot = snapshot_of(host({.cores_per_llc = 4, .threads_per_core = 1}));
  snapshot.workloads = {pinned(latency_sensitive("a", 5), "0-1")};
  const InterferenceProposal proposal = propose_pins(snapshot, {});
  EXPECT_THAT(pins(proposal.actions), ElementsAre("a="));
  EXPECT_THAT(unplaceable(proposal), ElementsAre("a: asks 5 vCPUs, the node has 4"));
}

TEST(Window, LiftsThePinOfAnInstanceThatDeclaresNoVcpusAnyMore) {
  model::Snapshot snapshot = snapshot_of(host({}));
  snapshot.workloads = {with_usage(pinned(latency_sensitive("a", 1), "0"), {1.0, 1.5})};
  snapshot.workloads.front().vcpus.reset();
  const InterferenceProposal proposal = propose_pins(snapshot, {});
  EXPECT_THAT(pins(proposal.actions), ElementsAre("a="));
  EXPECT_THAT(unplaceable(proposal),
              ElementsAre(::testing::StartsWith(
                  "a: declares no vcpus, which a pin needs (it uses 1.25 cores on average)")));
}

TEST(Window, RefusesARequestForNoVcpus) {
  model::Snapshot snapshot = snapshot_of(host({}));
  snapshot.workloads = {latency_sensitive("a", 0)};
  EXPECT_THAT(unplaceable(propose_pins(snapshot, {})),
              ElementsAre("a: asks 0 vCPUs; a pin needs at least 1"));
}

TEST(Window, StaysInsideTheAllowedCpus) {
  model::Snapshot snapshot = snapshot_of(host({.sockets = 2, .cores_per_llc = 4, .threads_per_core = 1}));
  snapshot.workloads = {allowed(latency_sensitive("a", 2, 0), "1,5,7"),
                        allowed(latency_sensitive("b", 2, 1), "0,4")};
  const InterferenceProposal proposal = propose_pins(snapshot, {});
  EXPECT_THAT(pins(proposal.actions), ElementsAre("a=5,7"));
  EXPECT_THAT(unplaceable(proposal),
              ElementsAre("b: asks 2 vCPUs in one domain; LLC 0 has the most free, 1 of 4 (of vCPUs 0,4)"));
}

TEST(Window, NeverGivesOutReservedVcpus) {
  model::Snapshot snapshot = snapshot_of(host({.cores_per_llc = 4, .threads_per_core = 1}));
  snapshot.workloads = {latency_sensitive("a", 2)};
  const auto shared = [&](const char* list) {
    return propose_pins(snapshot, {.reserved_cpus = cpus(list), .reserved = Reserved::shared});
  };
  EXPECT_THAT(pins(shared("0-1").actions), ElementsAre("a=2-3"));
  EXPECT_THAT(unplaceable(shared("0-2")),
              ElementsAre("a: asks 2 vCPUs in one domain; LLC 0 has the most free, 1 of 4"));
  EXPECT_THAT(pins(propose_pins(snapshot, {.reserved_cpus = cpus("0")}).actions), ElementsAre("a=1-2"));
  EXPECT_THAT(unplaceable(propose_pins(snapshot, {.reserved_cpus = cpus("0-2")})),
              ElementsAre("a: asks 2 vCPUs, the node has 1; vCPUs 0-2 are reserved"));
}

TEST(Window, CountsSharedReservedVcpusAsLeftToBestEffort) {
  model::Snapshot snapshot = snapshot_of(host({.cores_per_llc = 4, .threads_per_core = 1}));
  snapshot.workloads = {latency_sensitive("a", 3)};
  InterferenceSettings settings{.reserved_cpus = cpus("0"), .reserved = Reserved::shared};
  EXPECT_THAT(pins(propose_pins(snapshot, settings).actions), ElementsAre("a=1-3"));
  settings.be_min_cpus = 2;
  EXPECT_THAT(unplaceable(propose_pins(snapshot, settings)), SizeIs(1));
}

TEST(Window, NeverOwnsTheLastVcpuEvenIfToldTo) {
  model::Snapshot snapshot = snapshot_of(host({.cores_per_llc = 1, .threads_per_core = 1}));
  snapshot.workloads = {latency_sensitive("a", 1)};
  EXPECT_THAT(unplaceable(propose_pins(snapshot, {.be_min_cpus = 0})), SizeIs(1));
}

TEST(Window, GivesUpAStandingPlaceWhereTooLittleWouldBeLeft) {
  model::Snapshot snapshot = snapshot_of(host({.cores_per_llc = 4, .threads_per_core = 1}));
  snapshot.workloads = {pinned(latency_sensitive("a", 2, 0), "0-1"),
                        pinned(latency_sensitive("b", 1, 1), "2")};
  const InterferenceProposal proposal = propose_pins(snapshot, {.be_min_cpus = 2});
  EXPECT_THAT(pins(proposal.actions), ElementsAre("b=2-3")) << "off the vCPUs of a";
  EXPECT_THAT(proposal.actions.front().reason,
              HasSubstr("it leaves fewer than 2 vCPUs to others (be_min_cpus)"));
}

TEST(WindowSpanning, PutsARequestLargerThanEveryLlcDomainOnOneSocket) {
  model::Snapshot snapshot =
      snapshot_of(host({.sockets = 2, .llcs_per_socket = 2, .cores_per_llc = 2, .threads_per_core = 1}));
  snapshot.workloads = {pinned(latency_sensitive("a", 1, 0), "0"), latency_sensitive("b", 3, 1)};
  const InterferenceProposal proposal = propose_pins(snapshot, {});
  EXPECT_THAT(pins(proposal.actions), ElementsAre("b=4-6"));
  EXPECT_THAT(proposal.actions.front().reason,
              HasSubstr("of socket 1: score_domain 0 against 0.05 on 1-3 of socket 0"));
  // Half of b's neighbour pressure would be felt in each of the socket's LLC domains by the vCPUs it has
  // there.
  EXPECT_EQ(proposal.findings.domains.size(), 4U);
}

TEST(WindowSpanning, NeverSpansWhatWouldFitIntoADomainOnceThatIsFree) {
  model::Snapshot snapshot =
      snapshot_of(host({.llcs_per_socket = 2, .cores_per_llc = 2, .threads_per_core = 1}));
  snapshot.workloads = {pinned(latency_sensitive("a", 1, 0), "0"), pinned(latency_sensitive("b", 1, 0), "2"),
                        latency_sensitive("c", 2, 1)};
  EXPECT_THAT(unplaceable(propose_pins(snapshot, {.be_min_cpus = 0})),
              ElementsAre(HasSubstr("c: asks 2 vCPUs; 2 of 4 are unowned")));
  snapshot.topology = host({.llcs_per_socket = 3, .cores_per_llc = 2, .threads_per_core = 1});
  snapshot.workloads.push_back(pinned(latency_sensitive("d", 1, 0), "4"));
  EXPECT_THAT(unplaceable(propose_pins(snapshot, {})),
              ElementsAre("c: asks 2 vCPUs in one domain; LLC 0 has the most free, 1 of 2"));
}

TEST(WindowSpanning, CrossesSocketsOnlyWhereThatIsAllowed) {
  model::Snapshot snapshot = snapshot_of(host({.sockets = 2, .cores_per_llc = 2, .threads_per_core = 1}));
  snapshot.workloads = {latency_sensitive("a", 3)};
  EXPECT_THAT(unplaceable(propose_pins(snapshot, {})),
              ElementsAre("a: asks 3 vCPUs, the largest socket has 2 (allow_cross_socket = false)"));
  EXPECT_THAT(pins(propose_pins(snapshot, {.allow_cross_socket = true}).actions), ElementsAre("a=0-2"));
}

TEST(WindowSpanning, CountsASpanningInstanceInADomainByItsShareThere) {
  model::Snapshot snapshot =
      snapshot_of(host({.llcs_per_socket = 2, .cores_per_llc = 2, .threads_per_core = 1}));
  snapshot.services["a"].pressure = 0.5;
  snapshot.workloads = {pinned(latency_sensitive("a", 3, 0), "0-2")};
  snapshot.workloads.push_back(testing::best_effort("batch", 1.0));
  // The pool is vCPU 3, fully used: a feels 1.0 from the one vCPU outside its cores, k2 = 0.1.
  const auto findings = propose_pins(snapshot, {}).findings;
  EXPECT_DOUBLE_EQ(findings.instances.at("a").score, 0.1);
  EXPECT_DOUBLE_EQ(findings.domains.at(0), 2 * 0.1 / 2);
  EXPECT_DOUBLE_EQ(findings.domains.at(1), 1 * 0.1 / 2);
  EXPECT_DOUBLE_EQ(findings.score_node, 3 * 0.1 / 4);
}

TEST(WindowHybrid, ServicesFillTheFastCoresFirstAndBatchWorkGetsTheRest) {
  model::Snapshot snapshot = snapshot_of(testing::hybrid_host());
  snapshot.workloads = {latency_sensitive("web", 4), testing::best_effort("batch", 2)};
  const InterferenceProposal proposal = propose_pins(snapshot, {});
  EXPECT_THAT(pins(proposal.actions), ElementsAre("web=0-3", "batch=4-7"));
  EXPECT_THAT(proposal.actions.front().reason, HasSubstr("cores of kind 1 of 2 by capacity"));
}

TEST(WindowHybrid, AnInstanceNeverMixesKindsOfCores) {
  model::Snapshot snapshot = snapshot_of(testing::hybrid_host());
  // Two fast vCPUs are left for the second one, which wants three: it gets slow ones.
  snapshot.workloads = {latency_sensitive("a", 2, 0), latency_sensitive("b", 3, 1),
                        latency_sensitive("c", 2, 2)};
  EXPECT_THAT(pins(propose_pins(snapshot, {}).actions), ElementsAre("a=0,2", "b=4-6", "c=1,3"));
  snapshot.workloads = {latency_sensitive("a", 2, 0), latency_sensitive("b", 5, 1)};
  EXPECT_THAT(unplaceable(propose_pins(snapshot, {})),
              ElementsAre(HasSubstr("an instance has cores of one kind, and 2 of 4 are unowned on vCPUs 0-3, "
                                    "4 of 4 are unowned on vCPUs 4-7")));
  // A pin of before that mixes them does not stand.
  snapshot.workloads = {pinned(latency_sensitive("a", 2, 0), "3-4")};
  const InterferenceProposal proposal = propose_pins(snapshot, {});
  EXPECT_THAT(pins(proposal.actions), ElementsAre("a=0,2"));
  EXPECT_THAT(proposal.actions.front().reason, HasSubstr("it mixes kinds of cores"));
}

TEST(WindowHybrid, AllowedCpusOfOneKindDecide) {
  model::Snapshot snapshot = snapshot_of(testing::hybrid_host());
  snapshot.workloads = {allowed(latency_sensitive("a", 2, 0), "3-7"),
                        allowed(latency_sensitive("b", 1, 1), "6-7")};
  EXPECT_THAT(pins(propose_pins(snapshot, {}).actions), ElementsAre("a=4-5", "b=6"));
}

// As of a phone's processor: little, middle and big cores with caches of their own.
TEST(WindowHybrid, ThreeKindsFillInTheOrderOfTheirCapacity) {
  std::vector<model::Cpu> list;
  for (int cpu = 0; cpu < 8; ++cpu) {
    const int kind = cpu < 4 ? 0 : cpu < 7 ? 1 : 2;
    list.push_back({.cpu = cpu, .core = cpu, .llc = kind, .efficiency = kind});
  }
  model::Snapshot snapshot = snapshot_of(model::Topology::make(list).value());
  snapshot.workloads = {latency_sensitive("a", 1, 0), latency_sensitive("b", 1, 1),
                        latency_sensitive("c", 3, 2)};
  EXPECT_THAT(pins(propose_pins(snapshot, {.window_step = 1}).actions), ElementsAre("a=7", "b=4", "c=0-2"));
}

TEST(WindowHybrid, AStandingPinStaysWhereItIs) {
  model::Snapshot snapshot = snapshot_of(testing::hybrid_host());
  snapshot.workloads = {pinned(latency_sensitive("a", 2, 0), "4-5")};
  EXPECT_THAT(pins(propose_pins(snapshot, {}).actions), IsEmpty());
}

// As of a virtual machine with one vCPU a socket.
TEST(Window, SocketsThatShareNothingAreNoBoundary) {
  std::vector<model::Cpu> list;
  for (int cpu = 0; cpu < 6; ++cpu)
    list.push_back({.cpu = cpu, .core = cpu, .llc = cpu, .numa = cpu / 4, .socket = cpu, .efficiency = {}});
  model::Snapshot snapshot = snapshot_of(model::Topology::make(list).value());
  snapshot.workloads = {latency_sensitive("a", 3)};
  const InterferenceProposal proposal = propose_pins(snapshot, {});
  EXPECT_THAT(pins(proposal.actions), ElementsAre("a=0-2"));
  EXPECT_THAT(proposal.actions.front().reason, HasSubstr("of NUMA node 0"));
  // NUMA nodes are a boundary.
  snapshot.workloads = {latency_sensitive("a", 5)};
  EXPECT_THAT(unplaceable(propose_pins(snapshot, {})),
              ElementsAre("a: asks 5 vCPUs, the largest NUMA node has 4 (allow_cross_socket = false)"));
  snapshot.workloads = {latency_sensitive("a", 3)};
  EXPECT_THAT(pins(propose_pins(snapshot, {.search = Search::optimal}).actions), ElementsAre("a=0-2"));
}

TEST(Window, TakesTheSocketForTheDomainWhereNoLlcIsKnownOrWhenToldTo) {
  model::Snapshot snapshot =
      snapshot_of(host({.sockets = 2, .llcs_per_socket = 2, .cores_per_llc = 2, .threads_per_core = 1}));
  snapshot.workloads = {latency_sensitive("a", 3)};
  const auto by_setting = propose_pins(snapshot, {.shared_domain = model::DomainKind::socket});
  EXPECT_EQ(by_setting.findings.domains.size(), 2U);
  EXPECT_THAT(by_setting.actions.front().reason, HasSubstr("of socket 0"));
  std::vector<model::Cpu> list = snapshot.topology.cpus();
  for (model::Cpu& cpu : list) cpu.llc.reset();
  snapshot.topology = model::Topology::make(list).value();
  EXPECT_EQ(propose_pins(snapshot, {}).findings.domains, by_setting.findings.domains);
}

TEST(Window, ShowsPendingInstancesAfterRunningOnesAndDoesNothingForThem) {
  model::Snapshot snapshot = snapshot_of(host({.cores_per_llc = 4, .threads_per_core = 1}));
  snapshot.workloads = {latency_sensitive("z", 1, 500)};
  model::PendingWorkload pending;
  pending.id = "new";
  pending.service = "z";
  pending.vcpus = 2;
  pending.isolation = model::Isolation::vcpus;
  snapshot.pending = {pending};
  pending.id = "too-late";
  snapshot.pending.push_back(pending);
  const InterferenceProposal proposal = propose_pins(snapshot, {});
  EXPECT_THAT(pins(proposal.actions), ElementsAre("z=0"));
  EXPECT_EQ(proposal.findings.instances.at("new").cpus, cpus("1-2"));
  EXPECT_THAT(unplaceable(proposal), ElementsAre(HasSubstr("too-late: ")));
}

TEST(WindowProfile, MeasuresAServiceOverItsInstances) {
  model::Snapshot snapshot = snapshot_of(host({.cores_per_llc = 4}));
  snapshot.workloads = {with_usage(latency_sensitive("a", 2), {0.5, 1.5}),
                        with_usage(latency_sensitive("b", 1), {0.1}), latency_sensitive("c", 1)};
  for (model::Workload& workload : snapshot.workloads) workload.service = "web";
  // (1.0 / 2 + 0.1 / 1) / 2; c has no samples and adds none.
  EXPECT_DOUBLE_EQ(propose_pins(snapshot, {}).findings.instances.at("c").pressure, 0.3);
}

TEST(WindowProfile, ClampsAServiceThatUsesMoreThanItsVcpus) {
  model::Snapshot snapshot = snapshot_of(host({}));
  snapshot.workloads = {with_usage(latency_sensitive("a", 1), {3.0})};
  snapshot.workloads[0].force = true;
  EXPECT_DOUBLE_EQ(propose_pins(snapshot, {}).findings.instances.at("a").pressure, 1.0);
}

TEST(WindowProfile, PrefersTheGivenPressureAndModel) {
  model::Snapshot snapshot = snapshot_of(host({}));
  snapshot.services["a"] = {.pressure = 0.25, .model = {}};
  snapshot.workloads = {with_usage(latency_sensitive("a", 1), {0.9})};
  const auto findings = propose_pins(snapshot, {}).findings;
  EXPECT_DOUBLE_EQ(findings.instances.at("a").pressure, 0.25);
  EXPECT_EQ(findings.instances.at("a").model, model::ModelOrigin::fallback);
  EXPECT_EQ(findings.instances.at("a").model_reason, "no model is given for service 'a'");
}

}  // namespace berth::policies
