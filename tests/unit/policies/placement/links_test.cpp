// SPDX-License-Identifier: Apache-2.0
// GPUs that are linked with each other: which of them a request gets.
#include "policies/placement/gpu_links.h"
#include "policies/placement/gpus.h"
#include "policies/placement/nearest.h"
#include "policies/placement/rank.h"
#include "tests/unit/policies/draws.h"
#include "tests/unit/policies/placement/gpu_hosts.h"
#include "tests/unit/policies/seeds.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::policies {

namespace {

using model::GpuLink;
using ::testing::ElementsAre;
using testing::gpu;
using testing::gpu_host;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kGiB;
using testing::request;

using LinkOf = std::function<std::optional<GpuLink>(std::size_t a, std::size_t b)>;

// Each pair is named by the first of the two alone.
std::vector<model::Gpu> linked(std::vector<model::Gpu> gpus, const LinkOf& link_of) {
  for (std::size_t a = 0; a < gpus.size(); ++a) {
    for (std::size_t b = a + 1; b < gpus.size(); ++b) {
      if (const auto link = link_of(a, b)) gpus[a].links.push_back({.id = gpus[b].id, .link = *link});
    }
  }
  return gpus;
}

std::vector<model::Gpu> gpus_on(const std::vector<int>& nodes) {
  std::vector<model::Gpu> gpus;
  for (const int node : nodes) gpus.push_back(gpu(fmt::format("g{}", gpus.size()), node));
  return gpus;
}

// Two GPUs with NVLink between them, and nothing but the host bridge between these pairs: 0 and 3, 1 and 2.
GpuLink bridged_pairs(std::size_t a, std::size_t b) { return a + b == 3 ? GpuLink::nv : GpuLink::phb; }

model::BinRanking rank(const model::PendingWorkload& request, const std::vector<model::Snapshot>& snapshots) {
  static const PolicySettings settings;
  std::vector<Host> hosts;
  for (const model::Snapshot& snapshot : snapshots) hosts.emplace_back(snapshot, settings);
  return rank_bins(request, hosts);
}

}  // namespace

TEST(GpuLinks, TwoGpusAreTheOnesWithNvLink) {
  auto gpus = linked(gpus_on({0, 0, 0, 0}), bridged_pairs);
  auto ranking = rank(request(2, 2), {gpu_host("a", gpus)});
  EXPECT_THAT(ranking.fitting[0].gpus, ElementsAre("g0", "g3"));
  EXPECT_THAT(ranking.fitting[0].reason, HasSubstr("; GPUs linked by NV; "));
  EXPECT_EQ(ranking.fitting[0].gpu_links, (std::map<GpuLink, int>{{GpuLink::nv, 1}}));
  // Of equal pairs, the one with the least free memory.
  gpus[1].memory_used_bytes = kGiB;
  EXPECT_THAT(rank(request(2, 2), {gpu_host("a", gpus)}).fitting[0].gpus, ElementsAre("g1", "g2"));
  // A pair that is not free is no pair.
  gpus[1].healthy = gpus[3].healthy = false;
  ranking = rank(request(2, 2), {gpu_host("a", gpus)});
  EXPECT_THAT(ranking.fitting[0].gpus, ElementsAre("g0", "g2"));
  EXPECT_THAT(ranking.fitting[0].reason, HasSubstr("; GPUs linked by PHB; "));
}

TEST(GpuLinks, SeveralGpusAreTheSetWithTheLeastSum) {
  // The first three of six have NVLink in a row, the others a switch.
  const auto gpus = linked(gpus_on({0, 0, 0, 0, 0, 0}), [](std::size_t a, std::size_t b) {
    if (b <= 2) return b - a == 1 ? GpuLink::nv : GpuLink::node;
    return a >= 3 ? GpuLink::pix : GpuLink::node;
  });
  const auto best = rank(request(2, 3), {gpu_host("a", gpus)}).fitting[0];
  // 0 + 0 + 8 against 5 + 5 + 5.
  EXPECT_THAT(best.gpus, ElementsAre("g0", "g1", "g2"));
  EXPECT_THAT(best.reason, HasSubstr("; of 3 pairs of GPUs 2 linked by NV, 1 linked by NODE; "));
  EXPECT_EQ(best.gpu_links, (std::map<GpuLink, int>{{GpuLink::nv, 2}, {GpuLink::node, 1}}));
}

TEST(GpuLinks, AnUnknownLinkCountsAsNodeInsideANode) {
  // Of g0 nothing is known; g1 and g2 are as far apart as a link of one node can be, g2 and g3 nearer.
  const auto gpus = linked(gpus_on({0, 0, 0, 0}), [](std::size_t a, std::size_t b) -> std::optional<GpuLink> {
    if (a == 0) return std::nullopt;
    return a == 2 && b == 3 ? GpuLink::phb : GpuLink::sys;
  });
  EXPECT_THAT(rank(request(2, 2), {gpu_host("a", gpus)}).fitting[0].gpus, ElementsAre("g2", "g3"));
  // 8 + 8 + 7 with it, 9 + 9 + 7 without.
  const auto best = rank(request(2, 3), {gpu_host("a", gpus)}).fitting[0];
  EXPECT_THAT(best.gpus, ElementsAre("g0", "g2", "g3"));
  EXPECT_THAT(best.reason, HasSubstr("; of 3 pairs of GPUs 1 linked by PHB; "));
}

TEST(GpuLinks, ARequestThatSharesTakesSharedGpusFirst) {
  auto gpus = linked(gpus_on({0, 0, 0, 0}), bridged_pairs);
  gpus[2].other_processes = 1;
  auto wanted = request(2, 2);
  wanted.gpu_exclusive = false;
  // The shared one, and the one that has NVLink to it.
  EXPECT_THAT(rank(wanted, {gpu_host("a", gpus)}).fitting[0].gpus, ElementsAre("g1", "g2"));
  gpus[0].other_processes = gpus[3].other_processes = 1;
  EXPECT_THAT(rank(wanted, {gpu_host("a", gpus)}).fitting[0].gpus, ElementsAre("g0", "g3"));
}

TEST(GpuLinks, OneGpuIsChosenAsWithoutLinks) {
  auto gpus = linked(gpus_on({0, 0, 0, 0}), bridged_pairs);
  gpus[1].memory_used_bytes = kGiB;
  EXPECT_THAT(rank(request(2, 1), {gpu_host("a", gpus)}).fitting[0].gpus, ElementsAre("g1"));
}

TEST(GpuLinks, OfBinsWithEquallyManyIdleGpusTheBestLinkedComesFirst) {
  const auto near = linked(gpus_on({0, 0, 0}), [](auto, auto) { return GpuLink::nv; });
  const auto far = linked(gpus_on({0, 0, 0}), [](auto, auto) { return GpuLink::phb; });
  auto few = linked(gpus_on({0, 0}), [](auto, auto) { return GpuLink::sys; });
  for (model::Gpu& gpu : few) gpu.memory_bytes = 200 * kGiB;
  const auto ranking = rank(request(2, 2), {gpu_host("a", gpus_on({0, 0, 0})), gpu_host("b", far),
                                            gpu_host("c", near), gpu_host("d", few)});
  std::vector<std::string> hosts;
  for (const auto& bin : ranking.fitting) hosts.push_back(bin.host);
  // First the one with no idle GPU left, whatever its links. Without a known link GPUs are as far as NODE.
  EXPECT_THAT(hosts, ElementsAre("d", "c", "b", "a"));
}

TEST(GpuLinks, InASetOfNodesTheLastOneGivesThoseThatAreNearest) {
  // Node 0 gives its three. Of node 1, g4 has NVLink to g2.
  const auto gpus = linked(gpus_on({0, 0, 0, 1, 1}), [](std::size_t a, std::size_t b) {
    if (b <= 2 || a >= 3) return GpuLink::pix;
    return a == 2 && b == 4 ? GpuLink::nv : GpuLink::sys;
  });
  const auto ranking = rank(request(2, 4), {gpu_host("a", gpus)});
  EXPECT_THAT(ranking.fitting[0].gpus, ElementsAre("g0", "g1", "g2", "g4"));
  EXPECT_THAT(ranking.fitting[0].reason,
              HasSubstr("; of 6 pairs of GPUs 1 linked by NV, 3 linked by PIX, 2 linked by SYS; "));
}

TEST(GpuLinks, OfSetsOfNodesTheOneWithTheBestLinksComesBeforeTheNearestNodes) {
  // Two GPUs on each of four nodes; by the firmware nodes 0 and 1 are near, but NVLink connects 1 and 2.
  auto cpus =
      testing::cpus_of({.sockets = 2, .llcs_per_socket = 2, .cores_per_llc = 4, .threads_per_core = 1});
  for (model::Cpu& cpu : cpus) cpu.numa = *cpu.llc;
  const auto gpus = linked(gpus_on({0, 0, 1, 1, 2, 2, 3, 3}), [](std::size_t a, std::size_t b) {
    return a / 2 == b / 2 || (a / 2 == 1 && b / 2 == 2) ? GpuLink::nv : GpuLink::sys;
  });
  model::Snapshot host = testing::snapshot_of(model::Topology::make(cpus, gpus).value());
  host.memory.total_bytes = host.memory.available_bytes = 64 * kGiB;
  const auto best = rank(request(2, 4), {host}).fitting.at(0);
  EXPECT_EQ(best.numa_nodes, testing::cpus("1-2"));
  EXPECT_THAT(best.reason, HasSubstr("; all GPUs linked by NV; "));
  // Without links, the nodes of a socket.
  host.topology = model::Topology::make(cpus, gpus_on({0, 0, 1, 1, 2, 2, 3, 3})).value();
  EXPECT_EQ(rank(request(2, 4), {host}).fitting.at(0).numa_nodes, testing::cpus("0-1"));
}

TEST(GpuLinks, ToldGpusStayWhateverTheirLinks) {
  const auto gpus = linked(gpus_on({0, 0, 0, 0}), bridged_pairs);
  auto wanted = request(2, 2);
  wanted.told_gpus = {"g0", "g1"};
  const auto best = rank(wanted, {gpu_host("a", gpus)}).fitting[0];
  EXPECT_THAT(best.gpus, ElementsAre("g0", "g1"));
  EXPECT_THAT(best.reason, HasSubstr("; GPUs linked by PHB; "));
}

TEST(GpuLinks, WithoutLinksNothingIsSaidOfThem) {
  const auto best = rank(request(2, 2), {gpu_host("a", gpus_on({0, 0}))}).fitting[0];
  EXPECT_THAT(best.reason, ::testing::Not(HasSubstr("linked")));
  EXPECT_THAT(best.gpu_links, IsEmpty());
}

TEST(GpuLinks, ABetterLinkIsNearer) {
  for (std::size_t i = 1; i < model::kGpuLinks.size(); ++i)
    EXPECT_LT(distance_of(model::kGpuLinks[i - 1]), distance_of(model::kGpuLinks[i]));
}

namespace {

struct Things {
  std::vector<std::vector<int>> between;
  std::vector<int> to_taken;

  std::size_t count() const { return to_taken.size(); }
  std::vector<std::size_t> nearest(std::size_t wanted) const {
    return policies::nearest(
        count(), wanted, [this](std::size_t a, std::size_t b) { return between[a][b]; }, to_taken);
  }
  int sum(const std::vector<std::size_t>& set) const {
    int sum = 0;
    for (const std::size_t a : set) {
      sum += to_taken[a];
      for (const std::size_t b : set) sum += a < b ? between[a][b] : 0;
    }
    return sum;
  }
};

Things draw_things(testing::Draws& draws, int count) {
  const auto size = static_cast<std::size_t>(count);
  Things things{.between = std::vector<std::vector<int>>(size, std::vector<int>(size)),
                .to_taken = std::vector<int>(size)};
  const int most = draws.number(0, 9);
  for (std::size_t b = 0; b < size; ++b) {
    things.to_taken[b] = draws.chance(0.5) ? draws.number(0, 2 * most) : 0;
    for (std::size_t a = 0; a < b; ++a)
      things.between[a][b] = things.between[b][a] = draws.chance(0.3) ? 0 : draws.number(0, most);
  }
  return things;
}

}  // namespace

// Every subset of the size, compared by its sum, then by the order of the things.
RC_GTEST_PROP(NearestProperty, IsTheLeastOfAllSubsets, ()) {
  testing::Draws draws(*testing::any_seed());
  const int count = draws.number(1, 10);
  const Things things = draw_things(draws, count);
  const int wanted = draws.number(0, count);
  std::optional<std::pair<int, std::vector<std::size_t>>> least;
  for (unsigned mask = 0; mask < 1U << static_cast<unsigned>(count); ++mask) {
    std::vector<std::size_t> set;
    for (std::size_t i = 0; i < things.count(); ++i) {
      if (((mask >> i) & 1U) != 0) set.push_back(i);
    }
    if (std::ssize(set) != wanted) continue;
    auto judged = std::pair(things.sum(set), set);
    if (!least || judged < *least) least = std::move(judged);
  }
  RC_CLASSIFY(wanted > 1 && wanted < count && least->first > 0, "there is a choice");
  RC_ASSERT(things.nearest(static_cast<std::size_t>(wanted)) == least->second);
}

// With too many sets to compare, the answer is the best of those that grow from each thing.
RC_GTEST_PROP(NearestProperty, IsTheBestOfTheGrownSets, ()) {
  testing::Draws draws(*testing::any_seed());
  const int count = draws.number(24, 70);
  const Things things = draw_things(draws, count);
  const auto wanted = static_cast<std::size_t>(draws.number(6, 12));
  const auto chosen = things.nearest(wanted);
  RC_ASSERT(chosen.size() == wanted);
  RC_ASSERT(std::set<std::size_t>(chosen.begin(), chosen.end()).size() == wanted);
  RC_ASSERT(std::is_sorted(chosen.begin(), chosen.end()));
  RC_ASSERT(chosen.back() < std::min(things.count(), kMostNearest));
  // Each start, grown as the header says.
  int least = things.sum(chosen) + 1;
  for (std::size_t start = 0; start < std::min(things.count(), kMostNearest); ++start) {
    std::vector<std::size_t> set{start};
    while (set.size() < wanted) {
      std::optional<std::pair<int, std::size_t>> next;
      for (std::size_t thing = 0; thing < std::min(things.count(), kMostNearest); ++thing) {
        if (std::find(set.begin(), set.end(), thing) != set.end()) continue;
        std::pair farther(things.to_taken[thing], thing);
        for (const std::size_t other : set) farther.first += things.between[thing][other];
        if (!next || farther < *next) next = farther;
      }
      set.push_back(next->second);
    }
    least = std::min(least, things.sum(set));
  }
  RC_ASSERT(things.sum(chosen) == least);
}

TEST(Nearest, AWholeGroupIsFoundAmongMany) {
  // Four groups of 16, one after the other by turns.
  std::vector<int> none(64);
  const auto chosen = nearest(
      64, 16, [](std::size_t a, std::size_t b) { return a % 4 == b % 4 ? 0 : 9; }, none);
  std::vector<std::size_t> group(16);
  for (std::size_t i = 0; i < group.size(); ++i) group[i] = 4 * i;
  EXPECT_EQ(chosen, group);
}

TEST(Nearest, TakesAllWhereThereAreNoMore) {
  const auto far = [](std::size_t, std::size_t) { return 9; };
  EXPECT_THAT(nearest(3, 3, far, {1, 2, 3}), ElementsAre(0, 1, 2));
  EXPECT_THAT(nearest(3, 5, far, {1, 2, 3}), ElementsAre(0, 1, 2));
  EXPECT_THAT(nearest(3, 0, far, {1, 2, 3}), IsEmpty());
  EXPECT_THAT(nearest(0, 2, far, {}), IsEmpty());
}

}  // namespace berth::policies
