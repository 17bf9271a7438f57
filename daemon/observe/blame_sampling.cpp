// SPDX-License-Identifier: Apache-2.0
#include "daemon/observe/blame_sampling.h"

#include "ebpf/slices.h"
#include "os/clock.h"
#include "os/proc_files.h"
#include "os/resident_memory.h"

#include <algorithm>
#include <ctime>
#include <set>
#include <sstream>
#include <utility>

namespace berth::daemon {

namespace {

constexpr std::size_t kLongestStat = std::size_t{1} << 20;

unsigned level_of(const std::string& path) {
  return static_cast<unsigned>(std::count(path.begin(), path.end(), '/')) + 1;
}

// By vCPU: stolen ticks, and all ticks, of /proc/stat; zeros for one without a line.
std::vector<std::pair<double, double>> read_stolen(const std::filesystem::path& proc_root) {
  std::vector<std::pair<double, double>> ticks;
  std::istringstream lines(os::read_start(proc_root / "stat", kLongestStat));
  std::string line;
  while (std::getline(lines, line)) {
    if (!line.starts_with("cpu")) break;
    if (line.starts_with("cpu ")) continue;
    std::istringstream words(line.substr(3));
    std::size_t cpu = 0;
    // user nice system idle iowait irq softirq steal; guest times are in user and nice.
    std::array<double, 8> spent{};
    words >> cpu;
    for (double& one : spent) words >> one;
    if (!words || cpu > 65536) continue;
    if (ticks.size() <= cpu) ticks.resize(cpu + 1);
    double all = 0;
    for (const double one : spent) all += one;
    ticks[cpu] = {spent[7], all};
  }
  return ticks;
}

}  // namespace

void BlameSampling::ask(const std::string& subject, double now) {
  questions_[subject].asked_at = now;
  if (questions_.size() <= kMostQuestions) return;
  questions_.erase(std::min_element(questions_.begin(), questions_.end(), [](const auto& a, const auto& b) {
    return a.second.asked_at < b.second.asked_at;
  }));
}

bool BlameSampling::is_wanted(double now) const {
  return always_ || std::any_of(questions_.begin(), questions_.end(), [&](const auto& question) {
           return now - question.second.asked_at < linger_s_;
         });
}

void BlameSampling::follow(const std::vector<model::Workload>& workloads, int after_switch, double now,
                           std::vector<std::string>& messages) {
  std::erase_if(questions_,
                [&](const auto& question) { return now - question.second.asked_at >= linger_s_; });
  if (!is_wanted(now)) {
    stop();
    return;
  }
  load(now, messages);
  if (!blamer_) return;
  const double cpu_before = os::seconds_of(CLOCK_THREAD_CPUTIME_ID);
  if (const auto placed = blamer_->run_after(after_switch); !placed) {
    stop();
    fail(placed.error(), now, messages);
    return;
  }
  choose(workloads, now);
  read();
  read_cpu_s_ += os::seconds_of(CLOCK_THREAD_CPUTIME_ID) - cpu_before;
}

void BlameSampling::load(double now, std::vector<std::string>& messages) {
  if (blamer_) return;
  if (!starting_) {
    if (failed_at_ && now - *failed_at_ < kPause_s) return;
    starting_ = std::make_shared<std::optional<Started>>();
    worker_.emplace();
    // One that cannot begin has no result, and the next call tries again.
    (void)worker_->run(
        [start = start_, result = starting_] {
          result->emplace(start());
          return true;
        },
        os::Worker::Patience(0));
  }
  if (worker_->is_busy()) return;
  const auto result = std::exchange(starting_, nullptr);
  worker_.reset();
  if (!result->has_value()) return;
  Started& started = **result;
  // Of the kernel's types, which take some ten MiB, nothing is needed any more.
  os::release_start_memory();
  if (!started) {
    fail(started.error(), now, messages);
    return;
  }
  blamer_ = std::move(*started);
  failed_at_.reset();
  problem_.clear();
  loaded_at_ = now;
  read_cpu_s_ = 0;
  asked_.clear();
  present_.clear();
  stolen_.clear();
  ledger_.clear();
  for (auto& [subject, question] : questions_) question.since.reset();
}

void BlameSampling::fail(const model::Error& error, double now, std::vector<std::string>& messages) {
  failed_at_ = now;
  if (error.message() != std::exchange(problem_, error.message()))
    messages.push_back(error.context("cannot find the culprits of waits").message());
}

void BlameSampling::choose(const std::vector<model::Workload>& workloads, double now) {
  workloads_ = std::exchange(present_, {});
  std::vector<ebpf::AskedGroup> asked;
  std::vector<ebpf::AskedGroup> others;
  for (const model::Workload& workload : workloads) {
    const std::uint64_t id = workload.cgroup_id;
    if (id == 0) continue;
    present_[id] = {workload.id, workload.service, workload.workload_class};
    workloads_[id] = present_[id];
    const bool wanted = questions_.contains(workload.id) || questions_.contains(workload.service);
    const ebpf::AskedGroup group{id, level_of(workload.id)};
    if (wanted) {
      asked.push_back(group);
    } else if (always_ && workload.workload_class == model::WorkloadClass::latency_sensitive) {
      others.push_back(group);
    }
  }
  asked.insert(asked.end(), others.begin(), others.end());
  if (asked.size() > BERTH_MOST_ASKED) asked.resize(BERTH_MOST_ASKED);
  if (asked != asked_) {
    blamer_->ask(asked);
    asked_ = std::move(asked);
  }
  begin_questions(now);
}

void BlameSampling::begin_questions(double now) {
  for (auto& [subject, question] : questions_) {
    question.workloads.clear();
    for (const ebpf::AskedGroup& group : asked_) {
      const BlameWorkload& workload = present_.at(group.id);
      if (subject == workload.id || subject == workload.service) question.workloads.push_back(workload.id);
    }
  }
  // Waits of a workload from before its first question do not count.
  std::set<std::string> kept;
  for (const auto& [subject, question] : questions_) {
    if (question.since) kept.insert(question.workloads.begin(), question.workloads.end());
  }
  for (auto& [subject, question] : questions_) {
    if (question.since || question.workloads.empty()) continue;
    ledger_.forget(subject, kept);
    question.since = now;
    for (const auto& other : questions_) {
      const Question& asked = other.second;
      const bool shares = std::any_of(question.workloads.begin(), question.workloads.end(), [&](auto& id) {
        return std::find(asked.workloads.begin(), asked.workloads.end(), id) != asked.workloads.end();
      });
      if (shares && asked.since) question.since = std::min(*question.since, *asked.since);
    }
  }
}

// Shares of each vCPU's time that were stolen since the last call.
std::vector<double> BlameSampling::stolen_shares() {
  auto now = read_stolen(proc_root_);
  std::vector<double> shares(now.size());
  for (std::size_t cpu = 0; cpu < std::min(now.size(), stolen_.size()); ++cpu) {
    const double all = now[cpu].second - stolen_[cpu].second;
    if (all > 0) shares[cpu] = std::clamp((now[cpu].first - stolen_[cpu].first) / all, 0.0, 1.0);
  }
  stolen_ = std::move(now);
  return shares;
}

void BlameSampling::read() {
  std::map<std::uint64_t, BlameLedger::Reading> readings;  // by the cgroup that waits
  for (const ebpf::BlamedWait& wait : blamer_->read()) {
    BlameLedger::Reading& reading = readings[wait.asked];
    reading.cgroup = wait.asked;
    auto group = wait.by < BERTH_BY_UNKNOWN ? blamer_->culprit(wait.by) : ebpf::CulpritGroup();
    reading.waits.push_back({wait.by, std::move(group), static_cast<double>(wait.ns) * 1e-6});
  }
  if (readings.empty() && !stolen_.empty()) return;
  const auto shares = stolen_shares();
  for (auto& [id, reading] : readings) {
    const auto waited = blamer_->take_waited(id);
    for (std::size_t cpu = 0; cpu < std::min(waited.size(), shares.size()); ++cpu)
      reading.stolen_ms += shares[cpu] * static_cast<double>(waited[cpu]) * 1e-6;
    ledger_.add(reading, workloads_);
  }
  blamer_->make_room();
}

void BlameSampling::stop() {
  if (starting_ && worker_ && worker_->is_busy()) return;  // follow() is called again
  starting_.reset();
  worker_.reset();
  blamer_.reset();
  ledger_.clear();
  asked_.clear();
}

BlameSampling::Answer BlameSampling::answer(const std::string& subject) const {
  const auto question = questions_.find(subject);
  if (question == questions_.end()) return {};
  return {blamer_ ? question->second.since : std::nullopt, problem_, question->second.workloads,
          ledger_.of(subject)};
}

std::optional<double> BlameSampling::ends_in(double now) const {
  if (!blamer_ || always_ || questions_.empty()) return std::nullopt;
  double last = 0;
  for (const auto& [subject, question] : questions_) last = std::max(last, question.asked_at);
  return std::max(0.0, last + linger_s_ - now);
}

std::optional<BlameCostReport> BlameSampling::cost(double now) const {
  if (!blamer_) return std::nullopt;
  const double time_s = std::max(now - loaded_at_, 1.0);
  return BlameCostReport{static_cast<double>(blamer_->cost().bpf_ns) * 1e-9 / time_s, read_cpu_s_ / time_s};
}

}  // namespace berth::daemon
