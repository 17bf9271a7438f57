// SPDX-License-Identifier: Apache-2.0
// Explanations in words, of documents as the daemon writes them.
#include "cli/render.h"
#include "model/explanation.h"

#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string text_of(const model::Explanation& explanation) {
  std::ostringstream out;
  render_explanation(out, parse_document(model::to_json(explanation), "explanation").value(), {});
  return out.str();
}

class RenderExplanation : public testing::Test {
 protected:
  RenderExplanation() {
    explanation.time = 1000;
    workload.workload.id = "system.slice/report@7.service";
    workload.workload.service = "report";
    workload.workload.workload_class = model::WorkloadClass::latency_sensitive;
    workload.workload.vcpus = 2;
  }
  model::Explanation explanation;
  model::WorkloadExplanation& workload = explanation.workload.emplace();
};

model::ApplicationExplanation some_application() {
  model::ApplicationExplanation application{
      .id = "app-1", .figures = {}, .delta = 0.25, .workloads = {"e2", "d"}};
  application.figures.computation_s = 40;
  application.figures.transmission_bytes = 1 << 20;
  application.figures.recalculation_s = 42;
  application.figures.remaining_s = 36;
  application.figures.cost_s = 33;
  application.figures.stages = 2;
  application.figures.stages_done = 1.25;
  application.figures.frees_bytes = std::uint64_t{3} << 30;
  application.figures.cost_per_byte = 11.0 / (1U << 30);
  return application;
}

TEST_F(RenderExplanation, ASharedInstanceHasItsHome) {
  workload.isolation = model::Isolation::shared;
  workload.shared = {
      .home = {0}, .cpus = {}, .cores = 1.5, .score = 0.25, .reason = "at home in LLC 0, as before"};
  const std::string text = text_of(explanation);
  EXPECT_THAT(text, HasSubstr("Home\n"));
  EXPECT_THAT(text, HasSubstr("at home in LLC 0, as before\n  it needs no pin, not pinned now\n"));
  EXPECT_THAT(text, HasSubstr("counts for 1.5 cores there; score 0.2500"));
}

TEST_F(RenderExplanation, AnInstanceThatWaitsForVcpusHasItsCause) {
  workload.pin.emplace();
  workload.waiting = {.runq_latency_s = 0.0125,
                      .cause = model::WaitCause::vcpus,
                      .vcpus = 3,
                      .quieter = {},
                      .reason = "it keeps 1.9 of its 2 vCPUs busy, and asks for 3"};
  EXPECT_THAT(text_of(explanation),
              HasSubstr("wait 12.5 ms for a vCPU (99th percentile), cause vcpus: it keeps 1.9"));
}

TEST_F(RenderExplanation, BestEffortWorkSaysItsPriority) {
  workload.pool.emplace();
  EXPECT_THAT(text_of(explanation), Not(HasSubstr("priority")));
  model::BestEffortGroup& group = workload.group.emplace();
  group.id = "batch.slice";
  EXPECT_THAT(text_of(explanation), HasSubstr("has its usual CPU priority; it is in the group batch.slice"));
  group.held = model::LowPriority::idle;
  EXPECT_THAT(text_of(explanation),
              HasSubstr("runs only while no service wants the vCPU; it is in the group batch.slice"));
  group.id = workload.workload.id;
  EXPECT_THAT(text_of(explanation), HasSubstr("it is a group of its own"));
}

TEST_F(RenderExplanation, AVictimsCostIsTermByTerm) {
  model::EvictionCandidate candidate;
  candidate.cost_s = 16;
  candidate.frees_bytes = 1 << 30;
  candidate.reason = "14 s of completed tasks, to be computed again, and 2 s in running ones";
  workload.eviction = {.candidate = candidate,
                       .spared = {},
                       .position = 1,
                       .candidates = 9,
                       .victim = true,
                       .memory = "1 GiB is missing"};
  workload.application = some_application();
  const auto text = text_of(explanation);
  EXPECT_THAT(text, HasSubstr("costs 16 s: 14 s of completed tasks"));
  EXPECT_THAT(text, HasSubstr("frees 1.0 GiB"));
  EXPECT_THAT(text,
              HasSubstr("number 1 of 9 in the order of eviction, would be evicted now: 1 GiB is missing"));
  EXPECT_THAT(text, HasSubstr("cost 33 s = recalculation 42 s - delta 0.2500 x remaining 36 s"));
}

TEST_F(RenderExplanation, WhatIsSparedSaysWhy) {
  workload.eviction = {.candidate = {},
                       .spared = "its cgroup is shared",
                       .position = 0,
                       .candidates = 9,
                       .victim = false,
                       .memory = "none"};
  const auto text = text_of(explanation);
  EXPECT_THAT(text, HasSubstr("is never evicted: its cgroup is shared"));
  EXPECT_THAT(text, Not(HasSubstr("in the order of eviction")));
}

TEST_F(RenderExplanation, AnApplicationByItself) {
  explanation.workload.reset();
  explanation.application = some_application();
  const auto text = text_of(explanation);
  EXPECT_THAT(text, HasSubstr("Spark application app-1"));
  EXPECT_THAT(text, HasSubstr("1.2 of 2 stages done"));
  EXPECT_THAT(text, HasSubstr("40 s to compute again, 1.0 MiB to move again"));
  EXPECT_THAT(text, HasSubstr("3.0 GiB: 11 s for each GiB"));
  EXPECT_THAT(text, HasSubstr("1. e2\n  2. d\n"));
}

TEST_F(RenderExplanation, AStragglersFiguresAreThoseItWasJudgedBy) {
  auto& task = workload.task.emplace();
  task.straggler = true;
  task.reason = "it slows down and will be late";
  task.samples = {{1000, 0.1}, {1010, 0.2}, {1020, 0.3}, {1030, 0.35}};
  task.v1 = 0.01;
  task.v2 = 0.005;
  task.finish = 1160;
  task.deadline = 1100;
  task.growth = 1.857;
  task.allocation_cores = 2;
  task.extension = {1.714, 0};
  task.granted = {1, 0};
  task.vcpus = 3;
  workload.idle = {0.25, 0};
  workload.lacks = model::Resources{0.714, 0};
  workload.moves = {{.kind = model::LimitMove::Kind::reclaim,
                     .workload = "batch/x",
                     .amount = {0.75, 0},
                     .reason = "it uses 20 % of 2 cores"}};
  const auto text = text_of(explanation);
  EXPECT_THAT(text, HasSubstr("v1 = (0.2000 - 0.1000) / 10.00 s = 0.010000 per second"));
  EXPECT_THAT(text, HasSubstr("v2 = (0.3500 - 0.3000) / 10.00 s = 0.005000 per second"));
  EXPECT_THAT(text, HasSubstr("(1 - 0.3500) / v2"));
  EXPECT_THAT(text, HasSubstr("1 min 0 s late"));
  EXPECT_THAT(text, HasSubstr("a straggler: it slows down and will be late"));
  EXPECT_THAT(text, HasSubstr("rho 1.857: in addition to its allocation of 2.00 cores it needs 1.71 cores"));
  EXPECT_THAT(text, HasSubstr("granted 1.00 cores, on 3 vCPUs"));
  EXPECT_THAT(text, HasSubstr("idle on the node: 0.25 cores"));
  EXPECT_THAT(text, HasSubstr("this node cannot give it 0.71 cores"));
  EXPECT_THAT(text, HasSubstr("reclaim batch/x: 0.75 cores (it uses 20 % of 2 cores)"));
}

TEST_F(RenderExplanation, ATaskThatCannotBeJudgedHasNoFigures) {
  workload.task.emplace().reason = "two of four reports";
  workload.task->samples = {{1000, 0.1}, {1010, 0.2}};
  const auto text = text_of(explanation);
  EXPECT_THAT(text, HasSubstr("no straggler: two of four reports"));
  EXPECT_THAT(text, Not(HasSubstr("v1")));
  EXPECT_THAT(text, Not(HasSubstr("rho")));
}

TEST_F(RenderExplanation, OfATaskThatIsNotJudgedNoFinishIsShown) {
  workload.task.emplace().reason = "not judged: progress fell from 0.2 to 0.1";
  workload.task->samples = {{1000, 0.1}, {1010, 0.2}, {1020, 0.1}, {1030, 0.2}};
  auto text = text_of(explanation);
  EXPECT_THAT(text, HasSubstr("no straggler: not judged: progress fell"));
  EXPECT_THAT(text, Not(HasSubstr("T: never")));
  workload.task->v1 = workload.task->v2 = 0;
  text = text_of(explanation);
  EXPECT_THAT(text, HasSubstr("T: never, at this speed"));
}

TEST_F(RenderExplanation, AnAllocationThatIsNotKnownIsNoLimit) {
  workload.task.emplace().straggler = true;
  workload.task->growth = 2;
  EXPECT_THAT(text_of(explanation),
              HasSubstr("rho 2.000: in addition to a CPU allocation that is not known it needs"));
}

TEST_F(RenderExplanation, ALimitThatIsHeldShowsItsOriginalAndWhy) {
  workload.workload.cpu_quota_cores = 0.5;
  workload.workload.original =
      model::OriginalLimits{.cpu_quota_cores = std::nullopt, .memory_high_bytes = {}};
  workload.workload.held_cpu =
      model::HeldLimit{.cause = model::HeldCause::preempted, .since = 900, .changed_at = 950};
  const auto text = text_of(explanation);
  EXPECT_THAT(text, HasSubstr("CPU quota: 0.50 cores, was no limit: it was shrunk for a straggler since"));
  EXPECT_THAT(text, HasSubstr("memory.high: no limit\n"));
}

TEST_F(RenderExplanation, SaysWhatKeepsItFromBeingManaged) {
  workload.left_alone = "another program changed cpuset.cpus";
  workload.unplaceable = "no domain has 2 free vCPUs";
  const auto text = text_of(explanation);
  EXPECT_THAT(text, HasSubstr("berth leaves it alone: another program changed cpuset.cpus"));
  EXPECT_THAT(text, HasSubstr("gets no vCPUs of its own: no domain has 2 free vCPUs"));
}

TEST_F(RenderExplanation, BestEffortWorkShowsWhatItDoesNotUse) {
  workload.workload.workload_class = model::WorkloadClass::best_effort;
  workload.pool = model::BestEffortPool{.cpus = model::CpuSet::range(2, 7), .utilisation = 0.5};
  workload.redundant.emplace().cpu = model::RedundantCpu{.utilisation = 0.2, .reclaimable_cores = 1.25};
  const auto text = text_of(explanation);
  EXPECT_THAT(text, HasSubstr("shares vCPUs 2-7 with all best-effort work; they are 50 % busy"));
  EXPECT_THAT(text, HasSubstr("CPU: uses 20 % of its allocation at most, 1.25 cores could be taken"));
}

TEST_F(RenderExplanation, BestEffortWorkSaysWhichVcpusAreReserved) {
  workload.pool = model::BestEffortPool{.cpus = model::CpuSet::range(2, 7), .reserved = {0, 1}};
  EXPECT_THAT(text_of(explanation), HasSubstr("not vCPUs 0-1, which are reserved"));
}

TEST_F(RenderExplanation, WhoPaysIsNamedWithHowMuchAndWhy) {
  workload.payers = {{.workload = "batch/x",
                      .held = {.cause = model::HeldCause::lent, .since = 900, .changed_at = 950},
                      .amount = {0.75, 0}},
                     {.workload = "batch/y",
                      .held = {.cause = model::HeldCause::preempted, .since = 900, .changed_at = 950},
                      .amount = {0, 1 << 20}}};
  const auto text = text_of(explanation);
  EXPECT_THAT(text, HasSubstr("Workloads that pay for stragglers now\n"
                              "  batch/x has 0.75 cores less: it lends what it does not use since"));
  EXPECT_THAT(text, HasSubstr("  batch/y has 1.0 MiB less: it was shrunk for a straggler since"));
}

TEST_F(RenderExplanation, SaysWhyItLendsNothing) {
  workload.keeping = "it needed its share back 3.0 s ago";
  EXPECT_THAT(text_of(explanation), HasSubstr("Resources that it holds and does not use\n"
                                              "  keeps them: it needed its share back 3.0 s ago\n"));
}

class RenderDecision : public RenderExplanation {
 protected:
  RenderDecision() {
    model::Action pin;
    pin.decision = "d-0123456789ab";
    pin.policy = "interference";
    pin.reason = "best place";
    pin.what = model::Set{workload.workload.id, model::CpuSet::range(0, 1)};
    explanation.decision = {.id = pin.decision, .planned = pin, .planned_at = 940, .present = true};
  }
  // With a log entry of the enforce mode, or without.
  std::string told(bool logged) const {
    auto document = parse_document(model::to_json(explanation), "explanation").value();
    if (logged)
      document["decision"]["entries"].push_back(
          {{"time", 940}, {"mode", "enforce"}, {"kind", "pin"}, {"result", "applied"}});
    std::ostringstream out;
    render_explanation(out, document, {});
    return out.str();
  }
};

TEST_F(RenderDecision, OfThePresentPlan) {
  EXPECT_THAT(told(false), HasSubstr("  is in the present plan:\n  pin d-0123456789ab"));
  EXPECT_THAT(
      told(true),
      HasSubstr("  is in the plan of the last tick, which was carried out as the log says:\n  pin d-"));
}

TEST_F(RenderDecision, OfAnEarlierPlanSaysWhenAndWhetherTheLogHasIt) {
  explanation.decision->present = false;
  const std::string unknown = told(false);
  EXPECT_THAT(unknown,
              HasSubstr("  was in the plan of " + format_time(940) + ", and is not in the present one:\n"));
  EXPECT_THAT(unknown, HasSubstr("The log does not have it."));
  EXPECT_THAT(unknown, Not(HasSubstr("is in the present plan")));
  EXPECT_THAT(told(true), Not(HasSubstr("The log does not have it.")));
  EXPECT_THAT(told(true), HasSubstr("its log entries, in enforce mode:"));
}

}  // namespace
}  // namespace berth::cli
