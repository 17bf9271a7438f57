// SPDX-License-Identifier: Apache-2.0
#include "daemon/observe/told_places.h"

#include <gtest/gtest.h>

namespace berth::daemon {
namespace {

using model::CpuSet;

class ToldPlacesTest : public testing::Test {
 protected:
  ToldPlacesTest() {
    snapshot.time = 1000;
    snapshot.workloads.resize(1);
    snapshot.workloads[0].id = "web/a";
  }
  const CpuSet& told() {
    places.join(snapshot, [this](const std::string&) { return run; });
    return snapshot.workloads[0].told_cpus;
  }

  ToldPlaces places;
  model::Snapshot snapshot;
  std::uint64_t run = 7;
};

TEST_F(ToldPlacesTest, APlaceHoldsUntilItsTimeIsOver) {
  places.keep({.workload = "web/a", .cgroup_id = 7, .cpus = CpuSet::range(0, 1), .until = 1010});
  EXPECT_EQ(told(), CpuSet::range(0, 1));
  snapshot.time = 1010;
  EXPECT_TRUE(told().empty());
}

TEST_F(ToldPlacesTest, AnotherRunHasNoneOfIt) {
  places.keep({.workload = "web/a", .cgroup_id = 7, .cpus = CpuSet::range(0, 1), .until = 1010});
  run = 8;
  EXPECT_TRUE(told().empty());
}

TEST_F(ToldPlacesTest, ALaterAdmissionWithoutVcpusEndsTheEarlierPlace) {
  places.keep({.workload = "web/a", .cgroup_id = 7, .cpus = CpuSet::range(0, 1), .until = 1010});
  EXPECT_EQ(told(), CpuSet::range(0, 1));
  places.keep({.workload = "web/a", .cgroup_id = 7, .cpus = {}, .until = 1010});
  EXPECT_TRUE(told().empty());
}

}  // namespace
}  // namespace berth::daemon
