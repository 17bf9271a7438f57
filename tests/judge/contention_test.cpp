// SPDX-License-Identifier: Apache-2.0
// The simulated host against the steady state of ground_truth/machine.h, which has the same equations for
// means.
#include "tests/judge/contention.h"

#include "model/cpu_set.h"
#include "model/topology.h"
#include "tests/judge/berth.h"
#include "tests/judge/loads.h"
#include "tests/unit/policies/interference/ground_truth/machine.h"

#include <cstddef>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace berth::judge {
namespace {

Software streaming() {
  Software software;
  software.reuse = 0.02;
  software.working_set_mib = 200;
  software.overlap = 4;
  return software;
}

Software light() {
  Software software;
  software.reuse = 0.001;
  software.working_set_mib = 1;
  return software;
}

// Each group computes without end on one vCPU of its own; the speed of each, alone being 1.
std::vector<double> simulated(const std::vector<CpuPlace>& places, const std::vector<Software>& software) {
  Contention contention({}, places, software);
  std::vector<Group> groups;
  std::vector<BatchLoad> loads;
  for (int group = 0; group < static_cast<int>(software.size()); ++group) {
    Group it;
    it.mask.set(static_cast<std::size_t>(group));
    groups.push_back(it);
    loads.push_back({.group = group, .threads = 1});
  }
  Simulation run(places, {}, groups, {}, loads, 1,
                 [&](int group, int cpu, int sibling) { return contention.speed(group, cpu, sibling); });
  run.each(kMillisecond, [&] {
    contention.look(run.kernel(), kMillisecond);
    run.kernel().change_speeds();
  });
  run.run(kSecond);
  std::vector<double> before;
  for (std::size_t i = 0; i < software.size(); ++i)
    before.push_back(run.kernel().used(static_cast<int>(i)).work_s);
  run.run(kSecond);
  std::vector<double> speeds;
  for (std::size_t i = 0; i < software.size(); ++i)
    speeds.push_back(run.kernel().used(static_cast<int>(i)).work_s - before[i]);
  return speeds;
}

std::vector<double> steady(const std::vector<CpuPlace>& places, const std::vector<Software>& software) {
  const model::Topology topology = topology_of(places);
  const auto cpi_of = [&](const std::vector<policies::testing::Running>& running) {
    std::vector<double> found;
    for (const auto& figures : policies::testing::steady_state({}, topology, running))
      found.push_back(figures.cpi);
    return found;
  };
  std::vector<policies::testing::Running> all;
  std::vector<double> speeds;
  for (std::size_t i = 0; i < software.size(); ++i) {
    all.push_back(
        {.software = software[i], .where = model::CpuSet({static_cast<int>(i)}), .load = {}, .threads = 1});
    speeds.push_back(cpi_of({all.back()}).front());
  }
  const auto together = cpi_of(all);
  for (std::size_t i = 0; i < software.size(); ++i) speeds[i] /= together[i];
  return speeds;
}

void expect_alike(const std::vector<CpuPlace>& places, const std::vector<Software>& software,
                  double tolerance) {
  const auto here = simulated(places, software);
  const auto there = steady(places, software);
  for (std::size_t i = 0; i < software.size(); ++i) EXPECT_NEAR(here[i], there[i], tolerance * there[i]) << i;
}

TEST(Contention, AloneNothingIsSlow) {
  for (const double speed : simulated(shape(1, 1, 2, 2), {streaming()})) EXPECT_NEAR(speed, 1, 0.05);
}

TEST(Contention, OfCachesAndMemoryIsThatOfTheSteadyState) {
  expect_alike(shape(1, 1, 4, 1), {streaming(), Software(), light(), streaming()}, 0.05);
  expect_alike(shape(1, 1, 4, 1), {Software(), Software(), Software(), Software()}, 0.05);
}

TEST(Contention, OfCoresIsThatOfTheSteadyState) {
  expect_alike(shape(1, 1, 2, 2), {light(), light(), light()}, 0.05);
  expect_alike(shape(1, 1, 2, 2), {Software(), streaming(), light(), Software()}, 0.12);
}

TEST(Contention, DomainsHaveCachesOfTheirOwn) {
  const auto apart = simulated(shape(1, 2, 1, 1), {Software(), streaming()});
  const auto together = simulated(shape(1, 1, 2, 1), {Software(), streaming()});
  EXPECT_GT(apart[0], 1.03 * together[0]);
}

}  // namespace
}  // namespace berth::judge
