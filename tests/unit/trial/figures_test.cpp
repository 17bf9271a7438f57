// SPDX-License-Identifier: Apache-2.0
// What a window counts.
#include "trial/figures.h"

#include <gtest/gtest.h>

namespace berth::trial {
namespace {

using model::UsageSample;

model::Workload service(const std::string& id, std::initializer_list<UsageSample> samples) {
  model::Workload workload;
  workload.id = id;
  workload.service = "web";
  workload.workload_class = model::WorkloadClass::latency_sensitive;
  workload.usage = samples;
  return workload;
}

model::Workload task(const std::string& id, double progress, std::initializer_list<UsageSample> samples) {
  model::Workload workload;
  workload.id = workload.service = id;
  workload.progress = {{1, progress}};
  workload.usage = samples;
  return workload;
}

model::Snapshot at(double time, std::vector<model::Workload> workloads) {
  model::Snapshot snapshot;
  snapshot.time = time;
  snapshot.workloads = std::move(workloads);
  return snapshot;
}

UsageSample waited(double time, double p99) {
  UsageSample sample;
  sample.time = time;
  sample.cpu_cores = 1;
  sample.runq_latency_us = p99;
  sample.runq_latency_p50_us = p99 / 10;
  return sample;
}

UsageSample used(double time, double cores) {
  UsageSample sample;
  sample.time = time;
  sample.cpu_cores = cores;
  return sample;
}

TEST(TrialFigures, TheWarmUpDoesNotCount) {
  Window window;
  window.begin(at(10, {service("a", {waited(9, 5000), waited(10, 5000)})}));
  window.take(at(12, {service("a", {waited(9, 5000), waited(10, 5000), waited(11, 100), waited(12, 300)})}));
  const Figures figures = window.figures();
  EXPECT_DOUBLE_EQ(figures.at({"web", Figure::runq_p99}), 200);
  EXPECT_DOUBLE_EQ(figures.at({"", Figure::runq_p99}), 200);
  EXPECT_DOUBLE_EQ(figures.at({"web", Figure::runq_median}), 20);
}

TEST(TrialFigures, ASampleCountsOnceHoweverOftenItIsSeen) {
  Window window;
  window.begin(at(10, {service("a", {waited(10, 1)})}));
  window.take(at(11, {service("a", {waited(11, 100)})}));
  window.take(at(11, {service("a", {waited(11, 100)})}));
  window.take(at(12, {service("a", {waited(11, 100), waited(12, 400)})}));
  EXPECT_DOUBLE_EQ(window.figures().at({"web", Figure::runq_p99}), 250);
}

TEST(TrialFigures, InstancesOfAServiceAreOne) {
  Window window;
  window.begin(at(10, {service("a", {waited(10, 1)}), service("b", {waited(10, 1)})}));
  window.take(at(11, {service("a", {waited(11, 100)}), service("b", {waited(11, 300)})}));
  EXPECT_DOUBLE_EQ(window.figures().at({"web", Figure::runq_p99}), 200);
  EXPECT_FALSE(window.figures().contains({"a", Figure::runq_p99}));
}

TEST(TrialFigures, BatchCpuIsTheSumOverBestEffortWork) {
  Window window;
  window.begin(at(10, {task("x", 0, {used(10, 0)}), task("y", 0, {used(9, 0)})}));
  window.take(at(14, {task("x", 0, {used(12, 2), used(14, 1)}), task("y", 0, {used(14, 1)})}));
  EXPECT_DOUBLE_EQ(window.figures().at({"", Figure::batch_cpu}), (2 * 2 + 2 * 1 + 4 * 1) / 4.0);
}

TEST(TrialFigures, ProgressIsARate) {
  Window window;
  window.begin(at(100, {task("x", 0.5, {used(100, 1)})}));
  window.take(at(136, {task("x", 0.51, {used(136, 1)})}));
  EXPECT_NEAR(window.figures().at({"x", Figure::progress}), 1.0, 1e-9);
}

TEST(TrialFigures, ATaskThatBeganAnewOrWasDoneHasNoRate) {
  Window window;
  window.begin(at(100, {task("done", 1, {used(100, 1)}), task("x", 0.5, {used(100, 1)})}));
  window.take(at(110, {task("done", 1, {used(110, 1)}), task("x", 0.1, {used(110, 1)})}));
  window.take(at(120, {task("done", 1, {used(120, 1)}), task("new", 0.1, {used(120, 1)}),
                       task("x", 0.6, {used(120, 1)})}));
  for (const auto& [key, value] : window.figures()) EXPECT_NE(key.figure, Figure::progress) << key.service;
}

TEST(TrialFigures, InstructionsAndThrottlingAreThoseOfTheNewestTick) {
  Window window;
  auto instance = service("a", {waited(10, 1)});
  instance.cpi = 9;
  instance.cpu_throttled = 0.9;
  window.begin(at(10, {instance}));
  instance.usage = {waited(11, 1)};
  instance.cpi = 1.5;
  instance.cpu_throttled = 0.25;
  window.take(at(11, {instance}));
  instance.cpi = 8;
  window.take(at(11, {instance}));  // no new tick
  EXPECT_DOUBLE_EQ(window.figures().at({"web", Figure::cpi}), 1.5);
  EXPECT_DOUBLE_EQ(window.figures().at({"web", Figure::throttled}), 0.25);
}

TEST(TrialFigures, WhatIsNotKnownHasNoFigure) {
  Window window;
  window.begin(at(10, {}));
  window.take(at(11, {}));
  EXPECT_TRUE(window.figures().empty());
}

TEST(TrialFigures, EveryFigureHasItsName) {
  for (const Figure figure : kFigures) EXPECT_EQ(parse_figure(to_string(figure)), figure);
  EXPECT_FALSE(parse_figure("latency"));
}

}  // namespace
}  // namespace berth::trial
