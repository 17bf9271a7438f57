// SPDX-License-Identifier: Apache-2.0
#include "config/without_effect.h"

#include "config/keys.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::config {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

std::vector<std::string> idle(const std::string& toml) {
  const auto settings = parse(toml, "b.toml");
  EXPECT_TRUE(settings) << (settings ? "" : settings.error().message());
  return settings ? without_effect(*settings) : std::vector<std::string>();
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

TEST(WithoutEffect, AKeyThatNeedsAnotherIsNamedUntilThatIsSet) {
  const Pairs pairs{
      {"interference.min_gain = 0.2", "interference.max_runq_latency = \"1ms\""},
      {"interference.max_moves = 3", "interference.max_runq_latency = \"1ms\""},
      {"interference.reserved = \"shared\"", "interference.reserved_cpus = \"0\""},
      {"eviction.z = 3", "eviction.forecast = \"published\""},
      {"eviction.window = 30", "eviction.delta = 0.5"},
      {"eviction.window = 30", "eviction.forecast = \"published\""},
  };
  for (const auto& [key, need] : pairs) {
    EXPECT_THAT(idle(key + "\n"), ElementsAre(StartsWith(key + " has no effect without ")));
    EXPECT_THAT(idle(key + "\n" + need + "\n"), IsEmpty()) << key << need;
  }
  EXPECT_THAT(idle("interference.budget = \"50ms\"\n"), SizeIs(1));
  EXPECT_THAT(idle("interference.budget = \"50ms\"\ninterference.search = \"optimal\"\n"
                   "interference.isolation = \"vcpus\"\n"),
              IsEmpty());
}

// Also marks and `berthctl set` make owners.
TEST(WithoutEffect, AKeyAboutOwnedVcpusIsNamedWhereTheFileMakesNoOwner) {
  const std::string rule = "[[workload]]\nmatch = \"a\"\nisolation = \"vcpus\"\n";
  const std::vector<std::string> keys{"interference.search = \"optimal\"", "interference.window_step = 4",
                                      "interference.be_avoid_siblings = true",
                                      "interference.interrupts = \"move\"",
                                      "interference.others = \"confine\""};
  for (const std::string& key : keys) {
    EXPECT_THAT(idle(key + "\n"), ElementsAre(StartsWith(key + ": by this file no service owns vCPUs")));
    EXPECT_THAT(idle(key + "\ninterference.isolation = \"cores\"\n"), IsEmpty()) << key;
    EXPECT_THAT(idle(key + "\n" + rule), IsEmpty()) << key;
  }
  EXPECT_THAT(idle("interference.others = \"leave\"\n"), IsEmpty()) << "for an owner by berthctl set";
}

// berthctl profile fit uses the settings of learning that berthd does not do.
TEST(WithoutEffect, SettingsOfLearningMatterWithoutIt) {
  EXPECT_THAT(idle("interference.learn = false\ninterference.half_life = \"1h\"\n"
                   "interference.min_samples = 40\n"),
              IsEmpty());
}

TEST(WithoutEffect, AKeyWhosePartnerIsSwitchedOffIsNamed) {
  const Pairs pairs{
      {"sampling.ebpf = false", "interference.max_runq_latency = \"1ms\""},
      {"sampling.ebpf = false", "sampling.blame = true"},
      {"sampling.ebpf = false", "sampling.blame_linger = \"1min\""},
      {"spark.watch = false", "spark.interval = \"5s\""},
      {"spark.watch = false", "spark.leaf = \"never\""},
      {"eviction.forecast = \"published\"", "eviction.horizon = \"1min\""},
      {"eviction.forecast = \"published\"", "eviction.confidence = 0.8"},
  };
  for (const auto& [off, key] : pairs) {
    EXPECT_THAT(idle(off + "\n" + key + "\n"), ElementsAre(StartsWith(key + " has no effect without ")));
    EXPECT_THAT(idle(key + "\n"), IsEmpty()) << key;
  }
}

TEST(WithoutEffect, DefaultsAskForNothing) {
  EXPECT_THAT(idle(""), IsEmpty());
  std::string whole;
  for (const Key& key : known_keys()) whole += key.name + " = " + key.default_text + "\n";
  EXPECT_THAT(idle(whole), IsEmpty());
}

TEST(WithoutEffect, MembersThatARuleSClassMakesIdleAreNamedWithItsPlace) {
  const auto of = [](const std::string& members) { return idle("[[workload]]\nmatch = \"a\"\n" + members); };
  EXPECT_THAT(
      of("class = \"ignored\"\nvcpus = 2\ndeadline = \"1h\"\n"),
      ElementsAre(StartsWith("b.toml:1: vcpus, deadline have no effect on a cgroup that is ignored")));
  EXPECT_THAT(
      of("class = \"ignored\"\npriority = 10\nevictable = false\n"),
      ElementsAre(StartsWith("b.toml:1: priority, evictable have no effect on a cgroup that is ignored")));
  EXPECT_THAT(of("class = \"ignored\"\npriority = -10\nevictable = true\n"), IsEmpty())
      << "they lower work whose name a user chose";
  EXPECT_THAT(of("class = \"best-effort\"\nisolation = \"vcpus\"\nforce = true\nvcpus = 2\n"),
              ElementsAre(StartsWith("b.toml:1: isolation, force have no effect on best-effort work")));
  EXPECT_THAT(of("class = \"latency-sensitive\"\npriority = 10\n"),
              ElementsAre(StartsWith("b.toml:1: priority has no effect on latency-sensitive work")));
  EXPECT_THAT(of("class = \"latency-sensitive\"\nforce = true\nvcpus = 2\n"),
              ElementsAre(StartsWith("b.toml:1: force has no effect on a service that owns no vCPUs")));
  EXPECT_THAT(of("class = \"latency-sensitive\"\nforce = true\nvcpus = 2\nisolation = \"vcpus\"\n"),
              IsEmpty());
  EXPECT_THAT(of("priority = 10\nforce = true\n"), IsEmpty()) << "the class may be any";
}

TEST(WithoutEffect, RemarksHaveFormerNamesToo) {
  const auto settings = parse("spark.z = 3\n", "b.toml");
  ASSERT_TRUE(settings);
  EXPECT_THAT(remarks(*settings),
              ElementsAre(StartsWith("b.toml:1:"), StartsWith("eviction.z = 3 has no effect without ")));
}

}  // namespace
}  // namespace berth::config
