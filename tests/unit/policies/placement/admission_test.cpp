// SPDX-License-Identifier: Apache-2.0
#include "policies/placement/admission.h"

#include "tests/unit/policies/draws.h"
#include "tests/unit/policies/placement/gpu_hosts.h"

#include <cstdint>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::policies {

namespace {

using ::testing::ElementsAre;
using testing::gpu_host;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kGiB;
using testing::latency_sensitive;
using testing::pinned;
using testing::request;

// Two NUMA nodes of eight vCPUs, 64 GiB.
model::Admission ask(const model::Snapshot& snapshot, const model::PendingWorkload& newcomer) {
  const PolicySettings settings;
  Host host(snapshot, settings);
  return admit(host, newcomer);
}

}  // namespace

TEST(Admission, LetsInWhereItFitsBest) {
  model::Snapshot snapshot = gpu_host("a", {});
  snapshot.workloads = {pinned(latency_sensitive("web", 4), "0-3")};
  const auto answer = ask(snapshot, request(4, 0, 8));
  EXPECT_TRUE(answer.admitted);
  EXPECT_EQ(answer.host, "a");
  EXPECT_EQ(answer.bins.fitting.front().numa, 1);
  EXPECT_EQ(answer.bins.fitting.front().cpus.size(), 4U);
  EXPECT_THAT(answer.change, IsEmpty());
  EXPECT_FALSE(answer.reason.empty());
}

TEST(Admission, WhoWasLetInIsThereForTheNextOne) {
  const PolicySettings settings;
  Host host(gpu_host("a", {}), settings);
  model::PendingWorkload newcomer = request(8);
  newcomer.id = "first";
  EXPECT_TRUE(admit(host, newcomer).admitted);
  newcomer.id = "second";
  // One vCPU stays with best-effort work.
  EXPECT_FALSE(admit(host, newcomer).admitted);
  newcomer.vcpus = 7;
  EXPECT_TRUE(admit(host, newcomer).admitted);
}

TEST(Admission, SaysHowManyVcpusWouldDo) {
  model::Snapshot snapshot = gpu_host("a", {});
  snapshot.workloads = {pinned(latency_sensitive("web", 6), "0-3,8-9"),
                        pinned(latency_sensitive("db", 5), "4-7,12")};
  const auto answer = ask(snapshot, request(4));
  EXPECT_FALSE(answer.admitted);
  EXPECT_THAT(answer.reason, HasSubstr("NUMA node 0: asks 4 vCPUs; 2 of 8 are free"));
  EXPECT_THAT(answer.change,
              ElementsAre("ask for 2 vCPUs at most, or 2 more have to become free on NUMA node 0",
                          "ask for 3 vCPUs at most, or 1 more have to become free on NUMA node 1"));
}

TEST(Admission, SaysHowMuchMemoryWouldDo) {
  model::Snapshot snapshot = gpu_host("a", {});
  snapshot.memory.available_bytes = 6 * kGiB;
  const auto answer = ask(snapshot, request(1, 0, 8));
  EXPECT_FALSE(answer.admitted);
  EXPECT_THAT(answer.change,
              ElementsAre("ask for 6 GiB of memory at most, or 2 GiB more has to become free"));
}

TEST(Admission, AMemoryCapIsAllThereIs) {
  PolicySettings settings;
  settings.oversell.memory_cap_bytes = 4 * kGiB;
  Host host(gpu_host("a", {}), settings);
  EXPECT_FALSE(admit(host, request(1, 0, 5)).admitted);
  EXPECT_TRUE(admit(host, request(1, 0, 4)).admitted);
}

TEST(Admission, ANodeInStateNoScheduleRefusesAndSaysWhenItWillNot) {
  model::Snapshot snapshot = gpu_host("a", {});
  snapshot.advertised.memory = {.factor = 1, .state = model::SchedulingState::no_schedule};
  const auto answer = ask(snapshot, request(1));
  EXPECT_FALSE(answer.admitted);
  EXPECT_THAT(answer.reason, HasSubstr("memory is in state no-schedule"));
  EXPECT_THAT(answer.change,
              ElementsAre("the memory in use has to fall below 80 % of the total (state no-schedule)"));
}

TEST(Admission, SaysWhichGpusAreMissing) {
  const auto answer = ask(gpu_host("a", {testing::gpu("0000:01:00.0", 0)}), request(1, 2));
  EXPECT_FALSE(answer.admitted);
  ASSERT_FALSE(answer.change.empty());
  EXPECT_THAT(answer.change.front(), HasSubstr("GPUs have to become free on NUMA node 0, or ask for others"));
}

// However many come, they never get more than there is, and none gets what another one has.
RC_GTEST_PROP(AdmissionProperty, PromisesNoVcpuTwiceAndNoMoreMemoryThanThereIs, ()) {
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  testing::Draws draws(seed);
  const PolicySettings settings;
  const model::Snapshot snapshot = gpu_host("a", {});
  Host host(snapshot, settings);
  model::CpuSet owned;
  std::uint64_t promised = 0;
  int admitted = 0;
  for (int i = 0; i < 40; ++i) {
    auto newcomer = request(draws.number(1, 4), 0, static_cast<std::uint64_t>(draws.number(0, 8)));
    newcomer.id = "new-" + std::to_string(i);
    if (draws.fraction() < 0.5) newcomer.workload_class = model::WorkloadClass::best_effort;
    const auto answer = admit(host, newcomer);
    RC_ASSERT(answer.admitted == answer.change.empty());
    if (!answer.admitted) continue;
    ++admitted;
    promised += newcomer.memory_request_bytes;
    const model::CpuSet& cpus = answer.bins.fitting.front().cpus;
    if (newcomer.workload_class == model::WorkloadClass::best_effort) continue;
    RC_ASSERT(!cpus.intersects(owned));
    RC_ASSERT(static_cast<int>(cpus.size()) == *newcomer.vcpus);
    owned |= cpus;
  }
  RC_ASSERT(admitted > 0);
  RC_ASSERT(promised <= snapshot.memory.total_bytes);
  RC_ASSERT(owned.size() < snapshot.topology.usable().size());
}

}  // namespace berth::policies
