// SPDX-License-Identifier: Apache-2.0
#include "cli/render_topology.h"
#include "topology/discover.h"

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::cli {
namespace {

using model::Cpu;
using model::Topology;

Topology synthetic(const std::string& description) {
  auto topology = topology::from_synthetic(description);
  if (!topology) throw std::runtime_error(topology.error().message());
  return *topology;
}

Topology made(std::vector<Cpu> cpus) {
  auto topology = Topology::make(std::move(cpus));
  if (!topology) throw std::runtime_error(topology.error().message());
  return *topology;
}

std::string without_colour(const std::string& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      i = text.find('m', i);
    } else {
      plain += text[i];
    }
  }
  return plain;
}

std::size_t longest_line(const std::string& text) {
  std::istringstream in(text);
  std::string line;
  std::size_t longest = 0;
  while (std::getline(in, line)) longest = std::max(longest, line.size());
  return longest;
}

TEST(Render, ASmallHost) {
  EXPECT_EQ(render_topology(synthetic("package:2 l3:1 core:2 pu:2")),
            "2 sockets, 2 LLC domains, 1 NUMA node, 4 cores, 8 vCPUs (2 threads a core)\n"
            "\n"
            "socket 0   2 cores, 4 vCPUs, NUMA 0\n"
            "             LLC 0\n"
            "  core        0  1\n"
            "  thread 0    0  2\n"
            "  thread 1    1  3\n"
            "\n"
            "socket 1   2 cores, 4 vCPUs, NUMA 0\n"
            "             LLC 1\n"
            "  core        2  3\n"
            "  thread 0    4  6\n"
            "  thread 1    5  7\n");
}

TEST(Render, DomainsStandSideBySide) {
  EXPECT_EQ(render_topology(synthetic("package:1 numa:2 l3:1 core:4 pu:1")),
            "1 socket, 2 LLC domains, 2 NUMA nodes, 8 cores, 8 vCPUs\n"
            "\n"
            "socket 0   8 cores, 8 vCPUs, NUMA 0,1\n"
            "             LLC 0, NUMA 0 | LLC 1, NUMA 1\n"
            "  core        0  1  2  3   |  4  5  6  7\n"
            "  vCPU        0  1  2  3   |  4  5  6  7\n");
}

TEST(Render, NodesWithoutVcpusOrMemoryAreDrawn) {
  std::vector<Cpu> cpus(2);
  cpus[1] = {.cpu = 1, .core = 1, .llc = 1, .numa = 8, .socket = 8, .efficiency = {}};
  cpus[0].llc = 0;
  const auto topology = Topology::make(cpus, {}, {},
                                       {{.number = 0, .memory_bytes = std::uint64_t{32} << 30U},
                                        {.number = 8, .memory_bytes = 0},
                                        {.number = 252, .memory_bytes = std::uint64_t{96} << 30U},
                                        {.number = 253, .memory_bytes = 0},
                                        {.number = 254, .memory_bytes = std::nullopt}});
  ASSERT_TRUE(topology) << topology.error().message();
  EXPECT_EQ(render_topology(*topology),
            "2 sockets, 2 LLC domains, 5 NUMA nodes (3 without vCPUs), 2 cores, 2 vCPUs\n"
            "\n"
            "socket 0   1 core, 1 vCPU, NUMA 0\n"
            "             LLC 0\n"
            "  core        0\n"
            "  vCPU        0\n"
            "\n"
            "socket 8   1 core, 1 vCPU, NUMA 8 (no memory)\n"
            "             LLC 1\n"
            "  core        1\n"
            "  vCPU        1\n"
            "\n"
            "NUMA 252   96 GiB, no vCPUs\n"
            "NUMA 253   no memory, no vCPUs\n"
            "NUMA 254   memory, no vCPUs\n");
}

TEST(Render, OfflineForbiddenAndHybridOnesAreMarked) {
  std::vector<Cpu> cpus(5);
  for (int i = 0; i < 5; ++i) {
    auto& cpu = cpus[static_cast<std::size_t>(i)];
    cpu.cpu = i;
    cpu.core = std::max(i - 1, 0);  // 0 and 1 are siblings
    if (i < 4) cpu.llc = 0;
    if (i < 4) cpu.efficiency = i < 2 ? 1 : 0;
    cpu.online = i != 1 && i != 4;
    cpu.allowed = i != 3;
  }
  const auto topology = made(cpus);
  EXPECT_EQ(render_topology(topology),
            "1 socket, 1 LLC domain, 1 NUMA node, 3 cores, 5 vCPUs (2 threads a core)\n"
            "usable: 2 of 5 (0,2)\n"
            "\n"
            "socket 0   3 cores, 5 vCPUs, NUMA 0\n"
            "             LLC 0\n"
            "  core        0  1  2\n"
            "  kind        P  E  E\n"
            "  thread 0    0  2 3!\n"
            "  thread 1   1x\n"
            "  offline    4\n"
            "\n"
            "x offline   ! outside the root cpuset, or owned by others   P performance cores   E efficient "
            "cores\n");
}

TEST(Render, LabelsStandBelowTheirVcpus) {
  RenderOptions options;
  options.labels = {{0, "web"}, {1, "web"}, {2, "a-very-long-name"}, {3, "\x1b[31mbad"}};
  EXPECT_EQ(render_topology(synthetic("package:1 l3:1 core:4 pu:1"), options),
            "1 socket, 1 LLC domain, 1 NUMA node, 4 cores, 4 vCPUs\n"
            "\n"
            "socket 0   4 cores, 4 vCPUs, NUMA 0\n"
            "             LLC 0\n"
            "  core                0          1          2          3\n"
            "  vCPU                0          1          2          3\n"
            "                    web        web a-very-lo~   ?[31mbad\n");
}

TEST(Render, HomesStandBelowTheirDomain) {
  RenderOptions options;
  options.homes = {{"web", {0}}, {"a-very-long-name", {0, 1}}, {"\x1b[31mbad", {1}}, {"nowhere", {7}}};
  EXPECT_EQ(render_topology(synthetic("package:1 l3:2 core:2 pu:1"), options),
            "1 socket, 2 LLC domains, 1 NUMA node, 4 cores, 4 vCPUs\n"
            "\n"
            "socket 0   4 cores, 4 vCPUs, NUMA 0\n"
            "             LLC 0      | LLC 1\n"
            "  core        0  1      |  2  3\n"
            "  vCPU        0  1      |  2  3\n"
            "  homes      a-very-lo~ | ?[31mbad\n"
            "             web        | a-very-lo~\n");
}

TEST(Render, HomesInSocketsStandBelowEachOfTheirCaches) {
  RenderOptions options;
  options.homes = {{"web", {1}}};
  options.home_kind = model::DomainKind::socket;
  const std::string text = render_topology(synthetic("package:2 l3:2 core:2 pu:1"), options);
  EXPECT_EQ(text.find("homes", text.find("homes") + 1), std::string::npos) << text;
  EXPECT_NE(text.find("  homes      web        | web\n"), std::string::npos) << text;
}

TEST(Render, ManyHomesAreCountedByTheirFullNames) {
  RenderOptions options;
  for (int i = 10; i < 40; ++i) options.homes[fmt::format("{}{}", i < 12 ? "web-" : "web-server-", i)] = {0};
  const std::string text = render_topology(synthetic("package:1 l3:1 core:2 pu:1"), options);
  EXPECT_NE(text.find("  homes      web-10\n             web-11\n             web-serve~\n"
                      "             +27 more\n"),
            std::string::npos)
      << text;
}

TEST(Render, LabelsDoNotObeyTheirMaker) {
  RenderOptions options;
  options.labels = {{0, "\xE2\x80\xAEgpj"},
                    {1,
                     "a\xC2\x9B"
                     "2J"},
                    {2, "b\xff"},
                    {3, ""}};
  const std::string text = render_topology(synthetic("package:1 l3:1 core:4 pu:1"), options);
  EXPECT_NE(text.find("?gpj"), std::string::npos) << text;
  EXPECT_NE(text.find("a?2J"), std::string::npos) << text;
  EXPECT_NE(text.find("b?"), std::string::npos) << text;
}

TEST(Render, UseStandsBelowItsVcpu) {
  RenderOptions options;
  options.use = {{0, 0.004}, {1, 1.0}, {2, 0.43}, {3, 7.0}};
  options.labels = {{0, "web"}};
  const auto topology = synthetic("package:1 l3:1 core:3 pu:2");
  EXPECT_EQ(render_topology(topology, options),
            "1 socket, 1 LLC domain, 1 NUMA node, 3 cores, 6 vCPUs (2 threads a core)\n"
            "\n"
            "socket 0   3 cores, 6 vCPUs, NUMA 0\n"
            "             LLC 0\n"
            "  core         0   1   2\n"
            "  thread 0     0   2   4\n"
            "    use %      0  43\n"
            "             web\n"
            "  thread 1     1   3   5\n"
            "    use %    100 100\n");
  options.colour = true;
  const auto coloured = render_topology(topology, options);
  EXPECT_NE(coloured.find("\x1b[2m0\x1b[0m"), std::string::npos) << "idle";
  EXPECT_NE(coloured.find("\x1b[32m43\x1b[0m"), std::string::npos) << "used";
  EXPECT_NE(coloured.find("\x1b[31m100\x1b[0m"), std::string::npos) << "full";
}

TEST(Render, AHostWithoutSharedCachesSaysSo) {
  const auto text = render_topology(synthetic("package:2 core:2 pu:1"));
  EXPECT_NE(text.find("no shared last-level cache is known"), std::string::npos);
  EXPECT_EQ(text.find("LLC"), std::string::npos);
}

TEST(Render, ManyCoresWrapInEvenLines) {
  const auto text = render_topology(synthetic("package:2 l3:1 core:64 pu:2"));
  EXPECT_LE(longest_line(text), 80U);
  EXPECT_NE(text.find("LLC 0, continued"), std::string::npos);
  EXPECT_NE(text.find("255"), std::string::npos);
}

// The picture holds every vCPU once, fits the terminal, and is the same without its colours.
RC_GTEST_PROP(Render, HoldsEveryVcpuAndFits, ()) {
  const int packages = *rc::gen::inRange(1, 4);
  const int caches = *rc::gen::inRange(1, 6);
  const int cores = *rc::gen::inRange(1, 20);
  const int threads = *rc::gen::inRange(1, 5);
  const auto topology =
      synthetic(fmt::format("package:{} l3:{} core:{} pu:{}", packages, caches, cores, threads));
  RenderOptions options;
  options.width = *rc::gen::inRange(40, 200);
  const auto labelled = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 100));
  for (const int cpu : labelled) {
    if (topology.find(cpu) != nullptr)
      options.labels[cpu] = *rc::gen::element<std::string>("w", "db", "batch-jobs-x");
  }
  if (*rc::gen::arbitrary<bool>()) options.homes = {{"a-long-service", {0, 1, 2}}, {"web", {0}}};
  const auto plain = render_topology(topology, options);
  // The first lines are prose of their own length.
  RC_ASSERT(longest_line(plain.substr(plain.find("\nsocket"))) <= static_cast<std::size_t>(options.width));
  for (const int cpu : labelled) options.use[cpu] = cpu / 100.0;
  const auto used = render_topology(topology, options);
  RC_ASSERT(longest_line(used.substr(used.find("\nsocket"))) <= static_cast<std::size_t>(options.width));
  options.use.clear();
  options.colour = true;
  RC_ASSERT(without_colour(render_topology(topology, options)) == plain);

  std::istringstream lines(plain);
  std::string line;
  std::map<int, int> seen;
  while (std::getline(lines, line)) {
    if (line.rfind("  thread", 0) != 0 && line.rfind("  vCPU", 0) != 0) continue;
    std::replace(line.begin(), line.end(), '|', ' ');
    std::istringstream words(line.substr(12));
    int cpu = 0;
    while (words >> cpu) ++seen[cpu];
  }
  RC_ASSERT(seen.size() == topology.cpus().size());
  for (const auto& [cpu, times] : seen) RC_ASSERT(times == 1);
}

}  // namespace
}  // namespace berth::cli
