// SPDX-License-Identifier: Apache-2.0
// Hosts are drawn as the rows say, and the order of simple ways is as every measurement of a real kernel has
// it.
#include "tests/judge/rows.h"

#include "tests/judge/berth.h"
#include "tests/judge/hindsight.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
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
  const Figures same = judged("anywhere");
  const Figures idle = judged("anywhere, batch idle");
  EXPECT_LT(idle.p99_ratio, 0.7 * same.p99_ratio);
  EXPECT_NEAR(idle.batch, same.batch, 0.05);
  EXPECT_LT(idle.violations, same.violations);
  EXPECT_GT(idle.emu, same.emu);
}

TEST(Judge, FewerCoresForTheBatchServeBetterAndDoLess) {
  const Figures all = judged("anywhere, batch idle");
  const Figures few = judged("batch idle, cores that 1.5 x use leaves");
  EXPECT_LT(few.p99_ratio, all.p99_ratio);
  EXPECT_LT(few.batch, 0.8 * all.batch);
}

TEST(Judge, BerthGivesServicesVcpusOfTheirOwnThatAskForThem) {
  const Figures berth = judged("berth, own vCPUs");
  const Figures own = judged("spread");
  EXPECT_NEAR(berth.batch, own.batch, 0.1);
}

TEST(Judge, SharedServicesAreServedBetterThanOnVcpusOfTheirOwn) {
  const Figures shared = judged("berth");
  const Figures own = judged("berth, own vCPUs");
  EXPECT_LT(shared.violations, own.violations);
  EXPECT_GT(shared.emu, own.emu);
}

TEST(Judge, TheSameSeedsGiveTheSameFiguresWithAnyNumberOfThreads) {
  const std::vector<Row> rows{{}, {.name = {}, .use = 0.2}};
  const std::vector<Way> ways{way_named("PerfIso"), way_named("berth")};
  const auto figures = [&](unsigned jobs) {
    std::vector<std::vector<std::vector<Figures>>> found;
    judge_rows(rows, ways, {}, kWindow, 1, 2, jobs, [&](std::size_t row, const auto& by_seed) {
      EXPECT_EQ(row, found.size());
      found.push_back(by_seed);
    });
    return found;
  };
  const auto one = figures(1);
  EXPECT_EQ(one.size(), 2U);
  EXPECT_EQ(one, figures(3));
  EXPECT_NE(one[0][0], one[0][1]);
}

TEST(Judge, AnAgentReadsWithNoiseThatFollowsTheSeed) {
  const Host host = draw_host({}, 1);
  const auto read = [&](std::uint64_t seed) {
    std::vector<double> cores;
    Way way{.name = "reads", .begin = same_priority, .period = kSecond, .make = [&](const Host&) {
              return [&](Kernel&, const std::vector<Reading>& readings) {
                cores.push_back(readings.back().cores + readings[readings.size() - 2].cores);
                EXPECT_GE(readings[0].cpi.value(), 0.3);
                EXPECT_GT(readings[0].delay_us.value(), 0);
              };
            }};
    judge(host, way, alone_on(host, {}, kWindow, 1), {}, kWindow, seed);
    return cores;
  };
  const auto once = read(1);
  EXPECT_EQ(once, read(1));
  EXPECT_NE(once, read(2));
}

TEST(Judge, QuantilesOfAServiceAloneAreThoseAlone) {
  Host host = draw_host({}, 1);
  host.batch = {};
  host.batch_software = {};
  host.services.resize(1);
  host.services[0].load.cores = 0.4;
  Alone alone = alone_on(host, {}, 2 * kWindow, 1);
  const Figures figures = judge(host, way_named("anywhere"), alone, {}, 2 * kWindow, 1);
  EXPECT_NEAR(figures.p50_ratio, 1, 0.01);
  EXPECT_NEAR(figures.p99_ratio, 1, 0.05);
  EXPECT_NEAR(figures.p999_ratio, 1, 0.1);
  EXPECT_EQ(figures.violations, 0);
}

TEST(Judge, BerthGivesTheBatchItsPriority) {
  const Host host = draw_host({}, 1);
  const Alone alone = alone_on(host, {}, kWindow, 1);
  const auto batch_after = [&](policies::BestEffortPriority priority) {
    Group last;
    const Way way{.name = "berth", .begin = same_priority, .period = kSecond, .make = [&](const Host& it) {
                    const auto berth = std::make_shared<Berth>(
                        it, policies::InterferenceSettings{.best_effort_priority = priority});
                    return [&, berth](Kernel& kernel, const std::vector<Reading>& readings) {
                      berth->decide(kernel, readings);
                      last = kernel.group(host.groups() - 1);
                      EXPECT_FALSE(kernel.group(0).idle);
                    };
                  }};
    judge(host, way, alone, {}, kWindow, 1);
    return last;
  };
  EXPECT_TRUE(batch_after(policies::BestEffortPriority::idle).idle);
  EXPECT_EQ(batch_after(policies::BestEffortPriority::weight).weight, kLeastWeight);
  EXPECT_FALSE(batch_after(policies::BestEffortPriority::leave).idle);
}

TEST(Judge, BerthLearnsModelsOfServices) {
  // Whether it accepts one depends on the host.
  int models = 0;
  for (const std::uint64_t seed : {7, 9}) {
    const Host host = draw_host({}, seed);
    const auto learned = learn_on(host, {}, 400 * kSecond, seed);
    EXPECT_EQ(learned.size(), host.services.size());
    models += static_cast<int>(
        std::count_if(learned.begin(), learned.end(), [](const auto& it) { return it.second.model; }));
  }
  EXPECT_GT(models, 0);
}

// The vCPUs of each service at the start.
std::vector<CpuMask> places_of(const Host& host, const std::string& way) {
  std::vector<CpuMask> masks;
  for (const Group& group : way_named(way).begin(host)) masks.push_back(group.mask);
  masks.resize(host.services.size());
  return masks;
}

TEST(Hindsight, TriesTheSameForAllAndGoesOnFromTheBest) {
  const Host host = draw_host({}, 1);
  const Alone alone = alone_on(host, {}, kWindow, 1);
  const auto tried = try_fixed_pins(host, alone, {}, kWindow, 1);
  std::vector<double> batch;  // by the number, where it is the same for all
  double most = 0;            // EMU of these
  double best = 0;            // of all
  for (const FixedPins& it : tried) {
    ASSERT_EQ(it.vcpus.size(), host.batch.size());
    best = std::max(best, it.figures.emu);
    if (it.vcpus.front() != it.vcpus.back() || it.vcpus.front() == 0) continue;
    batch.push_back(it.figures.batch);
    most = std::max(most, it.figures.emu);
  }
  ASSERT_EQ(batch.size(), 4U);
  EXPECT_TRUE(std::is_sorted(batch.begin(), batch.end()));
  EXPECT_LT(batch.front(), 0.7 * batch.back());
  EXPECT_GT(tried.size(), batch.size() + 2);
  EXPECT_GE(best, most);
}

TEST(Ways, OfThoseThatOwnNoTwoShareAVcpu) {
  for (const std::string way : {"packed", "spread", "random"}) {
    const Host host = draw_host({.name = {}, .cores = 16, .asked = 0.3}, 2);
    CpuMask taken;
    for (const CpuMask& mask : places_of(host, way)) {
      EXPECT_TRUE((taken & mask).none()) << way;
      taken |= mask;
    }
    EXPECT_TRUE((taken & way_named(way).begin(host).back().mask).none()) << way;
  }
}

TEST(Ways, PackedGivesWholeCores) {
  for (const CpuMask& mask : places_of(draw_host({.name = {}, .cores = 16, .asked = 0.3}, 2), "packed")) {
    for (std::size_t cpu = 0; cpu < 32; cpu += 2) EXPECT_EQ(mask.test(cpu), mask.test(cpu + 1));
  }
}

TEST(Ways, OneCacheEachIsTheWholeOfOne) {
  const Host host = draw_host({.name = {}, .sockets = 2, .domains = 2}, 1);
  std::vector<CpuMask> found;
  for (const CpuMask& mask : places_of(host, "one cache each")) {
    EXPECT_EQ(mask.count(), 8U);
    if (std::find(found.begin(), found.end(), mask) == found.end()) found.push_back(mask);
  }
  EXPECT_EQ(found.size(), 4U);
  EXPECT_EQ(places_of(host, "one socket each").front().count(), 16U);
}

TEST(Ways, TheBatchHasThePriorityOfTheName) {
  const Host host = draw_host({}, 1);
  const auto batch = [&](const std::string& way) { return way_named(way).begin(host).back(); };
  EXPECT_FALSE(batch("anywhere").idle);
  EXPECT_LT(batch("anywhere, batch of the least weight").weight, 0.02 * batch("anywhere").weight);
  EXPECT_TRUE(batch("anywhere, batch idle").idle);
  EXPECT_TRUE(batch("spread, batch idle anywhere").idle);
  EXPECT_EQ(batch("spread, batch idle anywhere").mask, everywhere(host));
}

// The number of the batch's vCPUs after each second, while the services use so many cores.
std::vector<std::size_t> suppressed(const Host& host, const std::vector<double>& used) {
  Kernel kernel(
      host.places, {}, [](int, int, int) { return 1.0; }, [](int) { return std::optional<Time>(); },
      [](std::int64_t) {});
  const Way way = way_named("Koordinator");
  for (const Group& group : way.begin(host)) kernel.add_group(group);
  const auto change = way.make(host);
  std::vector<std::size_t> found;
  for (const double cores : used) {
    std::vector<Reading> readings(static_cast<std::size_t>(host.groups()));
    readings[0].cores = cores;
    change(kernel, readings);
    found.push_back(kernel.group(host.groups() - 1).mask.count());
  }
  return found;
}

TEST(Ways, KoordinatorLeavesTheBatchAPartOfTheHostAndGrowsItSlowly) {
  const Host host = draw_host({.name = {}, .sockets = 2, .cores = 8}, 1);
  // 0.65 x 32 - 10 = 10.8; never below two; at most 3.2 more a second.
  EXPECT_EQ(suppressed(host, {10, 30, 30, 10, 10, 10}), (std::vector<std::size_t>{11, 2, 2, 6, 10, 11}));
}

}  // namespace
}  // namespace berth::judge
