// SPDX-License-Identifier: Apache-2.0
#include "trial/figures.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace berth::trial {

namespace {

struct Name {
  Figure figure;
  const char* name;
  const char* unit;
  bool less_is_better;
};
constexpr std::array<Name, kFigures.size()> kNames{{
    {Figure::runq_p99, "runq-p99", "us", true},
    {Figure::runq_median, "runq-median", "us", true},
    {Figure::cpi, "cpi", "cycles per instruction", true},
    {Figure::throttled, "throttled", "share of the time", true},
    {Figure::progress, "progress", "share of the task, an hour", false},
    {Figure::batch_cpu, "batch-cpu", "cores", false},
    {Figure::metric, "metric", "", true},
}};

const Name& entry_of(Figure figure) { return kNames[static_cast<std::size_t>(figure)]; }

std::optional<double> progress_of(const model::Workload& workload) {
  if (workload.progress.empty()) return std::nullopt;
  return workload.progress.back().fraction;
}

}  // namespace

const char* to_string(Figure figure) { return entry_of(figure).name; }
const char* unit_of(Figure figure) { return entry_of(figure).unit; }
bool less_is_better(Figure figure) { return entry_of(figure).less_is_better; }

std::optional<Figure> parse_figure(std::string_view name) {
  for (const Name& entry : kNames) {
    if (name == entry.name) return entry.figure;
  }
  return std::nullopt;
}

void Window::begin(const model::Snapshot& snapshot) {
  *this = {};
  begun_ = ended_ = snapshot.time;
  for (const model::Workload& workload : snapshot.workloads) {
    Run& run = runs_[workload.id];
    run.service = workload.service;
    run.batch = workload.workload_class == model::WorkloadClass::best_effort;
    if (!workload.usage.empty()) run.seen = workload.usage.back().time;
    run.begun_at = run.progress = progress_of(workload);
    batch_known_ = batch_known_ || run.batch;
  }
}

void Window::take(const model::Snapshot& snapshot) {
  ended_ = std::max(ended_, snapshot.time);
  for (const model::Workload& workload : snapshot.workloads) {
    const auto [run, is_new] = runs_.try_emplace(workload.id);
    if (is_new) {
      run->second.service = workload.service;
      run->second.batch = workload.workload_class == model::WorkloadClass::best_effort;
      batch_known_ = batch_known_ || run->second.batch;
    }
    count(run->second, workload);
  }
}

void Window::count(Run& run, const model::Workload& workload) {
  // What it reports now is of this run if it did not fall.
  const auto progress = progress_of(workload);
  if (!progress || progress < run.progress) run.begun_at.reset();
  run.progress = progress;
  bool newer = false;
  for (const model::UsageSample& sample : workload.usage) {
    if (sample.time <= run.seen || sample.time <= begun_) continue;
    const double before = std::exchange(run.seen, sample.time);
    if (before == 0) continue;  // the first one of a run has no figures
    newer = true;
    if (run.batch) {
      batch_core_s_ += sample.cpu_cores * (sample.time - std::max(before, begun_));
      continue;
    }
    if (sample.runq_latency_us) run.means[Figure::runq_p99].add(*sample.runq_latency_us);
    if (sample.runq_latency_p50_us) run.means[Figure::runq_median].add(*sample.runq_latency_p50_us);
  }
  if (!newer || run.batch) return;
  if (workload.cpi) run.means[Figure::cpi].add(*workload.cpi);
  if (workload.cpu_throttled) run.means[Figure::throttled].add(*workload.cpu_throttled);
}

Figures Window::figures() const {
  const double length_s = ended_ - begun_;
  if (!(length_s > 0)) return {};
  std::map<Key, Mean> means;
  for (const auto& [id, run] : runs_) {
    const auto add = [&means, &service = run.service](Figure figure, double value, double weight) {
      means[{service, figure}].add(value, weight);
      means[{"", figure}].add(value, weight);
    };
    for (const auto& [figure, mean] : run.means) add(figure, mean.sum / mean.weight, mean.weight);
    if (run.begun_at && run.progress && *run.begun_at < 1)
      add(Figure::progress, (*run.progress - *run.begun_at) / length_s * 3600, 1);
  }
  Figures figures;
  for (const auto& [key, mean] : means) figures[key] = mean.sum / mean.weight;
  if (batch_known_) figures[{"", Figure::batch_cpu}] = batch_core_s_ / length_s;
  return figures;
}

}  // namespace berth::trial
