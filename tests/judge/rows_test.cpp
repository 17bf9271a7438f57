// SPDX-License-Identifier: Apache-2.0
// Hosts are drawn as the rows say, and the order of simple ways is as every measurement of a real kernel has
// it.
#include "tests/judge/rows.h"

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace berth::judge {
namespace {

Way way_named(const std::string& name) {
  const auto ways = all_ways();
  const auto found = std::find_if(ways.begin(), ways.end(), [&](const Way& way) { return way.name == name; });
  if (found == ways.end()) throw std::out_of_range(name);
  return *found;
}

// On the first host of the first kind.
Figures judged(const std::string& name) {
  constexpr Time kLength = 2 * kWindow;
  static const Host host = draw_host({}, 1);
  static const Alone alone = alone_on(host, {}, kLength, 1);
  return judge(host, way_named(name), alone, {}, kLength, 1);
}

TEST(Rows, HostsAreDrawnAsTheRowSays) {
  for (const Row& row : all_rows()) {
    const Host host = draw_host(row, 3);
    int asked = 0;
    double used = 0;
    for (const ServiceOnHost& service : host.services) {
      asked += service.vcpus;
      used += service.load.cores;
    }
    EXPECT_EQ(host.cpus(), row.sockets * row.domains * row.cores * row.threads) << row.name;
    EXPECT_NEAR(asked, row.asked * host.cpus(), 0.5) << row.name;
    EXPECT_NEAR(used, row.use * asked, 1e-9) << row.name;
    EXPECT_EQ(host.batch_software.size(), host.batch.size());
    for (const ServiceOnHost& service : host.services)
      EXPECT_EQ(service.load.threads, row.threads_of_service * service.vcpus) << row.name;
    const int slow = row.sockets * row.domains * row.slow_cores * row.threads;
    EXPECT_NEAR(host.capacity(), host.cpus() - (1 - kSlowCapacity) * slow, 1e-9) << row.name;
  }
}

TEST(Rows, TheSameSeedIsTheSameHost) {
  const auto cores = [](std::uint64_t seed) {
    std::vector<double> found;
    for (const ServiceOnHost& service : draw_host(all_rows()[1], seed).services)
      found.push_back(service.software.reuse);
    return found;
  };
  EXPECT_EQ(cores(2), cores(2));
  EXPECT_NE(cores(2), cores(3));
}

TEST(Rows, BerthIsToldWhichCoresAreFast) {
  auto places = shape(1, 1, 2, 1);
  places[1].capacity = kSlowCapacity;
  const model::Topology topology = topology_of(places);
  EXPECT_GT(topology.find(0)->efficiency.value(), topology.find(1)->efficiency.value());
  EXPECT_FALSE(topology_of(shape(1, 1, 2, 1)).find(0)->efficiency.has_value());
}

TEST(Judge, IdlePriorityServesBetterThanTheSamePriorityAtTheSameWork) {
  const Figures same = judged("same priority, anywhere");
  const Figures idle = judged("batch idle, anywhere");
  EXPECT_LT(idle.p99_ratio, 0.7 * same.p99_ratio);
  EXPECT_NEAR(idle.batch, same.batch, 0.05);
  EXPECT_LT(idle.violations, same.violations);
  EXPECT_GT(idle.emu, same.emu);
}

TEST(Judge, FewerCoresForTheBatchServeBetterAndDoLess) {
  const Figures all = judged("batch idle, anywhere");
  const Figures few = judged("batch idle, cores that 1.5 x use leaves");
  EXPECT_LT(few.p99_ratio, all.p99_ratio);
  EXPECT_LT(few.batch, 0.8 * all.batch);
}

TEST(Judge, BerthGivesServicesVcpusOfTheirOwn) {
  const Figures berth = judged("berth, search window");
  const Figures own = judged("own vCPUs");
  EXPECT_NEAR(berth.batch, own.batch, 0.1);
}

TEST(Judge, TheSameSeedsGiveTheSameFigures) {
  const Figures once = judged("PerfIso");
  const Figures again = judged("PerfIso");
  EXPECT_EQ(once.p99_ratio, again.p99_ratio);
  EXPECT_EQ(once.batch, again.batch);
}

}  // namespace
}  // namespace berth::judge
