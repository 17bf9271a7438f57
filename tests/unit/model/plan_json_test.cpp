// SPDX-License-Identifier: Apache-2.0
#include "model/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::model {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string with_action(const std::string& members) {
  return R"({"schema":"berth.plan/1","actions":[{"policy":"p","decision":"d-1","reason":"r",)" + members +
         "}]}";
}

std::string error_of(const std::string& text) {
  const auto plan = parse_plan(text);
  return plan ? "accepted" : plan.error().message();
}

Action only_action(const std::string& members) {
  const auto plan = parse_plan(with_action(members));
  if (!plan) ADD_FAILURE() << plan.error().message();
  return plan && !plan->actions.empty() ? plan->actions.front() : Action{};
}

TEST(PlanJson, WritesTheContractsMembersInItsOrder) {
  Plan plan;
  plan.host = "node-a";
  plan.time = 1790000000.5;
  plan.actions.push_back({PinAction{"w", {0, 2}}, "interference", "d-17", "because"});
  EXPECT_EQ(
      to_json(plan),
      R"({"schema":"berth.plan/1","host":"node-a","time":1790000000.5,"actions":[{"kind":"pin","workload":"w",)"
      R"("cpus":"0,2","policy":"interference","decision":"d-17","reason":"because"}],"findings":{}})");
}

TEST(PlanJson, ReadsEveryKindOfAction) {
  EXPECT_EQ(only_action(R"("kind":"pin","workload":"w","cpus":"0-1")").what,
            decltype(Action::what)(PinAction{"w", {0, 1}}));
  EXPECT_EQ(only_action(R"("kind":"unpin","workload":"w")").what, decltype(Action::what)(UnpinAction{"w"}));
  EXPECT_EQ(only_action(R"("kind":"set-cpu-quota","workload":"w","cpu_quota":null)").what,
            decltype(Action::what)(SetCpuQuotaAction{"w", std::nullopt}));
  EXPECT_EQ(only_action(R"("kind":"set-memory-high","workload":"w","memory_high_bytes":5)").what,
            decltype(Action::what)(SetMemoryHighAction{"w", 5}));
  EXPECT_EQ(only_action(R"("kind":"evict","workload":"w","how":"kill","frees_bytes":5)").what,
            decltype(Action::what)(EvictAction{"w", EvictionStep::kill, 5}));
  EXPECT_EQ(
      only_action(
          R"("kind":"advertise","resource":"memory","factor":1.2,"capacity":9.5,"state":"no-schedule")")
          .what,
      decltype(Action::what)(AdvertiseAction{Resource::memory, 1.2, 9.5, SchedulingState::no_schedule}));
}

TEST(PlanJson, AnActionKnowsItsWorkloadAndKind) {
  const Action pin{PinAction{"w", {}}, "", "", ""};
  EXPECT_EQ(*pin.workload(), "w");
  EXPECT_STREQ(pin.kind(), "pin");
  const Action advertise{AdvertiseAction{}, "", "", ""};
  EXPECT_EQ(advertise.workload(), nullptr);
  EXPECT_STREQ(advertise.kind(), "advertise");
}

TEST(PlanJson, UnknownMembersAreIgnored) {
  EXPECT_EQ(error_of(R"({"schema":"berth.plan/1","actions":[],"new":1,"findings":{"tomorrow":{}}})"),
            "accepted");
  EXPECT_EQ(only_action(R"("kind":"unpin","workload":"w","new":1)").kind(), std::string("unpin"));
}

TEST(PlanJson, RefusesAnUnknownAction) {
  EXPECT_EQ(error_of(with_action(R"("kind":"explode","workload":"w")")),
            "$.actions[0].kind: there is no action \"explode\"");
}

TEST(PlanJson, RefusesAnIncompleteAction) {
  EXPECT_EQ(error_of(with_action(R"("kind":"pin","cpus":"0")")), "$.actions[0].workload: missing");
  EXPECT_EQ(error_of(with_action(R"("kind":"pin","workload":"w")")), "$.actions[0].cpus: missing");
  EXPECT_EQ(error_of(R"({"schema":"berth.plan/1","actions":[{"kind":"unpin","workload":"w"}]})"),
            "$.actions[0].policy: missing");
}

TEST(PlanJson, RefusesImpossibleValues) {
  EXPECT_THAT(error_of(with_action(R"("kind":"pin","workload":"w","cpus":"x")")),
              StartsWith("$.actions[0].cpus: "));
  EXPECT_THAT(error_of(with_action(R"("kind":"set-cpu-quota","workload":"w","cpu_quota":-1)")),
              StartsWith("$.actions[0].cpu_quota: -1 is not between"));
  EXPECT_THAT(error_of(with_action(R"("kind":"evict","workload":"w","how":"nuke","frees_bytes":0)")),
              StartsWith("$.actions[0].how: expected one of decommission, terminate, kill"));
}

TEST(PlanJson, RefusesAnotherSchemaAndNoActions) {
  EXPECT_THAT(error_of(R"({"schema":"berth.snapshot/1"})"),
              StartsWith("$.schema: expected \"berth.plan/1\""));
  EXPECT_EQ(error_of(R"({"schema":"berth.plan/1"})"), "$.actions: missing");
}

TEST(PlanJson, RefusesADomainThatIsNoNumber) {
  const auto with_domains = [](const std::string& domains) {
    return R"({"schema":"berth.plan/1","actions":[],"findings":{"interference":{"weighting":"overlap","search":"window",)"
           R"("score_node":0,"instances":{},"unplaceable":[],"domains":)" +
           domains + "}}}";
  };
  EXPECT_EQ(error_of(with_domains(R"({"0":0.1,"12":0})")), "accepted");
  for (const char* name : {"x", "-1", "01", "", "99999999999"})
    EXPECT_THAT(error_of(with_domains(std::string("{\"") + name + "\":0}")),
                HasSubstr("is not the number of a domain"));
}

TEST(PlanJson, ReadsMalformedTextAsASnapshotIsRead) {
  EXPECT_EQ(error_of(""), "$: the document is empty");
  EXPECT_THAT(error_of(std::string(100'000, '[')), HasSubstr("nested deeper than 64 levels"));
}

TEST(WorkloadClassName, ReadsBackAndRefusesOthers) {
  EXPECT_EQ(*parse_workload_class("latency-sensitive"), WorkloadClass::latency_sensitive);
  EXPECT_EQ(*parse_workload_class(to_string(WorkloadClass::best_effort)), WorkloadClass::best_effort);
  const auto other = parse_workload_class("ls");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().kind(), ErrorKind::invalid_input);
}

}  // namespace
}  // namespace berth::model
