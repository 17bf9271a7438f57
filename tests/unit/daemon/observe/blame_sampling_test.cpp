// SPDX-License-Identifier: Apache-2.0
#include "daemon/observe/blame_sampling.h"

#include "tests/patience.h"
#include "tests/temporary_directory.h"

#include <atomic>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::daemon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A kernel in which the group 9 runs while all others wait, 10 ms in each reading.
struct FakeKernel {
  std::atomic<int> loads = 0;
  std::atomic<int> loaded = 0;
  std::atomic<bool> refuses = false;
  std::vector<ebpf::AskedGroup> asked;
  int questions = 0;  // calls of ask()
  int after = 0;      // of run_after()
  bool runs_nowhere = false;
  std::vector<std::uint64_t> waited_ns{10'000'000};
};

struct FakeBlamer : ebpf::Blamer {
  explicit FakeBlamer(FakeKernel& all) : kernel(all) { ++kernel.loaded; }
  ~FakeBlamer() override { --kernel.loaded; }
  FakeBlamer(const FakeBlamer&) = delete;
  FakeBlamer& operator=(const FakeBlamer&) = delete;
  void ask(const std::vector<ebpf::AskedGroup>& groups) override {
    kernel.asked = groups;
    ++kernel.questions;
  }
  std::vector<ebpf::BlamedWait> read() override {
    std::vector<ebpf::BlamedWait> waits;
    for (const auto& group : kernel.asked) waits.push_back({group.id, 9, 10'000'000});
    return waits;
  }
  std::vector<std::uint64_t> take_waited(std::uint64_t) override { return kernel.waited_ns; }
  ebpf::CulpritGroup culprit(std::uint64_t id) const override { return {{id}, "hog"}; }
  void make_room() override {}
  model::Result<void> run_after(int map) override {
    kernel.after = map;
    if (kernel.runs_nowhere) return model::fail(model::ErrorKind::io, "no hook");
    return {};
  }
  ebpf::BlameCost cost() const override { return {1000, 0, 2'000'000'000}; }
  FakeKernel& kernel;
};

model::Workload workload(const std::string& id, std::uint64_t cgroup, const std::string& service,
                         model::WorkloadClass workload_class = model::WorkloadClass::latency_sensitive) {
  model::Workload made;
  made.id = id;
  made.cgroup_id = cgroup;
  made.service = service;
  made.workload_class = workload_class;
  return made;
}

class BlameSamplingTest : public ::testing::Test {
 protected:
  BlameSamplingTest() { stat(0); }
  void stat(int stolen) {
    std::ofstream(proc.path() / "stat")
        << "cpu  1 1 1 1 0 0 0 1 0 0\ncpu0 50 0 0 " << 50 + stolen << " 0 0 0 " << stolen << " 0 0\nintr 1\n";
  }
  void follow(double now) { sampling.follow(workloads, after_switch, now, messages); }
  // Ticks until the programs are loaded, or refused.
  void load(double now) {
    const auto ended = [&] { return sampling.counts() || !messages.empty(); };
    ASSERT_TRUE(berth::test::eventually([&] {
      if (!ended()) follow(now);
      return ended();
    }));
  }

  FakeKernel kernel;
  berth::test::TemporaryDirectory proc;
  std::vector<model::Workload> workloads{
      workload("a/web1", 1, "web"), workload("a/web2", 2, "web"), workload("a/other", 3, "other"),
      workload("b/c/job", 4, "b/c/job", model::WorkloadClass::best_effort)};
  std::vector<std::string> messages;
  int after_switch = -1;
  BlameSampling sampling{[this]() -> model::Result<std::unique_ptr<ebpf::Blamer>> {
                           ++kernel.loads;
                           if (kernel.refuses)
                             return model::fail(model::ErrorKind::permission, "not for you");
                           return std::make_unique<FakeBlamer>(kernel);
                         },
                         proc.path()};
};

TEST_F(BlameSamplingTest, WithoutAQuestionNothingIsLoaded) {
  follow(1);
  EXPECT_FALSE(sampling.is_needed());
  EXPECT_EQ(kernel.loads, 0);
  EXPECT_FALSE(sampling.cost(1));
}

TEST_F(BlameSamplingTest, AHookThatRunsNowhereIsAProblemAndUnloadsTheRest) {
  kernel.runs_nowhere = true;
  sampling.ask("web", 100);
  load(100);
  EXPECT_FALSE(sampling.counts());
  EXPECT_EQ(kernel.loaded, 0);
  EXPECT_THAT(messages, ElementsAre(HasSubstr("no hook")));
  EXPECT_THAT(sampling.answer("web").problem, HasSubstr("no hook"));
  kernel.runs_nowhere = false;
  messages.clear();
  load(100 + BlameSampling::kPause_s);
  EXPECT_TRUE(sampling.counts());
}

TEST_F(BlameSamplingTest, TheHookComesAfterThatOfSamplingAsLongAsThereIsOne) {
  sampling.ask("web", 100);
  after_switch = 7;
  load(100);
  EXPECT_EQ(kernel.after, 7);
  after_switch = -1;
  follow(101);
  EXPECT_EQ(kernel.after, -1);
}

TEST_F(BlameSamplingTest, AQuestionIsAboutTheServicesWorkloads) {
  sampling.ask("web", 100);
  load(100);
  EXPECT_THAT(kernel.asked, ElementsAre(ebpf::AskedGroup{1, 2}, ebpf::AskedGroup{2, 2}));
  const auto answer = sampling.answer("web");
  EXPECT_EQ(answer.since, 100);
  EXPECT_THAT(answer.workloads, ElementsAre("a/web1", "a/web2"));
  EXPECT_EQ(answer.blames, (Blames{{{CulpritKind::cgroup, "hog"}, 20}}));
  sampling.ask("b/c/job", 101);
  follow(101);
  EXPECT_THAT(kernel.asked,
              ElementsAre(ebpf::AskedGroup{1, 2}, ebpf::AskedGroup{2, 2}, ebpf::AskedGroup{4, 3}));
  follow(102);
  EXPECT_EQ(kernel.questions, 2);
  EXPECT_EQ(kernel.loads, 1);
}

TEST_F(BlameSamplingTest, ItGoesSomeTimeAfterTheLastQuestion) {
  sampling.set_linger(60);
  sampling.ask("web", 100);
  load(100);
  sampling.ask("web", 130);
  follow(189);
  EXPECT_EQ(kernel.loaded, 1);
  EXPECT_EQ(sampling.ends_in(189), 1);
  follow(190);
  EXPECT_EQ(kernel.loaded, 0);
  EXPECT_FALSE(sampling.is_needed());
  EXPECT_TRUE(sampling.answer("web").blames.empty());
  // The sums of the metrics never fall.
  EXPECT_GT(sampling.seconds()[static_cast<std::size_t>(CulpritKind::cgroup)], 0);
}

TEST_F(BlameSamplingTest, AlwaysItIsAboutAllLatencySensitiveWorkloads) {
  sampling.set_always(true);
  load(1);
  EXPECT_THAT(kernel.asked,
              ElementsAre(ebpf::AskedGroup{1, 2}, ebpf::AskedGroup{2, 2}, ebpf::AskedGroup{3, 2}));
  EXPECT_FALSE(sampling.ends_in(1));
  follow(1e6);
  EXPECT_EQ(kernel.loaded, 1);
  sampling.set_always(false);
  follow(1e6 + 1);
  EXPECT_EQ(kernel.loaded, 0);
}

TEST_F(BlameSamplingTest, OfTooManyWorkloadsThoseThatAreAskedAboutComeFirst) {
  workloads.clear();
  for (std::uint64_t n = 1; n <= 500; ++n) workloads.push_back(workload("a/" + std::to_string(n), n, "a"));
  workloads.push_back(workload("z", 1000, "z"));
  sampling.set_always(true);
  sampling.ask("z", 1);
  load(1);
  ASSERT_EQ(kernel.asked.size(), 128U);
  EXPECT_EQ(kernel.asked.front().id, 1000U);
  sampling.ask("a", 2);
  follow(2);
  EXPECT_EQ(sampling.answer("a").workloads.size(), 128U);
}

TEST_F(BlameSamplingTest, AQuestionThatBeginsAnewForgetsTheWaitsOfTheOneBefore) {
  sampling.set_always(true);  // the programs stay
  sampling.set_linger(60);
  sampling.ask("web", 100);
  load(100);
  follow(170);
  sampling.ask("web", 180);
  follow(180);
  EXPECT_EQ(sampling.answer("web").since, 180);
  EXPECT_EQ(sampling.answer("web").blames, (Blames{{{CulpritKind::cgroup, "hog"}, 20}}));
}

TEST_F(BlameSamplingTest, AQuestionAboutAWorkloadOfAnotherOneCountsFromThereOn) {
  sampling.ask("web", 100);
  load(100);
  sampling.ask("a/web1", 110);
  follow(110);
  EXPECT_EQ(sampling.answer("a/web1").since, 100);
  EXPECT_EQ(sampling.answer("a/web1").blames, (Blames{{{CulpritKind::cgroup, "hog"}, 20}}));
}

TEST_F(BlameSamplingTest, AWorkloadThatEndedSinceTheLastTickHasItsName) {
  workloads.push_back(workload("batch/job", 9, "batch/job", model::WorkloadClass::best_effort));
  sampling.ask("a/other", 100);
  load(100);
  workloads.pop_back();
  follow(110);
  EXPECT_EQ(sampling.answer("a/other").blames, (Blames{{{CulpritKind::best_effort, "batch/job"}, 20}}));
  follow(120);
  EXPECT_TRUE(sampling.answer("a/other").blames.contains({CulpritKind::cgroup, "hog"}));
}

TEST_F(BlameSamplingTest, WhatTheHypervisorTookIsSteal) {
  sampling.ask("a/other", 1);
  load(1);
  const auto before = sampling.answer("a/other").blames;
  stat(50);  // a half of the vCPU's time since then
  follow(2);
  EXPECT_DOUBLE_EQ(sampling.answer("a/other").blames.at({CulpritKind::steal, ""}), 5);
  EXPECT_FALSE(before.contains({CulpritKind::steal, ""}));
}

TEST_F(BlameSamplingTest, ProgramsThatCannotBeLoadedAreTriedAgainAfterAPause) {
  kernel.refuses = true;
  sampling.ask("web", 100);
  load(100);
  EXPECT_THAT(messages, ElementsAre(HasSubstr("not for you")));
  EXPECT_THAT(sampling.answer("web").problem, HasSubstr("not for you"));
  follow(100 + BlameSampling::kPause_s - 1);
  EXPECT_EQ(kernel.loads, 1);
  kernel.refuses = false;
  load(100 + BlameSampling::kPause_s);
  ASSERT_TRUE(berth::test::eventually([&] {
    follow(111);
    return sampling.counts();
  }));
  EXPECT_THAT(sampling.answer("web").problem, IsEmpty());
}

TEST_F(BlameSamplingTest, OnlySoManyQuestionsAreKept) {
  for (std::size_t n = 0; n < 3 * BlameSampling::kMostQuestions; ++n)
    sampling.ask(n == 0 ? "web" : std::to_string(n), static_cast<double>(n));
  load(100);
  EXPECT_FALSE(sampling.answer("web").since);
  EXPECT_THAT(kernel.asked, IsEmpty());
}

}  // namespace
}  // namespace berth::daemon
