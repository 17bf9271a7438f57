// SPDX-License-Identifier: Apache-2.0
#include "daemon/ledger/overrides.h"

#include "tests/unit/daemon/fake_node.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace berth::daemon {
namespace {

using Settings = std::map<std::string, std::string>;

Overrides fresh(const test::FakeNode& node) {
  std::optional<std::string> warning;
  Overrides overrides(node.runtime_dir(), warning);
  EXPECT_FALSE(warning) << *warning;
  return overrides;
}

model::Workload applied(const Overrides& overrides, std::uint64_t cgroup_id) {
  model::Workload workload;
  workload.id = "web/a";
  workload.created = 1000;
  overrides.apply(workload, cgroup_id);
  return workload;
}

TEST(Overrides, SetEveryKeyOfAWorkload) {
  const test::FakeNode node;
  auto overrides = fresh(node);
  ASSERT_TRUE(overrides.set("web/a", 7,
                            {{"class", "latency-sensitive"},
                             {"service", "shop"},
                             {"vcpus", "3"},
                             {"isolation", "cores"},
                             {"deadline", "10min"},
                             {"priority", "-5"},
                             {"evictable", "true"}}));
  const auto workload = applied(overrides, 7);
  EXPECT_EQ(workload.workload_class, model::WorkloadClass::latency_sensitive);
  EXPECT_EQ(workload.service, "shop");
  EXPECT_EQ(workload.vcpus, 3);
  EXPECT_EQ(workload.isolation, model::Isolation::cores);
  EXPECT_EQ(workload.deadline, 1600);
  EXPECT_EQ(workload.priority, -5);
  EXPECT_TRUE(workload.evictable);
}

TEST(Overrides, WhatIsSetOfTheWholeIsOfItsLeavesToo) {
  const test::FakeNode node;
  auto overrides = fresh(node);
  ASSERT_TRUE(overrides.set("web/a", 7, {{"class", "latency-sensitive"}, {"vcpus", "3"}, {"priority", "2"}}));
  model::Workload leaf;
  leaf.id = "web/a.berth-executor-7-70";
  overrides.apply_to_leaf(leaf, "web/a", 8);
  EXPECT_EQ(leaf.workload_class, model::WorkloadClass::best_effort) << "another run";
  overrides.apply_to_leaf(leaf, "web/a", 7);
  EXPECT_EQ(leaf.workload_class, model::WorkloadClass::latency_sensitive);
  EXPECT_EQ(leaf.priority, 2);
  EXPECT_EQ(leaf.vcpus, std::nullopt) << "they are asked for by the whole";
}

TEST(Overrides, AFileThatCannotBeSeenIsNotAMissingOne) {
  const test::FakeNode node;
  const auto loop = node.runtime_dir() / "loop";
  std::filesystem::create_symlink(loop, loop);
  std::optional<std::string> warning;
  const Overrides unseen(loop, warning);
  ASSERT_TRUE(warning);
  EXPECT_NE(warning->find("overrides.json: "), std::string::npos) << *warning;
}

TEST(Overrides, HoldForTheRunOnly) {
  const test::FakeNode node;
  auto overrides = fresh(node);
  ASSERT_TRUE(overrides.set("web/a", 7, {{"vcpus", "3"}}));
  EXPECT_EQ(applied(overrides, 8).vcpus, std::nullopt);
  overrides.forget("web/a");
  EXPECT_EQ(applied(overrides, 7).vcpus, std::nullopt);
}

TEST(Overrides, AddUpWithinARun) {
  const test::FakeNode node;
  auto overrides = fresh(node);
  ASSERT_TRUE(overrides.set("web/a", 7, {{"vcpus", "3"}, {"priority", "1"}}));
  ASSERT_TRUE(overrides.set("web/a", 7, {{"vcpus", "4"}}));
  EXPECT_EQ(applied(overrides, 7).vcpus, 4);
  EXPECT_EQ(applied(overrides, 7).priority, 1);
  ASSERT_TRUE(overrides.set("web/a", 8, {{"vcpus", "2"}}));
  EXPECT_EQ(applied(overrides, 8).priority, 0);
}

TEST(Overrides, AnEmptyValueTakesItBack) {
  const test::FakeNode node;
  auto overrides = fresh(node);
  ASSERT_TRUE(overrides.set("web/a", 7, {{"vcpus", "3"}, {"priority", "1"}}));
  EXPECT_EQ(overrides.keys("web/a", 7), (std::vector<std::string>{"priority", "vcpus"}));
  EXPECT_TRUE(overrides.keys("web/a", 8).empty()) << "another run";
  ASSERT_TRUE(overrides.set("web/a", 7, {{"vcpus", ""}}));
  EXPECT_EQ(applied(overrides, 7).vcpus, std::nullopt);
  EXPECT_EQ(applied(overrides, 7).priority, 1);
  ASSERT_TRUE(overrides.set("web/a", 7, {{"priority", ""}, {"service", ""}}));
  EXPECT_TRUE(overrides.keys("web/a", 7).empty());
  EXPECT_TRUE(fresh(node).keys("web/a", 7).empty());
  EXPECT_FALSE(overrides.set("web/a", 7, {{"colour", ""}})) << "there is no such thing to take back";
}

TEST(Overrides, AValueIsQuotedAsFarAsItHelps) {
  const test::FakeNode node;
  const auto set = fresh(node).set("web/a", 7, {{"vcpus", std::string(100'000, '9')}});
  ASSERT_FALSE(set);
  EXPECT_LT(set.error().message().size(), 200U);
  EXPECT_NE(set.error().message().find("must be an integer"), std::string::npos);
}

TEST(Overrides, OutliveTheDaemon) {
  const test::FakeNode node;
  ASSERT_TRUE(fresh(node).set("web/a", 7, {{"vcpus", "3"}}));
  auto overrides = fresh(node);
  EXPECT_EQ(applied(overrides, 7).vcpus, 3);
  overrides.keep_if([](const std::string&, std::uint64_t cgroup_id) { return cgroup_id != 7; });
  EXPECT_EQ(applied(fresh(node), 7).vcpus, std::nullopt);
}

TEST(Overrides, RefuseBadValuesWhole) {
  const test::FakeNode node;
  auto overrides = fresh(node);
  const std::vector<Settings> wrong{{{"vcpus", "0"}},          {{"vcpus", "2.5"}},
                                    {{"vcpus", "9999999999"}}, {{"class", "vip"}},
                                    {{"evictable", "yes"}},    {{"priority", "high"}},
                                    {{"deadline", "-1s"}},     {{"service", std::string(257, 'a')}},
                                    {{"service", "a\nb"}},     {{"colour", "red"}},
                                    {{"deadline", "0"}},       {{"deadline", "4000d"}},
                                    {{"priority", "1000001"}}};
  for (const auto& settings : wrong) {
    auto with_a_good_one = settings;
    with_a_good_one.emplace("priority", "9");
    const auto set = overrides.set("web/a", 7, with_a_good_one);
    ASSERT_FALSE(set) << settings.begin()->first << "=" << settings.begin()->second;
    EXPECT_EQ(set.error().kind(), model::ErrorKind::invalid_input);
    EXPECT_NE(set.error().message().find(settings.begin()->first), std::string::npos)
        << set.error().message();
  }
  EXPECT_EQ(applied(overrides, 7).priority, 0);
}

TEST(Overrides, AFileThatCannotBeReadIsSaid) {
  const test::FakeNode node;
  std::ofstream(node.runtime_dir() / "overrides.json") << R"({"web/a": {"cgroup": "seven"}})";
  std::optional<std::string> warning;
  Overrides overrides(node.runtime_dir(), warning);
  ASSERT_TRUE(warning);
  EXPECT_NE(warning->find("overrides.json"), std::string::npos);
  EXPECT_TRUE(overrides.set("web/a", 7, {{"vcpus", "3"}}));
}

TEST(Overrides, HoldInMemoryWhereTheyCannotBeKept) {
  const test::FakeNode node;
  std::optional<std::string> warning;
  Overrides overrides(node.runtime_dir() / "missing", warning);
  EXPECT_FALSE(warning);
  const auto set = overrides.set("web/a", 7, {{"vcpus", "3"}});
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().kind(), model::ErrorKind::io);
  EXPECT_EQ(applied(overrides, 7).vcpus, 3);
}

}  // namespace
}  // namespace berth::daemon
