// SPDX-License-Identifier: Apache-2.0
#include "cli/render_top.h"

#include "cli/render_topology.h"
#include "topology/discover.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

TopFrame frame(const std::string& processors = "package:1 l3:1 core:2 pu:1") {
  TopFrame made;
  made.status = Document::parse(R"({"schema":"berth.status/1","host":"node-a","mode":"enforce",
    "tick":{"count":3600,"woken_by_pressure":12,"interval_s":1.0,"mean_cpu_ms":2.5},
    "workloads":{"latency-sensitive":1,"best-effort":2,"left_alone":1},"score_node":0.0825,
    "best_effort_cpus":"1","config":{"error":null}})");
  made.workloads = Document::parse(R"({"schema":"berth.workloads/1","time":1,"workloads":[
    {"id":"batch/idle","service":"idle","class":"best-effort","vcpus":null,"pinned_cpus":"","cpu_cores":null,
     "pressure":null,"cpu_pressure_some_avg10":null,"score":null,"runq_latency_us":null,"llc_mpki":null,"managed":true},
    {"id":"batch/sort","service":"sort","class":"best-effort","vcpus":null,"pinned_cpus":"","cpu_cores":1.75,"cpu_quota":2.5,
     "pressure":null,"cpu_pressure_some_avg10":2.5,"score":null,"runq_latency_us":900.4,"runq_latency_p50_us":20.0,
     "llc_mpki":null,"managed":false},
    {"id":"system.slice/web@1.service","service":"web","class":"latency-sensitive","vcpus":1,"pinned_cpus":"0",
     "cpu_cores":0.5,"pressure":0.5,"cpu_pressure_some_avg10":25.0,"score":0.17,"runq_latency_us":120.0,
     "runq_latency_p50_us":3.0,"llc_mpki":4.25,"progress":0.42,"managed":true}]})");
  made.topology = *topology::from_synthetic(processors);
  made.vcpu_use = {{0, 0.5}, {1, 0.98}};
  made.now = 0;
  return made;
}

std::string shown(const TopFrame& what, const TopView& view = {}, const Style& style = {}) {
  return render_top(what, view, style).text;
}

// The first words of the lines below the table's titles.
std::vector<std::string> order(const std::string& text) {
  std::istringstream in(text.substr(text.find("WORKLOAD")));
  std::vector<std::string> ids;
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line) && !line.empty() && line.find("q quit") == std::string::npos) {
    ids.push_back(line.substr(0, line.find(' ')));
  }
  return ids;
}

std::size_t lines_of(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

const std::string kIdle = "batch/idle";
const std::string kSort = "batch/sort";
const std::string kWeb = "system.slice/web@1.service";
using Ids = std::vector<std::string>;

}  // namespace

TEST(RenderTop, ShowsHomesWhereAnyServiceHasOne) {
  auto with_home = frame();
  with_home.workloads["workloads"][2]["isolation"] = "shared";
  with_home.workloads["workloads"][2]["home"] = "0";
  EXPECT_THAT(shown(with_home), HasSubstr("  HOME\n"));
  EXPECT_THAT(shown(with_home), HasSubstr("  homes      web\n"));
  EXPECT_THAT(shown(frame()), Not(HasSubstr("HOME")));
}

TEST(RenderTop, ShowsPlacementsBesideTicks) {
  TopFrame busy = frame();
  EXPECT_THAT(shown(busy), Not(HasSubstr("placement")));
  busy.status["placement"] = {{"count", 7}, {"last_wall_ms", 4.0}, {"mean_cpu_ms", 3.25}};
  EXPECT_THAT(shown(busy), HasSubstr("7 of 3.25 ms\n"));
}

TEST(RenderTop, ShowsTheNodeItsProcessorsAndItsWorkloads) {
  const std::string text = shown(frame());
  EXPECT_THAT(text, HasSubstr("berth on node-a, "));
  EXPECT_THAT(
      text,
      HasSubstr("1 latency-sensitive, 2 best-effort, 1 left alone   score 0.0825   best-effort vCPUs 1\n"));
  EXPECT_THAT(text, HasSubstr("ticks: 3600 of 1.0 s, 12 brought by pressure, 2.50 ms of CPU each\n"));
  EXPECT_THAT(text, HasSubstr("  vCPU         0   1\n    use %     50  98\n             web\n"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "WORKLOAD                    CLASS              SERVICE  VCPUS   CPU  QUOTA  PROGRESS  PRESSURE  "
          "WAIT %  RUNQ P99  RUNQ P50  LLC MPKI  SCORE\n"
          "batch/sort *                best-effort        sort         -  1.75   2.50         -         -  "
          "   2.5       900        20         -      -\n"
          "system.slice/web@1.service  latency-sensitive  web          1  0.50      -      42 %      0.50  "
          "  25.0       120         3      4.25  0.170\n"
          "batch/idle                  best-effort        idle         -     -      -         -         -  "
          "     -         -         -         -      -\n"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b"))) << "no colour unless asked for";
  EXPECT_THAT(text, Not(HasSubstr("q quit"))) << "nobody can type";
}

TEST(RenderTop, SortsByEachColumnWithTheUnknownBelow) {
  TopView view;
  std::set<std::string> names;
  const std::vector<Ids> expected{{kSort, kWeb, kIdle}, {kWeb, kSort, kIdle}, {kSort, kWeb, kIdle},
                                  {kWeb, kIdle, kSort}, {kWeb, kIdle, kSort}, {kSort, kIdle, kWeb},
                                  {kWeb, kIdle, kSort}, {kWeb, kIdle, kSort}, {kIdle, kSort, kWeb},
                                  {kIdle, kSort, kWeb}};
  for (const Ids& ids : expected) {
    EXPECT_EQ(order(shown(frame(), view)), ids) << static_cast<int>(view.sort);
    view.sort = next_sort(view.sort);
  }
  EXPECT_EQ(view.sort, TopSort::cpu) << "it begins again";
  view.reversed = true;
  EXPECT_EQ(order(shown(frame(), view)), (Ids{kWeb, kSort, kIdle})) << "the unknown stays below";
  view.sort = TopSort::workload;
  EXPECT_EQ(order(shown(frame(), view)), (Ids{kWeb, kSort, kIdle}));
}

TEST(RenderTop, FillsTheTerminalExactlyAndScrolls) {
  TopView view;
  for (std::size_t height = 1; height < 40; ++height) {
    view.height = height;
    EXPECT_EQ(lines_of(shown(frame(), view)), height) << height;
  }
  view.height = 15;
  EXPECT_EQ(render_top(frame(), view, {}).rows, order(shown(frame(), view)).size());
  EXPECT_EQ(order(shown(frame(), view)), (Ids{kSort}));
  EXPECT_THAT(shown(frame(), view), HasSubstr("workloads 1-1 of 3 by CPU   q quit"));
  view.first_row = 1;
  EXPECT_EQ(order(shown(frame(), view)), (Ids{kWeb}));
  view.first_row = 1000;
  EXPECT_EQ(order(shown(frame(), view)), (Ids{kIdle})) << "not beyond the last";
}

TEST(RenderTop, ANarrowTerminalLeavesOutWholeColumnsAndNotTheOneThatSorts) {
  TopView view;
  view.height = 24;
  for (const std::size_t width : {60U, 80U, 100U, 120U, 140U}) {
    std::istringstream in(shown(frame(), view, {false, width}));
    for (std::string line; std::getline(in, line);) EXPECT_LE(display_width(line), width) << line;
  }
  std::string text = shown(frame(), view, {false, 80});
  EXPECT_THAT(text, HasSubstr("  CPU  WAIT %  RUNQ P99  SCORE\n"));
  EXPECT_THAT(text, HasSubstr("  0.170\n")) << "a figure is whole or not there";
  view.sort = TopSort::progress;
  text = shown(frame(), view, {false, 80});
  EXPECT_THAT(text, HasSubstr("PROGRESS"));
  EXPECT_THAT(text, HasSubstr("  42 %"));
}

TEST(RenderTop, ANarrowTerminalFoldsTheHostAndShowsTheKeysThatFit) {
  TopView view;
  view.height = 30;
  const std::string text = shown(frame(), view, {false, 60});
  EXPECT_THAT(text, HasSubstr("1 left alone\n  score 0.0825   best-effort vCPUs 1\n"));
  EXPECT_THAT(text, HasSubstr("3 workloads by CPU   q quit  s sort  r reverse\n"));
}

TEST(RenderTop, ShowsTheNewestDecisionsWhereTheyHaveRoom) {
  auto host = frame();
  Document entries = Document::array();
  for (int i = 0; i < 20; ++i) {
    entries.push_back({{"time", 1000 - i},
                       {"kind", "pin"},
                       {"workload", fmt::format("batch/{}", i)},
                       {"attribute", "cpuset.cpus"},
                       {"old", ""},
                       {"new", "0-1"},
                       {"result", "applied"}});
  }
  host.decisions = Document{{"entries", entries}};
  TopView view;
  for (std::size_t height = 1; height < 60; ++height) {
    view.height = height;
    EXPECT_EQ(lines_of(shown(host, view)), height) << height;
  }
  view.height = 30;
  const std::string text = shown(host, view);
  EXPECT_EQ(order(text.substr(0, text.find("\nDECISIONS"))).size(), 3U) << "workloads come first";
  EXPECT_LT(text.find("DECISIONS\n"), text.find("batch/0"));
  EXPECT_LT(text.find("batch/0"), text.find("batch/1"));
  EXPECT_LT(text.find("batch/1"), text.find("q quit"));
  EXPECT_THAT(shown(host, view, {false, 40}), HasSubstr("  batch/0 now runs on vCPUs 0-1…\n"));
  view.height = 10;
  EXPECT_THAT(shown(host, view), Not(HasSubstr("DECISIONS")));
}

TEST(RenderTop, WithoutRoomForWorkloadsItSaysHowManyThereAre) {
  TopView view;
  view.height = 4;
  EXPECT_EQ(render_top(frame(), view, {}).rows, 0U);
  EXPECT_THAT(shown(frame(), view), HasSubstr("no room for 3 workloads by CPU"));
}

TEST(RenderTop, ProcessorsTakeTheRoomThatWorkloadsLeave) {
  TopView view;
  auto host = frame("package:2 l3:1 core:2 pu:2");
  view.height = lines_of(shown(host)) + 1;  // the keys
  EXPECT_GT(view.height, 24U);
  EXPECT_THAT(shown(host, view), HasSubstr("thread 1"));
  EXPECT_EQ(order(shown(host, view)).size(), 3U);
  --view.height;
  EXPECT_THAT(shown(host, view), Not(HasSubstr("             web"))) << "the owners go first";
  EXPECT_EQ(order(shown(host, view)).size(), 3U);
}

TEST(RenderTop, ALargeHostIsDrawnSmall) {
  TopView view;
  view.height = 40;
  auto large = frame("package:2 l3:8 core:8 pu:2");
  const std::string text = shown(large, view, {false, 100});
  EXPECT_EQ(lines_of(text), 40U);
  EXPECT_THAT(text, HasSubstr("tenths of the time"));
  EXPECT_THAT(text, HasSubstr("  socket 1, LLC 15    240 ????????????????\n"));
  EXPECT_EQ(order(text).size(), 3U);
  view.height = 0;
  EXPECT_THAT(shown(large, view), HasSubstr("thread 1")) << "drawn in full where there is room";
  view.height = 20;
  EXPECT_THAT(shown(large, view), HasSubstr("more lines of processors"));
}

TEST(RenderTop, ColoursWhatIsUnderPressure) {
  const std::string text = shown(frame(), {}, {true, 0});
  EXPECT_THAT(text, HasSubstr("\x1b[31m25.0\x1b[0m"));
  EXPECT_THAT(text, HasSubstr("\x1b[31m98\x1b[0m")) << "a busy vCPU";
  EXPECT_THAT(text, HasSubstr("\x1b[32menforce\x1b[0m"));
}

TEST(RenderTop, ManagesWithoutMostOfIt) {
  TopFrame empty;
  empty.status = Document::object();
  empty.workloads = Document::object();
  empty.topology = *topology::from_synthetic("package:1 core:1 pu:1");
  EXPECT_THAT(shown(empty), HasSubstr("No workloads"));
  auto odd = frame();
  odd.workloads = Document::parse(R"({"workloads":[5,{"id":7,"cpu_cores":"much","pinned_cpus":"x"},
    {"id":"\u001b[2Jbad","class":"best-effort","cpu_cores":1}]})");
  const std::string text = shown(odd);
  EXPECT_THAT(text, HasSubstr("?[2Jbad"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(RenderVcpuMap, EachVcpuIsOneCharacter) {
  std::vector<model::Cpu> cpus(6);
  for (int i = 0; i < 6; ++i) {
    auto& cpu = cpus[static_cast<std::size_t>(i)];
    cpu.cpu = cpu.core = i;
    cpu.socket = i / 3;
    cpu.llc = i / 3;
    cpu.online = i != 4;
    cpu.allowed = i != 5;
  }
  const auto topology = *model::Topology::make(cpus);
  EXPECT_EQ(render_vcpu_map(topology, {{0, 0.04}, {1, 0.55}, {2, 1.0}}, {}),
            "vCPUs: tenths of the time that each is busy\n"
            "  socket 0, LLC 0       0 059\n"
            "  socket 1, LLC 1       3 ?x!\n");
}

TEST(RenderVcpuMap, NamesTheOwnersByLetters) {
  const auto topology = *topology::from_synthetic("package:2 l3:1 core:4 pu:1");
  EXPECT_EQ(render_vcpu_map(topology, {{0, 0.5}}, {}, {{0, "web"}, {1, "web"}, {5, "db"}}),
            "vCPUs: tenths of the time that each is busy\n"
            "  socket 0, LLC 0       0 5???\n"
            "                          bb..\n"
            "  socket 1, LLC 1       4 ????\n"
            "                          .a..\n"
            "  owners: a db, b web\n");
  std::map<int, std::string> many;
  for (int cpu = 0; cpu < 8; ++cpu) many[cpu] = fmt::format("a-service-{}", cpu);
  EXPECT_THAT(render_vcpu_map(topology, {}, {false, 60}, many),
              HasSubstr("\n  owners: a a-service-0, b a-service-1, 6 more\n"));
}

TEST(RenderVcpuMap, WrapsOnANarrowTerminal) {
  const auto topology = *topology::from_synthetic("package:1 l3:1 core:32 pu:1");
  EXPECT_EQ(render_vcpu_map(topology, {}, {false, 42}),
            "vCPUs: tenths of the time that each is busy\n"
            "  socket 0, LLC 0       0 ????????????????\n"
            "                       16 ????????????????\n");
}

}  // namespace berth::cli
