// SPDX-License-Identifier: Apache-2.0
#include "cgroup/rules.h"

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
    EXPECT_TRUE(judgement.ignored) << path;
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
