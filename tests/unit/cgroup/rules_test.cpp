// SPDX-License-Identifier: Apache-2.0
#include "cgroup/rules.h"

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace berth::cgroup {
namespace {

using model::WorkloadClass;
using model::WorkloadRule;

const std::string kPauseId(64, 'a');
const std::string kGuaranteed = "kubepods/pod1/" + kPauseId;
const std::string kUserUnit = "user.slice/user-1000.slice/user@1000.service/app.slice/web.service";

WorkloadRule rule(const std::string& match, std::optional<WorkloadClass> workload_class,
                  const std::string& origin = "f:1") {
  WorkloadRule made;
  made.match = match;
  made.origin = origin;
  made.workload_class = workload_class;
  return made;
}

Ownership foreign(std::size_t depth, uid_t uid = 1000, uid_t parent = 1000) {
  return {uid, parent, false, depth};
}

Judgement judge_with(const std::string& path, const std::vector<WorkloadRule>& rules,
                     const Ownership& owner = {}, const Marks& marks = {},
                     std::optional<double> quota = std::nullopt) {
  return judge(path, owner, marks, rules, [&] { return quota; });
}

TEST(Rules, AllThatMatchAreNamedInTheirOrder) {
  const std::vector<WorkloadRule> rules{
      rule("a/*", WorkloadClass::best_effort), rule("b", WorkloadClass::best_effort),
      rule("a/b", WorkloadClass::latency_sensitive), rule("**", WorkloadClass::latency_sensitive)};
  const Judgement judgement = judge_with("a/b", rules);
  EXPECT_EQ(judgement.matches, (std::vector<std::size_t>{0, 2, 3}));
  EXPECT_EQ(judgement.overruled, 2U) << "the first of those that differ";
  EXPECT_TRUE(judge_with("c", {rules[0]}).matches.empty());
}

TEST(Marks, TheHostsOwnGroupsMayBeMarkedAnything) {
  const Marks sensitive = judge_marks({"latency-sensitive", "0"}, {});
  EXPECT_EQ(sensitive.workload_class, WorkloadClass::latency_sensitive);
  EXPECT_EQ(sensitive.evictable, false);
  EXPECT_TRUE(sensitive.refused.empty());
  EXPECT_EQ(judge_marks({"best-effort", "yes"}, {}).workload_class, WorkloadClass::best_effort);
  EXPECT_EQ(judge_marks({"best-effort", "yes"}, {}).evictable, true);
}

TEST(Marks, AUserMayNotClaimVcpusForHimself) {
  const Marks marks = judge_marks({"latency-sensitive", std::nullopt}, foreign(3));
  EXPECT_EQ(marks.workload_class, std::nullopt);
  ASSERT_EQ(marks.refused.size(), 1U);
  EXPECT_NE(marks.refused[0].find("uid 1000"), std::string::npos) << marks.refused[0];
}

TEST(Marks, AUserMayNotExemptHimselfFromEviction) {
  const Marks marks = judge_marks({std::nullopt, "0"}, foreign(3));
  EXPECT_EQ(marks.evictable, std::nullopt);
  EXPECT_EQ(marks.refused.size(), 1U);
}

TEST(Marks, AUserMayLowerWhatIsInsideHisOwnGroup) {
  const Marks marks = judge_marks({"best-effort", "1"}, foreign(3));
  EXPECT_EQ(marks.workload_class, WorkloadClass::best_effort);
  EXPECT_EQ(marks.evictable, true);
  EXPECT_TRUE(marks.refused.empty());
}

TEST(Marks, ADelegatedGroupDoesNotJudgeItself) {
  const Marks marks = judge_marks({"best-effort", "1"}, foreign(3, 1000, 0));
  EXPECT_EQ(marks.workload_class, std::nullopt);
  EXPECT_EQ(marks.evictable, std::nullopt);
  EXPECT_EQ(marks.refused.size(), 2U);
}

TEST(Marks, NonsenseIsRefusedAndNotRepeatedRaw) {
  const Marks marks = judge_marks({"laten\x1b[31m", "perhaps"}, {});
  EXPECT_EQ(marks.workload_class, std::nullopt);
  ASSERT_EQ(marks.refused.size(), 2U);
  EXPECT_NE(marks.refused[0].find("laten?[31m"), std::string::npos);
}

TEST(Judge, WithoutAnythingThatSpeaksForItAGroupIsLeftAlone) {
  EXPECT_EQ(judge_with("system.slice/cron.service", {}).verdict, std::nullopt);
  EXPECT_EQ(
      judge_with("system.slice/cron.service", {rule("system.slice/web*.service", WorkloadClass::best_effort)})
          .verdict,
      std::nullopt);
  // A rule without a class gives no class.
  EXPECT_EQ(judge_with("system.slice/cron.service", {rule("**", std::nullopt)}).verdict, std::nullopt);
}

TEST(Judge, TheFirstRuleThatMatchesHolds) {
  const auto judgement = judge_with("a/b", {rule("a/*", WorkloadClass::best_effort, "f:3"),
                                            rule("a/b", WorkloadClass::latency_sensitive, "f:9")});
  ASSERT_TRUE(judgement.verdict);
  EXPECT_EQ(judgement.verdict->workload_class, WorkloadClass::best_effort);
  EXPECT_EQ(judgement.verdict->matched_by, "f:3");
  EXPECT_EQ(judgement.verdict->rule, 0U);
  EXPECT_EQ(judgement.overruled, 1U);
}

TEST(Judge, ALaterRuleThatSaysTheSameIsNoConflict) {
  EXPECT_EQ(
      judge_with("a/b", {rule("a/*", WorkloadClass::best_effort), rule("a/b", WorkloadClass::best_effort)})
          .overruled,
      std::nullopt);
  WorkloadRule more = rule("a/b", WorkloadClass::best_effort);
  more.priority = 3;
  EXPECT_EQ(judge_with("a/b", {rule("a/*", WorkloadClass::best_effort), more}).overruled, 1U);
  WorkloadRule forced = rule("a/b", WorkloadClass::best_effort);
  forced.force = true;
  EXPECT_EQ(judge_with("a/b", {rule("a/*", WorkloadClass::best_effort), forced}).overruled, 1U);
}

TEST(Judge, AMarkComesBeforeTheRules) {
  Marks marks;
  marks.workload_class = WorkloadClass::best_effort;
  WorkloadRule sensitive = rule("a/b", WorkloadClass::latency_sensitive);
  sensitive.evictable = true;
  sensitive.vcpus = 2;
  const auto judgement = judge_with("a/b", {sensitive}, {}, marks);
  ASSERT_TRUE(judgement.verdict);
  EXPECT_EQ(judgement.verdict->workload_class, WorkloadClass::best_effort);
  EXPECT_EQ(judgement.verdict->matched_by, "user.berth.class");
  EXPECT_TRUE(judgement.verdict->evictable) << "the rule's other fields hold";
  EXPECT_EQ(judgement.verdict->vcpus, 2);
}

TEST(Judge, VcpusComeFromTheQuotaWhereNoRuleGivesThem) {
  const std::vector<WorkloadRule> rules{rule("a/b", WorkloadClass::latency_sensitive)};
  const auto with = judge_with("a/b", rules, {}, {}, 2.5);
  EXPECT_EQ(with.verdict->vcpus, 3);
  EXPECT_FALSE(with.awaits_quota);
  const auto without = judge_with("a/b", rules);
  EXPECT_EQ(without.verdict->vcpus, std::nullopt);
  EXPECT_TRUE(without.awaits_quota);
}

TEST(Judge, ABestEffortWorkloadNeedsNoQuota) {
  bool asked = false;
  const auto judgement =
      judge("a/b", {}, {}, {rule("a/b", WorkloadClass::best_effort)}, [&]() -> std::optional<double> {
        asked = true;
        return 2.0;
      });
  EXPECT_EQ(judgement.verdict->vcpus, std::nullopt);
  EXPECT_FALSE(asked);
}

TEST(Judge, PodsAreJudgedByTheirQosClass) {
  EXPECT_EQ(judge_with("kubepods/besteffort/pod1/" + kPauseId, {}).verdict->workload_class,
            WorkloadClass::best_effort);
  EXPECT_EQ(judge_with("kubepods/burstable/pod1/" + kPauseId, {}, {}, {}, 2.0).verdict, std::nullopt);
  const auto guaranteed = judge_with(kGuaranteed, {}, {}, {}, 2.0);
  EXPECT_EQ(guaranteed.verdict->workload_class, WorkloadClass::latency_sensitive);
  EXPECT_EQ(guaranteed.verdict->vcpus, 2);
  EXPECT_EQ(guaranteed.verdict->matched_by, "kubepods QoS");
}

TEST(Judge, AnIgnoredGroupIsNoWorkloadWhateverItsMarkOrPodSays) {
  WorkloadRule ignored = rule("**", std::nullopt);
  ignored.ignored = true;
  Marks marks;
  marks.workload_class = WorkloadClass::best_effort;
  for (const std::string& path : {std::string("a/b"), "kubepods/besteffort/pod1/" + kPauseId}) {
    const Judgement judgement = judge_with(path, {ignored}, {}, marks);
    EXPECT_EQ(judgement.verdict, std::nullopt) << path;
    EXPECT_TRUE(judgement.ignored_by) << path;
  }
  // The first rule that matches decides, as always.
  const auto judgement = judge_with("a/b", {rule("a/b", WorkloadClass::best_effort), ignored});
  ASSERT_TRUE(judgement.verdict);
  EXPECT_EQ(judgement.overruled, 1U);
}

TEST(Judge, RulesOutsideKubernetesAloneTouchNothingOfKubernetes) {
  const std::string pod = "kubepods/besteffort/pod1/" + kPauseId;
  EXPECT_FALSE(judge_with(pod, {rule("system.slice/*.service", WorkloadClass::best_effort)}).verdict);
  EXPECT_FALSE(
      judge_with(kGuaranteed, {rule("**/web.service", WorkloadClass::latency_sensitive)}, {}, {}, 2.0)
          .verdict);
  EXPECT_TRUE(judge_with(pod, {}).verdict) << "without any rule, berth shows what it would do";
  EXPECT_TRUE(judge_with(pod, {rule("system.slice/*.service", WorkloadClass::best_effort),
                               rule("kubepods.slice/**", std::nullopt)})
                  .verdict);
  EXPECT_TRUE(judge_with(pod, {rule("**", std::nullopt)}).verdict);
}

TEST(Judge, AGuaranteedPodNeedsWholeCpus) {
  EXPECT_EQ(judge_with(kGuaranteed, {}, {}, {}, 1.5).verdict, std::nullopt);
  const auto waiting = judge_with(kGuaranteed, {});
  EXPECT_EQ(waiting.verdict, std::nullopt);
  EXPECT_TRUE(waiting.awaits_quota);
}

TEST(Judge, AUserMayNotPlayAGuaranteedPod) {
  EXPECT_EQ(judge_with(kGuaranteed, {}, foreign(1), {}, 2.0).verdict, std::nullopt);
}

TEST(Judge, ARuleComesBeforeTheQosClass) {
  EXPECT_EQ(judge_with(kGuaranteed, {rule("kubepods/**", WorkloadClass::best_effort)}, {}, {}, 2.0)
                .verdict->workload_class,
            WorkloadClass::best_effort);
}

TEST(Judge, AWildcardDoesNotMakeAUsersOwnGroupLatencySensitive) {
  const auto judgement =
      judge_with(kUserUnit, {rule("**/web.service", WorkloadClass::latency_sensitive)}, foreign(3));
  EXPECT_EQ(judgement.verdict, std::nullopt);
  EXPECT_EQ(judgement.untrusted, 0U);
  EXPECT_TRUE(
      judge_with(kUserUnit, {rule("**/web.service", WorkloadClass::best_effort)}, foreign(3)).verdict);
}

TEST(Judge, OfAWildcardAUsersGroupGetsOnlyWhatLowersIt) {
  WorkloadRule rich = rule("**/web.service", WorkloadClass::best_effort);
  rich.service = "db";
  rich.vcpus = 8;
  rich.memory_bytes = std::uint64_t{64} << 30;
  rich.priority = 1000;
  rich.evictable = true;
  const auto judgement = judge_with(kUserUnit, {rich}, foreign(3));
  ASSERT_TRUE(judgement.verdict);
  EXPECT_EQ(judgement.verdict->workload_class, WorkloadClass::best_effort);
  EXPECT_EQ(judgement.verdict->rule, std::nullopt) << "the rule supplies no field";
  EXPECT_EQ(judgement.verdict->vcpus, std::nullopt);
  EXPECT_TRUE(judgement.verdict->evictable);
  EXPECT_EQ(judgement.verdict->priority_at_most, std::nullopt);
  EXPECT_EQ(judgement.untrusted, 0U);
  rich.priority = -5;
  EXPECT_EQ(judge_with(kUserUnit, {rich}, foreign(3)).verdict->priority_at_most, -5);
  // Root's own group of that name has all of it.
  EXPECT_EQ(judge_with("system.slice/web.service", {rich}).verdict->rule, 0U);
}

TEST(Judge, ANameThatAUserChoseHidesNothingFromLaterRules) {
  WorkloadRule gentle = rule("**/web.service", std::nullopt);
  gentle.priority = 1000;
  WorkloadRule ignored = rule("**/web.*", std::nullopt);
  ignored.ignored = true;
  WorkloadRule strict = rule("**", WorkloadClass::best_effort);
  strict.evictable = true;
  strict.priority = -1;
  const auto judgement = judge_with(kUserUnit, {gentle, ignored, strict}, foreign(3));
  ASSERT_TRUE(judgement.verdict);
  EXPECT_FALSE(judgement.ignored_by);
  EXPECT_TRUE(judgement.verdict->evictable);
  EXPECT_EQ(judgement.verdict->priority_at_most, -1);
}

// Whatever rules there are: a user's name gets a class, fields or an exemption of none but the first rule
// that spells out its tree, and of those before only what lowers it.
TEST(JudgeProperty, NoNameThatAUserChoosesFavoursItsWork) {
  const std::string head = "user.slice/user-1000.slice/user@1000.service";
  std::mt19937 random(1);
  const auto below = [&](unsigned n) { return std::uniform_int_distribution<unsigned>(0, n - 1)(random); };
  for (int round = 0; round < 2000; ++round) {
    std::vector<WorkloadRule> rules;
    for (unsigned i = below(5); i-- > 0;) {
      const std::array<std::string, 4> globs{"**/web.service", "*/*/*/app.slice/*", head + "/**", "other/*"};
      WorkloadRule made = rule(globs[below(4)], std::nullopt);
      if (below(2) == 0)
        made.workload_class = below(2) == 0 ? WorkloadClass::best_effort : WorkloadClass::latency_sensitive;
      made.ignored = !made.workload_class && below(4) == 0;
      if (below(2) == 0) made.priority = static_cast<int>(below(9)) - 4;
      if (below(2) == 0) made.evictable = below(2) == 0;
      if (below(2) == 0) made.vcpus = 1;
      rules.push_back(made);
    }
    std::optional<WorkloadClass> wanted_class;
    std::optional<std::size_t> wanted_rule;
    int lowest = 0;
    bool evictable = false;
    for (std::size_t i = 0; i < rules.size() && !wanted_rule; ++i) {
      const WorkloadRule& each = rules[i];
      if (each.match == "other/*") continue;
      if (each.match.starts_with(head)) {
        wanted_rule = i;
        if (!wanted_class) wanted_class = each.workload_class;
        evictable = evictable || (!each.ignored && each.evictable.value_or(false));
      } else {
        if (each.workload_class == WorkloadClass::best_effort) wanted_class = WorkloadClass::best_effort;
        evictable = evictable || each.evictable.value_or(false);
        lowest = std::min(lowest, each.priority.value_or(0));
      }
    }
    const Judgement judgement = judge_with(kUserUnit, rules, foreign(3));
    if (wanted_rule && rules[*wanted_rule].ignored) {
      EXPECT_EQ(judgement.ignored_by.has_value(), !wanted_class);
      if (!wanted_class) continue;
      wanted_rule.reset();
    }
    ASSERT_EQ(judgement.verdict.has_value(), wanted_class.has_value());
    if (!judgement.verdict) continue;
    EXPECT_EQ(judgement.verdict->workload_class, wanted_class);
    EXPECT_EQ(judgement.verdict->rule, wanted_rule);
    EXPECT_EQ(judgement.verdict->evictable, evictable);
    EXPECT_EQ(judgement.verdict->priority_at_most.value_or(0), lowest);
    EXPECT_TRUE(wanted_rule || !judgement.verdict->vcpus);
  }
}

TEST(Judge, ARuleThatIgnoresAllOfAUsersTreeIgnoresIt) {
  for (const std::string glob : {"**", "user.slice/**", "user.slice/user-*.slice/**"}) {
    WorkloadRule ignored = rule(glob, std::nullopt);
    ignored.ignored = true;
    EXPECT_TRUE(judge_with(kUserUnit, {ignored}, foreign(3)).ignored_by) << glob;
  }
}

TEST(Judge, ARuleThatIgnoresAllOfAUsersTreeCancelsNoRuleBeforeIt) {
  for (const std::string glob : {"**", "user.slice/**", "user.slice/user-1000.slice/user@1000.service/**"}) {
    WorkloadRule ignored = rule(glob, std::nullopt);
    ignored.ignored = true;
    const auto judgement =
        judge_with(kUserUnit, {rule("**/web.service", WorkloadClass::best_effort), ignored}, foreign(3));
    EXPECT_FALSE(judgement.ignored_by) << glob;
    ASSERT_TRUE(judgement.verdict) << glob;
    EXPECT_EQ(judgement.verdict->workload_class, WorkloadClass::best_effort);
    EXPECT_EQ(judgement.verdict->rule, std::nullopt);
  }
}

TEST(Judge, AUserMayNotPlayAContainersMonitor) {
  const std::string monitor = "user.slice/user-1000.slice/user@1000.service/libpod-conmon-1.scope";
  const std::vector<WorkloadRule> rules{rule("**", WorkloadClass::best_effort)};
  EXPECT_TRUE(judge_with(monitor, rules, foreign(3)).verdict);
  EXPECT_FALSE(judge_with(monitor, rules).verdict);
}

// Root made and named it, and writes its control files; its user may only mark it.
TEST(Judge, TheOutermostGroupOfAUserHasRootsName) {
  Ownership owner = foreign(2, 1000, 0);
  owner.depth = 2;
  WorkloadRule rich = rule("system.slice/job*.service", WorkloadClass::best_effort);
  rich.memory_bytes = 1;
  EXPECT_EQ(judge_with("system.slice/job1.service", {rich}, owner).verdict->rule, 0U);
  EXPECT_FALSE(model::may_favour_itself(owner.ground(), model::Word::mark));
  EXPECT_TRUE(model::may_favour_itself(owner.ground(), model::Word::write));
}

TEST(Judge, AQuotaThatAUserMayWriteAsksForNoVcpus) {
  const auto judgement =
      judge_with(kUserUnit, {rule(kUserUnit, WorkloadClass::latency_sensitive)}, foreign(3), {}, 64);
  ASSERT_TRUE(judgement.verdict);
  EXPECT_EQ(judgement.verdict->vcpus, std::nullopt);
}

TEST(Judge, AGlobThatSpellsOutTheUsersTreeDoes) {
  const std::string head = "user.slice/user-1000.slice/user@1000.service";
  EXPECT_TRUE(
      judge_with(kUserUnit, {rule(head + "/**/web.service", WorkloadClass::latency_sensitive)}, foreign(3))
          .verdict);
  EXPECT_TRUE(judge_with(kUserUnit, {rule(kUserUnit, WorkloadClass::latency_sensitive)}, foreign(3)).verdict);
  EXPECT_FALSE(judge_with(kUserUnit,
                          {rule("user.slice/user-*.slice/**/web.service", WorkloadClass::latency_sensitive)},
                          foreign(3))
                   .verdict);
  EXPECT_FALSE(judge_with(kUserUnit,
                          {rule("user.slice/user-1000.slice/**", WorkloadClass::latency_sensitive)},
                          foreign(3))
                   .verdict);
}

}  // namespace
}  // namespace berth::cgroup
