// SPDX-License-Identifier: Apache-2.0
// Workloads that users made are read in turn, within a share of the time.
#include "cgroup/sampler.h"
#include "tests/unit/cgroup/fake_tree.h"

#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace berth::cgroup {
namespace {

constexpr std::int64_t kForever = std::numeric_limits<std::int64_t>::max();

class SamplerTurnsTest : public ::testing::Test {
 protected:
  void make(const std::string& id, std::optional<std::uint32_t> user) {
    tree.make(id);
    tree.write(id, "cpu.stat", "usage_usec 1000\n");
    tree.write(id, "memory.current", "4096\n");
    tree.write(id, "cpu.pressure", "some avg10=1.50 avg60=0.00 avg300=0.00 total=1\n");
    tree.write(id, "cpuset.cpus", "0-1\n");
    sampler.add(id, Cgroup::open(tree.root(), id).value(), user);
  }
  void make_many(const std::string& prefix, std::size_t count, std::uint32_t user) {
    for (std::size_t i = 0; i < count; ++i) make(prefix + std::to_string(1000 + i), user);
  }
  // Each look at the clock takes 1 ns: between two of them, a user has kLeastOfUser workloads read.
  void set_share(std::int64_t share_ns) {
    sampler.set_share(share_ns, [this] { return ++clock_ns; });
  }
  std::set<std::string> read_now() {
    std::set<std::string> fresh;
    for (const auto& [id, reading] : sampler.sample(++now)) {
      if (reading.fresh) fresh.insert(id);
    }
    return fresh;
  }
  static std::size_t of(const std::string& prefix, const std::set<std::string>& ids) {
    std::size_t count = 0;
    for (const std::string& id : ids) count += id.starts_with(prefix) ? 1U : 0U;
    return count;
  }

  test::FakeTree tree;
  Sampler sampler;
  double now = 0;
  std::int64_t clock_ns = 0;
};

TEST_F(SamplerTurnsTest, ThousandsOfOneUserKeepNobodyElseFromBeingReadInEachSample) {
  make("db.service", std::nullopt);
  make_many("user/", 3000, 1000);
  make("other/1", 1001);
  set_share(0);
  for (int sample = 0; sample < 5; ++sample) {
    const auto fresh = read_now();
    EXPECT_TRUE(fresh.contains("db.service"));
    EXPECT_TRUE(fresh.contains("other/1"));
    EXPECT_EQ(of("user/", fresh), Sampler::kLeastOfUser);
  }
  EXPECT_EQ(sampler.readings().size(), 3002U) << "what was not read is there all the same";
}

TEST_F(SamplerTurnsTest, EachOfAUserComesInItsTurnThoughSomeComeAndGo) {
  make_many("user/", 5 * Sampler::kLeastOfUser, 1000);
  set_share(0);
  std::set<std::string> seen;
  for (int sample = 0; sample < 5; ++sample) {
    const auto fresh = read_now();
    for (const std::string& id : fresh) EXPECT_TRUE(seen.insert(id).second) << id << " came twice";
    make("user/0" + std::to_string(sample), 1000);  // before the present place
    sampler.remove(*fresh.rbegin());                // the last one that was read
  }
  EXPECT_EQ(seen.size(), 5 * Sampler::kLeastOfUser);
}

TEST_F(SamplerTurnsTest, AUserThatNeedsLessLeavesItsPartToOthers) {
  make_many("few/", 2, 1001);
  make_many("many/", 20 * Sampler::kLeastOfUser, 1000);
  set_share(10);
  const auto fresh = read_now();
  EXPECT_EQ(of("few/", fresh), 2U);
  EXPECT_GT(of("many/", fresh), 5 * Sampler::kLeastOfUser) << "more than half of the share";
  EXPECT_LT(of("many/", fresh), 20 * Sampler::kLeastOfUser);
}

TEST_F(SamplerTurnsTest, WithinTheShareAllAreRead) {
  make_many("user/", 100, 1000);
  set_share(kForever);
  for (int sample = 0; sample < 2; ++sample) EXPECT_EQ(read_now().size(), 100U);
}

TEST_F(SamplerTurnsTest, WhatWasNotReadIsUnknownAndNotZero) {
  make_many("user/", 2 * Sampler::kLeastOfUser, 1000);
  set_share(0);
  const auto first = read_now();
  const std::string read = *first.begin();
  EXPECT_EQ(sampler.readings().at(read).cpu_pressure_some_avg10, 1.5);
  EXPECT_TRUE(sampler.readings().at(read).settings_known);
  for (const auto& [id, reading] : sampler.readings()) {
    if (first.contains(id)) continue;
    EXPECT_FALSE(reading.settings_known);
    EXPECT_FALSE(reading.sample);
    EXPECT_EQ(reading.cpu_time_s, std::nullopt);
    EXPECT_EQ(reading.cpu_pressure_some_avg10, std::nullopt);
  }
  sampler.refresh(read);
  read_now();
  const auto& before = sampler.readings().at(read);
  EXPECT_FALSE(before.sample);
  EXPECT_EQ(before.cpu_pressure_some_avg10, std::nullopt);
  EXPECT_EQ(before.cpus, (model::CpuSet{0, 1}));
  EXPECT_EQ(before.cpu_time_s, 1e-3);
  EXPECT_FALSE(before.settings_known) << "until it is its turn";
  read_now();
  EXPECT_TRUE(sampler.readings().at(read).settings_known);
}

}  // namespace
}  // namespace berth::cgroup
