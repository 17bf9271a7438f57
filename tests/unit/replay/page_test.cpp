// SPDX-License-Identifier: Apache-2.0
// The report is one page that loads nothing, runs nothing, and takes names as text.
#include "replay/page.h"

#include "replay/chart.h"
#include "replay/side.h"
#include "tests/unit/policies/hosts.h"
#include "tests/unit/policies/straggler/stragglers.h"

#include <algorithm>
#include <cstddef>
#include <regex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::replay {
namespace {

namespace make = policies::testing;
using ::testing::HasSubstr;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
constexpr const char* kEvil = "\"><script>alert(1)</script>&'\xe2\x80\xae\x1b[31m";

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

class PageTest : public ::testing::Test {
 protected:
  // Two sides of a busy host with names of an attacker's choice.
  PageTest() {
    model::Snapshot snapshot = make::snapshot_of(make::host({.sockets = 2}));
    snapshot.time = 1'790'000'000;
    snapshot.memory = {.total_bytes = 16 * kGiB, .available_bytes = kGiB / 8, .psi_full_avg10 = 7};
    snapshot.workloads = {make::with_memory(make::batch(kEvil, 4, 0.5), std::nullopt, 6 * kGiB),
                          make::late_task("job", 2), make::latency_sensitive("web/a", 2)};
    snapshot.workloads[0].evictable = true;
    snapshot.workloads[2].service = kEvil;
    for (auto& report : snapshot.workloads[1].progress) report.time += 1'790'000'000 - 1000;
    *snapshot.workloads[1].deadline += 1'790'000'000 - 1000;
    topology = snapshot.topology;
    for (int tick = 0; tick < 30; ++tick) {
      differences.add(first.step(snapshot), second.step(snapshot));
      snapshot.time += 1;
    }
    first.finish();
    second.finish();
    page.host = kEvil;
    page.begun = 1'790'000'000;
    page.ended = snapshot.time - 1;
    page.ticks = 30;
    page.cut = std::string("the file ends ") + kEvil;
    page.topology = &topology;
    page.sides = {{kEvil, &first.figures(), &first.history()},
                  {"other.toml", &second.figures(), &second.history()}};
    page.differences = &differences;
    page.measured = {{kEvil, {kEvil}, {{kEvil}, {"ms", true}}, {{kEvil, "1"}}, {0.5}}};
  }

  static policies::PolicySettings evicting() {
    policies::PolicySettings settings;
    settings.eviction.evict = settings.oversell.evict = true;
    return settings;
  }

  Side first{{}};
  Side second{evicting()};
  Differences differences{100};
  model::Topology topology;
  Page page;
};

TEST_F(PageTest, ShowsBothSides) {
  const std::string html = page_html(page);
  for (const char* part :
       {"Memory pressure", "Interference score", "Pins over time on the topology", "CPU quotas", "Evictions",
        "Stragglers", "Decisions that differ", "socket 0", "socket 1", "evicted work, as priced",
        "The trace ends early", "The load is as it was recorded"}) {
    EXPECT_THAT(html, HasSubstr(part));
  }
  EXPECT_GE(count(html, "<svg"), 9U);
  EXPECT_EQ(count(html, "<svg"), count(html, "</svg>"));
  EXPECT_EQ(count(html, "<rect"), count(html, "</rect>"));
  EXPECT_EQ(html.find("nan"), std::string::npos);
  EXPECT_EQ(html.find("inf,"), std::string::npos);
  EXPECT_EQ(html.find("left out"), std::string::npos) << "all is there";
}

TEST_F(PageTest, TakesNamesAsTextAndLoadsNothing) {
  const std::string html = page_html(page);
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_EQ(html.find('\x1b'), std::string::npos);
  EXPECT_EQ(html.find("\xe2\x80\xae"), std::string::npos);
  EXPECT_THAT(html, HasSubstr("&quot;&gt;&lt;script&gt;"));
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
  // Nothing comes from elsewhere: no address, no file.
  EXPECT_FALSE(std::regex_search(html, std::regex(R"((src|href|url|@import)\s*[=(])")))
      << html.substr(0, 500);
  EXPECT_EQ(html.find("http://"), std::string::npos);
  EXPECT_EQ(html.find("https://"), std::string::npos);
}

TEST_F(PageTest, AMeasuredTableHasALimitedNumberOfRows) {
  page.measured[0].rows.assign(5000, {"culprit", "1"});
  page.measured[0].bars.assign(5000, 0.1);
  const std::string html = page_html(page);
  EXPECT_EQ(count(html, "<td>culprit"), 200U);
  EXPECT_THAT(html, HasSubstr("4800 more."));
}

TEST_F(PageTest, OfOneSideHasNoComparison) {
  page.sides.pop_back();
  page.differences = nullptr;
  const std::string html = page_html(page);
  EXPECT_EQ(html.find("Decisions that differ"), std::string::npos);
  EXPECT_EQ(html.find("B - A"), std::string::npos);
  EXPECT_THAT(html, HasSubstr("Interference score"));
}

TEST(PinsMap, HasALimitedNumberOfBoxes) {
  // A pin to the first threads of all cores has a box for each core.
  model::Snapshot seen = make::snapshot_of(make::host({.cores_per_llc = 64}));
  seen.workloads = {make::latency_sensitive("web/a", 64)};
  History history;
  model::Plan plan;
  for (int tick = 0; tick < 400; ++tick) {
    seen.workloads[0].cpus = make::cpus(tick % 2 == 0 ? "0-63" : "64-127");
    plan.time = 1000 + tick;
    history.add(plan, seen);
  }
  history.finish();
  Figures figures;
  Page page;
  page.begun = 1000;
  page.ended = 1399;
  page.ticks = 400;
  page.topology = &seen.topology;
  page.sides.push_back({"the default settings", &figures, &history});
  const std::string html = page_html(page);
  EXPECT_EQ(count(html, "<rect"), 313U * 64U);  // the first number of pins with 20,000 boxes
  EXPECT_THAT(html, HasSubstr(R"(<p class="w">87 later pins are left out of this plot.</p>)"));
}

// The section on quotas of a workload that has one of them at each tick.
std::string quota_section(const std::vector<std::optional<double>>& quotas) {
  model::Snapshot seen = make::snapshot_of(make::host({}));
  seen.workloads = {make::batch("batch/x", std::nullopt, 1)};
  History history;
  model::Plan plan;
  plan.time = 1000;
  for (const auto& quota : quotas) {
    seen.workloads[0].cpu_quota_cores = quota;
    seen.workloads[0].held_cpu = quota ? std::optional(model::HeldLimit()) : std::nullopt;
    history.add(plan, seen);
    plan.time += 1;
  }
  history.finish();
  Figures figures;
  Page page;
  page.begun = 1000;
  page.ended = 1006;
  page.ticks = quotas.size();
  page.topology = &seen.topology;
  page.sides.push_back({"the default settings", &figures, &history});
  const std::string html = page_html(page);
  const std::size_t begin = html.find("CPU quotas that berth would hold");
  return html.substr(std::min(begin, html.size()), html.find("<h2>Evictions") - begin);
}

TEST(QuotaPlot, HasNoLineWhereThereIsNoLimit) {
  const std::string section = quota_section({3.0, 2.0, 2.0, std::nullopt, std::nullopt, 1.0, 1.0});
  EXPECT_EQ(count(section, "<polyline"), 2U) << section;
}

TEST(QuotaPlot, ReachesToTheHighestQuota) {
  EXPECT_THAT(quota_section({1.0, 4.5, 2.0}), HasSubstr("5 cores"));
}

TEST(Chart, KeepsPointsWithinItsFrame) {
  Chart chart(0, 10, 0, 1, 100);
  chart.line({{-5, 0.5}, {20, 7}}, "a");
  const std::string svg = chart.svg("x");
  EXPECT_THAT(svg, HasSubstr("150.0,56.0 910.0,6.0"));
  EXPECT_THAT(svg, HasSubstr("viewBox=\"0 0 920 124\"")) << "with its margins";
}

TEST(FigureText, HasUnitsAndSigns) {
  const auto figure = [](Figure::Unit unit, std::optional<double> value) {
    return Figure{"name", "title", unit, value, true};
  };
  using enum Figure::Unit;
  EXPECT_EQ(figure_text(figure(bytes, 3.0 * kGiB)), "3.0 GiB");
  EXPECT_EQ(figure_text(figure(seconds, 90)), "90.0 s");
  EXPECT_EQ(figure_text(figure(seconds, 7200)), "2.0 h");
  EXPECT_EQ(figure_text(figure(score, std::nullopt)), "-");
  EXPECT_EQ(difference_text(figure(number, 3), figure(number, 1)), "-2");
  EXPECT_EQ(difference_text(figure(cores, 1), figure(cores, 2.5)), "+1.50 cores");
  EXPECT_EQ(difference_text(figure(cores, 1), figure(cores, 1)), "");
  EXPECT_EQ(difference_text(figure(score, std::nullopt), figure(score, 1)), "");
}

}  // namespace
}  // namespace berth::replay
