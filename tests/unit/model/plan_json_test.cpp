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
  plan.actions.push_back({Set{"w", CpuSet{0, 2}}, "interference", "d-17", "because"});
  EXPECT_EQ(
      to_json(plan),
      R"({"schema":"berth.plan/1","host":"node-a","time":1790000000.5,"actions":[{"kind":"pin","workload":"w",)"
      R"("cpus":"0,2","policy":"interference","decision":"d-17","reason":"because"}],"findings":{}})");
}

TEST(PlanJson, ReadsEveryKindOfAction) {
  EXPECT_EQ(only_action(R"("kind":"pin","workload":"w","cpus":"0-1")").what,
            Action::What(Set{"w", CpuSet{0, 1}}));
  EXPECT_EQ(only_action(R"("kind":"unpin","workload":"w")").what,
            Action::What(GiveBack{"w", Attribute::cpus}));
  EXPECT_EQ(only_action(R"("kind":"set-cpu-quota","workload":"w","cpu_quota":null)").what,
            Action::What(Set{"w", CpuQuota{std::nullopt}}));
  EXPECT_EQ(only_action(R"("kind":"set-memory-nodes","workload":"w","nodes":"0,2")").what,
            Action::What(Set{"w", MemoryNodes{CpuSet::parse("0,2").value()}}));
  EXPECT_EQ(only_action(R"("kind":"set-memory-nodes","workload":"w","nodes":null)").what,
            Action::What(GiveBack{"w", Attribute::memory_nodes}));
  EXPECT_EQ(only_action(R"("kind":"set-cpu-priority","workload":"w","cpu_priority":"idle")").what,
            Action::What(Set{"w", LowPriority::idle}));
  EXPECT_EQ(only_action(R"("kind":"set-cpu-priority","workload":"w","cpu_priority":"weight")").what,
            Action::What(Set{"w", LowPriority::weight}));
  EXPECT_EQ(only_action(R"("kind":"set-cpu-priority","workload":"w","cpu_priority":null)").what,
            Action::What(GiveBack{"w", Attribute::cpu_idle}));
  EXPECT_EQ(only_action(R"("kind":"set-cpu-burst","workload":"w","cpu_burst_us":200000)").what,
            Action::What(Set{"w", CpuBurst{200'000}}));
  EXPECT_EQ(only_action(R"("kind":"set-cpu-burst","workload":"w","cpu_burst_us":null)").what,
            Action::What(GiveBack{"w", Attribute::cpu_burst}));
  EXPECT_EQ(only_action(R"("kind":"set-memory-high","workload":"w","memory_high_bytes":null)").what,
            Action::What(Set{"w", MemoryHigh{}}));
  EXPECT_EQ(only_action(R"("kind":"set-memory-high","workload":"w","memory_high_bytes":5)").what,
            Action::What(Set{"w", MemoryHigh{5}}));
  EXPECT_EQ(only_action(R"("kind":"evict","workload":"w","how":"kill","frees_bytes":5)").what,
            Action::What(Evict{"w", EvictionStep::kill, 5, 30}));
  EXPECT_EQ(
      only_action(R"("kind":"evict","workload":"w","how":"decommission","frees_bytes":5,"grace_s":1.5)").what,
      Action::What(Evict{"w", EvictionStep::decommission, 5, 1.5}));
  EXPECT_EQ(only_action(
                R"("kind":"advertise","resource":"memory","factor":1.2,"capacity":9.5,"state":"no-schedule")")
                .what,
            Action::What(Advertise{Resource::memory, 1.2, 9.5, SchedulingState::no_schedule}));
}

TEST(PlanJson, AnActionKnowsItsWorkloadAndKind) {
  const Action pin{Set{"w", CpuSet()}, "", "", ""};
  EXPECT_EQ(*pin.workload(), "w");
  EXPECT_STREQ(pin.kind(), "pin");
  const Action advertise{Advertise{}, "", "", ""};
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

TEST(PlanJson, WritesStragglerFindingsAsTheContractHasThem) {
  Plan plan;
  StragglerFindings& findings = plan.findings.straggler.emplace();
  StragglerTask& task = findings.tasks["w"];
  task.straggler = true;
  task.reason = "late";
  task.samples = {{1, 0.25}};
  task.deadline = 90;
  task.v1 = 0.01;
  task.v2 = 0.0;
  task.growth = 2;
  task.allocation_cores = 4;
  task.extension = {.cpu_cores = 2, .memory_bytes = 3};
  task.granted = {.cpu_cores = 1, .memory_bytes = 3};
  task.vcpus = 5;
  findings.redundant["b"].cpu = RedundantCpu{0.2, 1.3};
  findings.redundant["b"].memory = RedundantMemory{0.9, 0};
  findings.keeping["c"] = "wanted";
  findings.idle = {1, 0};
  findings.needed = {2, 0};
  findings.moves.push_back({LimitMove::Kind::reclaim, "b", {1, 0}, "idle"});
  findings.moves.push_back({LimitMove::Kind::recall, "c", {0, 4}, "wanted"});
  findings.relocate.push_back({"w", {1, 0}});
  const std::string text = to_json(plan);
  EXPECT_THAT(
      text,
      HasSubstr(
          R"("findings":{"straggler":{"tasks":{"w":{"straggler":true,"reason":"late","v1":0.01,"v2":0,"finish":null,)"
          R"("deadline":90,"growth":2,"samples":[{"time":1,"fraction":0.25}],"allocation":4,"allocation_memory_bytes":null,)"
          R"("extension":2,"extension_memory_bytes":3,"granted":{"cpu":1,"memory":3},"vcpus":5}},)"
          R"("redundant":{"b":{"cpu":{"utilisation":0.2,"reclaimable":1.3},"memory":{"utilisation":0.9,"reclaimable":0}}},)"
          R"("keeping":{"c":"wanted"},"idle":{"cpu":1,"memory":0},"needed":{"cpu":2,"memory":0},)"
          R"("moves":[{"kind":"reclaim","workload":"b","amount":{"cpu":1,"memory":0},"reason":"idle"},)"
          R"({"kind":"recall","workload":"c","amount":{"cpu":0,"memory":4},"reason":"wanted"}],)"
          R"("relocate":[{"workload":"w","lacks":{"cpu":1,"memory":0}}]}})"));
  const auto again = parse_plan(text);
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(*again, plan);
}

TEST(PlanJson, RefusesStragglerFindingsThatCannotBe) {
  const auto with = [](const std::string& tasks, const std::string& moves) {
    return R"({"schema":"berth.plan/1","actions":[],"findings":{"straggler":{"redundant":{},"idle":{},"needed":{},)"
           R"("relocate":[],"tasks":)" +
           tasks + R"(,"moves":)" + moves + "}}}";
  };
  const std::string where = "$.findings.straggler.";
  EXPECT_EQ(error_of(with("{}", "[]")), "accepted");
  EXPECT_EQ(error_of(with(R"({"w":{}})", "[]")), where + "tasks.w.straggler: missing");
  EXPECT_THAT(error_of(with(R"({"w":{"straggler":true,"granted":{"cpu":-1}}})", "[]")),
              StartsWith(where + "tasks.w.granted.cpu: -1 is not between"));
  EXPECT_THAT(error_of(with(R"({"w":{"straggler":true,"vcpus":0}})", "[]")),
              StartsWith(where + "tasks.w.vcpus: 0 is not between"));
  EXPECT_THAT(
      error_of(with("{}", R"([{"kind":"steal","workload":"b","amount":{}}])")),
      StartsWith(where + "moves[0].kind: expected one of reclaim, preempt, recall, restore, release"));
  EXPECT_EQ(error_of(with("{}", R"([{"kind":"reclaim","amount":{}}])")),
            where + "moves[0].workload: missing");
  EXPECT_EQ(error_of(R"({"schema":"berth.plan/1","actions":[],"findings":{"straggler":{}}})"),
            where + "tasks: missing");
}

TEST(PlanJson, WritesEvictionFindingsAsTheContractHasThem) {
  Plan plan;
  EvictionFindings& findings = plan.findings.eviction.emplace();
  findings.complexity = "pooled";
  findings.rank = "cost";
  findings.demand = {4, 10, 2, 12, 0.5, true};
  findings.forecast = MemoryForecast{"trend", 30, 14, -1.5, 0.25, 60, 40};
  findings.delta = 0.2;
  findings.growth_bytes = 2;
  findings.available_bytes = 1;
  findings.reserve_bytes = 3;
  findings.freeing_bytes = 2;
  findings.need_bytes = 4;
  findings.psi_full_avg10 = 1.5;
  findings.trigger = EvictionTrigger::need;
  findings.reason = "short";
  findings.apps["a"] = {20, 1000000, 20.008, 4, 0, 2.5, 60, 8.008, 4, 2.002};
  EvictionCandidate& candidate = findings.candidates["w"];
  candidate = {EvictionCandidate::Kind::executor, "a", 9, 1.5, 10.5, 4, 2.625, "why"};
  findings.order = {"w"};
  findings.spared = {{"s", "is shared"}};
  findings.reclaim = {{"b", 5, "cache"}};
  findings.victims = {{"w", 4, "first"}};
  const std::string text = to_json(plan);
  EXPECT_THAT(
      text,
      HasSubstr(
          R"("findings":{"eviction":{"complexity":"pooled","rank":"cost","demand":{"samples":4,"mean_bytes":10,"sd_bytes":2,)"
          R"("latest_bytes":12,"slope_bytes_per_s":0.5,"rising":true},)"
          R"("forecast":{"shape":"trend","horizon":30,"peak_bytes":14,"margin_bytes":-1.5,"slope_bytes_per_s":0.25,"readings":60,"errors":40},)"
          R"("delta":0.2,"growth_bytes":2,"available_bytes":1,)"
          R"("reserve_bytes":3,"freeing_bytes":2,"need_bytes":4,"psi_full_avg10":1.5,"trigger":"need","reason":"short",)"
          R"("apps":{"a":{"computation":20,"transmission":1e+06,"recalculation":20.008,"remaining":60,"cost":8.008,)"
          R"("stages":4,"stages_to_come":0,"stages_done":2.5,"frees_bytes":4,"cost_per_byte":2.002}},)"
          R"("candidates":{"w":{"kind":"executor","app":"a","lost":9,"running":1.5,"cost":10.5,"frees_bytes":4,"rank_key":2.625,"reason":"why"}},)"
          R"("order":["w"],"spared":{"s":"is shared"},"reclaim":[{"workload":"b","bytes":5,"reason":"cache"}],)"
          R"("victims":[{"workload":"w","bytes":4,"reason":"first"}]}})"));
  const auto again = parse_plan(text);
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(*again, plan);
}

TEST(PlanJson, ReadsTheLeastThatEvictionFindingsHold) {
  const std::string document =
      R"({"schema":"berth.plan/1","actions":[],"findings":{"eviction":{"delta":0.1,"growth_bytes":0,"need_bytes":0,"apps":)"
      R"({"app-1":{"computation":20.0,"transmission":1000000,"recalculation":20.008,"remaining":60.0,"cost":14.008}},"order":["w"]}}})";
  const auto plan = parse_plan(document);
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(plan->findings.eviction->apps.at("app-1").cost_s, 14.008);
  EXPECT_EQ(plan->findings.eviction->trigger, EvictionTrigger::none);
}

TEST(PlanJson, RefusesEvictionFindingsThatCannotBe) {
  const auto with = [](const std::string& members) {
    return R"({"schema":"berth.plan/1","actions":[],"findings":{"eviction":{"delta":0,"growth_bytes":0,"need_bytes":0,)" +
           members + "}}}";
  };
  const std::string where = "$.findings.eviction.";
  EXPECT_EQ(error_of(with(R"("apps":{},"order":[])")), "accepted");
  EXPECT_EQ(error_of(with(R"("apps":{})")), where + "order: missing");
  EXPECT_EQ(error_of(with(R"("apps":{"a":{}},"order":[])")), where + "apps.a.computation: missing");
  EXPECT_THAT(error_of(with(R"("apps":{},"order":[],"trigger":"whim")")),
              StartsWith(where + "trigger: expected one of none, need, pressure"));
  EXPECT_THAT(error_of(with(R"("apps":{},"order":[],"candidates":{"w":{"kind":"x"}})")),
              StartsWith(where + "candidates.w.kind: expected one of executor, driver, other"));
  EXPECT_THAT(error_of(with(R"("apps":{},"order":[],"victims":[{"workload":"w","bytes":-1}])")),
              StartsWith(where + "victims[0].bytes: "));
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
