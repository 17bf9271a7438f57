// SPDX-License-Identifier: Apache-2.0
#include "spark/sparkd/driver.h"

#include "model/name.h"
#include "model/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <system_error>
#include <utility>

#include <fmt/core.h>

namespace berth::spark {

namespace {

using Status = RestStage::Status;

constexpr std::size_t kMostProblemBytes = 400;

// For a URL's path; ids are letters, digits, "-", "_" and "." where Spark makes them.
std::string escaped(const std::string& text) {
  std::string path;
  for (const char c : text) {
    const bool plain = model::is_letter_or_digit(c) || c == '-' || c == '_' || c == '.';
    path += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return path;
}

// The properties that are used.
const std::set<std::string> kSettings{
    "spark.decommission.enabled",
    "spark.eventLog.dir",
    "spark.eventLog.enabled",
    "spark.celeborn.client.spark.shuffle.fallback.policy",
    "spark.celeborn.client.spark.shuffle.forceFallback.enabled",
    "spark.shuffle.manager",
    "spark.shuffle.service.enabled",
    "spark.shuffle.service.fetch.rdd.enabled",
    "spark.storage.decommission.enabled",
    "spark.storage.decommission.shuffleBlocks.enabled",
};

bool is_true(const std::map<std::string, std::string>& properties, const char* name, bool otherwise = false) {
  const auto found = properties.find(name);
  return found == properties.end() ? otherwise : found->second == "true";
}

// Whether the shuffle manager hands all output to servers outside the executors: Celeborn's, also under its
// former names, and Uniffle's. Uniffle's DelegationRssShuffleManager may leave output with executors, as
// Celeborn's does with the fallback policy ALWAYS, and with its older form, a forced fallback.
bool keeps_output_outside(const std::map<std::string, std::string>& properties) {
  static constexpr std::array kManagers{
      "org.apache.spark.shuffle.celeborn.SparkShuffleManager",
      "org.apache.spark.shuffle.celeborn.RssShuffleManager",
      "org.apache.spark.shuffle.RssShuffleManager",
  };
  const auto manager = properties.find("spark.shuffle.manager");
  if (manager == properties.end()) return false;
  const auto policy = properties.find("spark.celeborn.client.spark.shuffle.fallback.policy");
  if (policy != properties.end() && (policy->second == "ALWAYS" || policy->second == "always")) return false;
  if (is_true(properties, "spark.celeborn.client.spark.shuffle.forceFallback.enabled")) return false;
  return std::find(kManagers.begin(), kManagers.end(), manager->second) != kManagers.end();
}

// "3.5.3", "4.0.0-preview1"; false where the text cannot be read.
bool is_at_least(const std::string& version, int major, int minor) {
  const char* const end = version.data() + version.size();
  std::pair<int, int> said;
  const auto [dot, error] = std::from_chars(version.data(), end, said.first);
  if (error != std::errc() || dot == end || *dot != '.') return false;
  return std::from_chars(dot + 1, end, said.second).ec == std::errc() && said >= std::pair(major, minor);
}

// For lists of pairs that are sorted by the first number.
template <typename Pair>
bool before(const Pair& a, const Pair& b) {
  return a.first < b.first;
}

// Much of a problem is what the driver said.
std::string problem_of(const char* what, const model::Error& error) {
  return what + model::shortened(error.message(), kMostProblemBytes);
}

}  // namespace

model::Result<void> Driver::find_server(const Get& get, const std::set<std::string>& taken,
                                        const std::function<bool()>& over) {
  std::optional<model::Error> last;
  const std::size_t count = std::min(endpoints_.size(), DriverPlace::kMostEndpoints);
  const std::size_t first = next_endpoint_;
  for (; next_endpoint_ < count; ++next_endpoint_) {
    if (next_endpoint_ > first && over()) {
      return model::fail(model::ErrorKind::transient,
                         fmt::format("tried {} of {} endpoints so far", next_endpoint_, count));
    }
    const std::string root = "http://" + endpoints_[next_endpoint_] + "/api/v1/applications";
    const auto body = get(root);
    const auto found = body ? parse_applications(*body) : model::fail(body.error());
    if (!found) {
      last = body ? found.error().context("GET " + root) : found.error();
      // This is the better message: another port may not speak HTTP at all.
      if (!said_ && (body || body.error().kind() == model::ErrorKind::refused)) said_ = last;
      continue;
    }
    if (found->size() != 1) continue;  // a driver has one; another server has all or none
    const RestApplication& app = found->front();
    if (taken.count(app.id) > 0) continue;
    id_ = app.id;
    attempt_ = app.attempt;
    started_ = app.started;
    version_ = app.version;
    base_ = root + "/" + escaped(app.id) + (app.attempt.empty() ? "" : "/" + escaped(app.attempt));
    return {};
  }
  next_endpoint_ = 0;
  if (const auto said = std::exchange(said_, std::nullopt)) last = said;
  if (last) return model::fail(*last);
  return model::fail(model::ErrorKind::gone, "found no application at the ports of the driver");
}

// Whether shuffle output outlives its executor (Spark's docs/configuration.md). Since 3.4, shuffle blocks
// move by default where blocks move at all (docs/core-migration-guide.md).
model::Result<void> Driver::read_settings(const Get& get) {
  const auto body = get(base_ + "/environment");
  if (!body) return model::fail(body.error());
  const auto properties = parse_properties(*body, kSettings);
  if (!properties) return model::fail(properties.error().context("GET " + base_ + "/environment"));
  shuffle_service_ = is_true(*properties, "spark.shuffle.service.enabled");
  remote_shuffle_ = keeps_output_outside(*properties);
  keeps_disk_blocks_ = shuffle_service_ && is_true(*properties, "spark.shuffle.service.fetch.rdd.enabled");
  migration_ =
      is_true(*properties, "spark.decommission.enabled") &&
      is_true(*properties, "spark.storage.decommission.enabled") &&
      is_true(*properties, "spark.storage.decommission.shuffleBlocks.enabled", is_at_least(version_, 3, 4));
  if (open_ && user_) {
    const auto place = event_log_of(*properties, id_, attempt_);
    if (!place) {
      log_problem_ = problem_of("event log: ", place.error());
    } else if (*place) {
      log_file_.emplace(**place, *user_, open_);
    }
  }
  settings_read_ = true;
  return {};
}

// The active stages alone are few. All stages are listed where these have changed.
model::Result<void> Driver::read_stages(const Get& get, double now) {
  const auto list = [&](const std::string& query) -> model::Result<std::vector<RestStage>> {
    const std::string url = base_ + "/stages" + query;
    const auto body = get(url);
    if (!body) return model::fail(body.error());
    auto stages = parse_stages(*body);
    if (!stages) return model::fail(stages.error().context("GET " + url));
    return stages;
  };
  const bool all = listed_at_ == 0 || now - listed_at_ >= kListAgain_s || now < listed_at_;
  auto active = list(all ? "" : "?status=active");
  if (!active) return model::fail(active.error());
  if (!all) {
    std::set<AttemptId> before;
    std::set<AttemptId> after;
    for (const auto& [id, attempt] : attempts_)
      if (attempt.stage.status == Status::active) before.insert(id);
    for (const RestStage& stage : *active) after.insert({stage.id, stage.attempt});
    if (before != after) {
      listed_at_ = 0;
      return read_stages(get, now);
    }
  }
  if (all) {
    const auto body = get(base_ + "/jobs");
    if (!body) return model::fail(body.error());
    auto jobs = parse_jobs(*body);
    if (!jobs) return model::fail(jobs.error().context("GET " + base_ + "/jobs"));
    take_jobs(*jobs);
    const auto kept = read_cached(get, *active);
    cached_problem_ = kept ? "" : problem_of("kept RDDs: ", kept.error());
    listed_at_ = now;
    // Pending stages may turn out to be skipped, and an application forgets its oldest ones.
    std::set<AttemptId> listed;
    for (const RestStage& stage : *active) listed.insert({stage.id, stage.attempt});
    std::erase_if(attempts_, [&](const auto& item) {
      const Status status = item.second.stage.status;
      const bool gone =
          listed.count(item.first) == 0 && (status == Status::pending || status == Status::skipped);
      if (gone) tasks_ -= item.second.tasks.size();
      return gone;
    });
    for (auto& [id, attempt] : attempts_) {
      if (listed.count(id) > 0) continue;
      if (attempt.stage.status != Status::failed) attempt.stage.status = Status::complete;
      attempt.read = true;
    }
    forget_oldest(listed);
  }
  for (const RestStage& stage : *active) {
    Attempt& attempt = attempts_[{stage.id, stage.attempt}];
    if (attempt.stage.status != stage.status) attempt.next = attempt.first_open;
    attempt.stage = stage;
    attempt.stage.rdds = std::vector<int>();  // a stage may have hundreds; "= {}" would keep their memory
    // It has done nothing, and will do nothing.
    if (is_given_up(stage) && stage.completed == 0) attempt.stage.status = Status::skipped;
  }
  return {};
}

// Forgets the oldest stages that the driver itself has forgotten, where there is no space for all: an
// application may run for months.
void Driver::forget_oldest(const std::set<AttemptId>& listed) {
  for (auto at = attempts_.begin(); at != attempts_.end();) {
    if (attempts_.size() <= kMostStages && tasks_ <= kMostTasks / 2) return;
    // Forgets all attempts of a stage, or none.
    const int stage = at->first.first;
    bool known = false;
    int partitions = 0;
    std::size_t tasks = 0;
    auto next = at;
    for (; next != attempts_.end() && next->first.first == stage; ++next) {
      known = known || listed.count(next->first) > 0;
      if (next->second.stage.status == Status::complete)
        partitions = std::max(partitions, next->second.stage.tasks);
      tasks += next->second.tasks.size();
    }
    if (known) {
      at = next;
      continue;
    }
    if (stood_for_by(stage) == stage) forgotten_partitions_ += partitions;
    tasks_ -= tasks;
    at = attempts_.erase(at, next);
  }
}

void Driver::take_jobs(const std::vector<RestJob>& jobs) {
  jobs_.clear();
  job_of_.clear();
  going_on_.clear();
  for (const RestJob& job : jobs) {
    jobs_.push_back(job.stages);
    for (const int stage : job.stages) {
      if (!job.over) going_on_.push_back(stage);
      if (job.id >= 0) job_of_.emplace_back(stage, job.id);
    }
  }
  std::sort(going_on_.begin(), going_on_.end());
  going_on_.erase(std::unique(going_on_.begin(), going_on_.end()), going_on_.end());
  std::sort(job_of_.begin(), job_of_.end());
  const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
  job_of_.erase(std::unique(job_of_.begin(), job_of_.end(), same), job_of_.end());
}

// -1 where it is not known.
int Driver::job_of(int stage) const {
  const auto found = std::lower_bound(job_of_.begin(), job_of_.end(), std::make_pair(stage, 0));
  return found != job_of_.end() && found->first == stage ? found->second : -1;
}

bool Driver::goes_on(int stage) const {
  return std::binary_search(going_on_.begin(), going_on_.end(), stage);
}

// A job that failed, or was cancelled, leaves stages that will never be complete.
bool Driver::is_given_up(const RestStage& newest) const {
  return newest.status == Status::failed && !goes_on(newest.id);
}

// Several stages may go through a kept RDD. The earliest of those with the most tasks has computed it, as
// take(1) and show() read only a partition or two. The result only affects the value of known stages: an
// error does not fail the round.
model::Result<void> Driver::read_cached(const Get& get, const std::vector<RestStage>& stages) {
  // After a failed read the places are not known any more.
  for (auto& [id, kept] : kept_) kept.known = false;
  const auto body = get(base_ + "/storage/rdd");
  if (!body) return model::fail(body.error());
  const auto cached = parse_cached(*body, names_);
  if (!cached) return model::fail(cached.error().context("GET " + base_ + "/storage/rdd"));
  kept_.clear();
  for (const RestRdd& rdd : *cached) {
    Kept& kept = kept_[rdd.id];
    kept = {.partitions = rdd.partitions, .known = rdd.blocks.has_value(), .alone = {}};
    if (!rdd.blocks) continue;
    for (const RestBlock& block : *rdd.blocks) {
      const bool outlives = keeps_disk_blocks_ && block.on_disk;
      if (block.alone && !outlives) kept.alone.emplace_back(block.partition, *block.alone);
    }
    kept.alone.shrink_to_fit();
    std::stable_sort(kept.alone.begin(), kept.alone.end(), before<std::pair<int, std::uint32_t>>);
  }
  std::erase_if(cached_by_, [&](const auto& item) { return kept_.count(item.first) == 0; });
  for (const RestStage& stage : stages) {
    if (stage.status == Status::pending || stage.status == Status::skipped) continue;
    for (const int rdd : stage.rdds) {
      if (kept_.count(rdd) == 0) continue;
      const std::pair<int, int> candidate{-stage.tasks, stage.id};
      const auto best = cached_by_.emplace(rdd, candidate).first;
      best->second = std::min(best->second, candidate);
    }
  }
  return {};
}

model::Result<void> Driver::read_page(const Get& get, Attempt& attempt, std::size_t offset, int& pages) {
  ++pages;
  const std::string url = fmt::format("{}/stages/{}/{}/taskList?offset={}&length={}", base_, attempt.stage.id,
                                      attempt.stage.attempt, offset, kPageTasks);
  const auto body = get(url);
  if (!body) return model::fail(body.error());
  const auto page = parse_tasks(*body, kPageTasks, names_);
  if (!page) return model::fail(page.error().context("GET " + url));
  const auto& tasks = *page;
  const std::size_t count = tasks.size();
  const std::size_t known = attempt.tasks.size();
  attempt.tasks.resize(std::max(known, offset + count));
  tasks_ += attempt.tasks.size() - known;
  for (std::size_t i = 0; i < count; ++i) attempt.tasks[offset + i] = tasks[i];
  while (attempt.first_open < attempt.tasks.size() && attempt.tasks[attempt.first_open].finished)
    ++attempt.first_open;
  const bool over = attempt.stage.status == Status::complete || attempt.stage.status == Status::failed;
  // Tasks that an abandoned attempt left running do not matter.
  if (over && count < static_cast<std::size_t>(kPageTasks)) attempt.read = true;
  if (tasks_ > kMostTasks)
    return model::fail(model::ErrorKind::invalid_input, fmt::format("more than {} tasks", kMostTasks));
  return {};
}

model::Result<void> Driver::read_tasks(const Get& get, const std::function<bool()>& over, const Room& room) {
  int pages = 0;
  bool all_read = true;
  for (const bool active : {true, false}) {
    for (auto& [id, attempt] : attempts_) {
      const Status status = attempt.stage.status;
      if (attempt.read || status == Status::pending || status == Status::skipped) continue;
      if ((status == Status::active) != active) continue;
      std::size_t offset = active ? attempt.first_open : attempt.next;
      while (pages < kPagesPerRound && !attempt.read && (pages == 0 || !over())) {
        const std::size_t asked = offset;
        if (auto done = read_page(get, attempt, asked, pages); !done) return done;
        if (auto fits = fit(room); !fits) return fits;
        attempt.next = asked + kPageTasks;
        if (attempt.tasks.size() < attempt.next) break;
        // Of a running stage it reads the page of the first open task, and the newest ones. Later rounds read
        // the open tasks between them. So one long task neither hides those after it nor has them read again.
        offset = active ? std::max(attempt.next, attempt.tasks.size() - kPageTasks / 2) : attempt.next;
      }
      if (!active && !attempt.read) all_read = false;
    }
  }
  caught_up_ = caught_up_ || all_read;
  return {};
}

// Mean run time of those tasks that tell one; 0 where none does.
double Driver::mean_run_s(const std::map<int, const RestTask*>& tasks) {
  double sum_s = 0;
  double count = 0;
  for (const auto& [partition, task] : tasks) {
    if (task->run_s < 0) continue;
    sum_s += task->run_s;
    ++count;
  }
  return count > 0 ? sum_s / count : 0;
}

// Mean time of the succeeded tasks in the running stages.
double Driver::usual_task_s() const {
  double sum_s = 0;
  double count = 0;
  for (const auto& [id, attempt] : attempts_) {
    if (attempt.stage.status != Status::active) continue;
    for (const RestTask& task : attempt.tasks) {
      if (task.status != RestTask::Status::succeeded || task.run_s < 0) continue;
      sum_s += task.run_s;
      ++count;
    }
  }
  return count > 0 ? sum_s / count : 0;
}

void Driver::count(double now) {
  struct Tally {
    std::int64_t partitions = 0;
    std::int64_t left = 0;
  };
  std::map<int, Tally> tallies;  // by stage; work that another stage repeats for it counts here
  for (auto at = attempts_.begin(); at != attempts_.end();) {
    const int id = at->first.first;
    const int of = stood_for_by(id);
    const RestStage* newest = nullptr;  // the last attempt tells the rest; it may have a few partitions only
    int partitions = 0;
    for (; at != attempts_.end() && at->first.first == id; ++at) {
      const RestStage& stage = at->second.stage;
      if (stage.status == Status::skipped || (of != id && stage.status == Status::pending)) continue;
      newest = &stage;
      partitions = std::max(partitions, stage.tasks);
    }
    if (newest == nullptr) continue;
    int left = newest->status == Status::complete ? 0 : std::max(0, newest->tasks - newest->completed);
    left = std::min(left, partitions);
    if (is_given_up(*newest)) {
      partitions -= left;
      left = 0;
    }
    Tally& tally = tallies[of];
    if (of == id) tally.partitions = partitions;
    tally.left += left;
  }
  auto done = static_cast<double>(forgotten_partitions_);
  double all = 1 + done;  // one more for the end of the application
  for (const auto& [id, tally] : tallies) {
    all += static_cast<double>(tally.partitions);
    done += static_cast<double>(tally.partitions - std::min(tally.left, tally.partitions));
  }
  const double fraction = done / all;
  if (progress_ && now >= progress_->time) {
    if (fraction == progress_->fraction) return;
    const double wave_s = std::min(usual_task_s(), kLongestWave_s);
    if (fraction > progress_->fraction && now - progress_->time < wave_s) return;
  }
  progress_ = model::ProgressReport{.time = now, .fraction = fraction};
}

model::Result<void> Driver::read(const Get& get, double now, const std::set<std::string>& taken,
                                 const std::function<bool()>& over, const Room& room) {
  auto done = read_on(get, now, taken, over, room);
  // Otherwise it would fail so for ever.
  if (!done && (tasks_ > kMostTasks || names_.full())) forget();
  // The budget counts the facts that the driver told before its fault, too.
  if (!done) (void)fit(room);
  return done;
}

model::Result<void> Driver::read_on(const Get& get, double now, const std::set<std::string>& taken,
                                    const std::function<bool()>& over, const Room& room) {
  if (base_.empty()) {
    if (auto found = find_server(get, taken, over); !found) return found;
    if (!started_) started_ = now;
  }
  if (!settings_read_) {
    if (auto done = read_settings(get); !done) return done;
  }
  if (auto done = read_stages(get, now); !done) return done;
  read_log(now);
  if (auto fits = fit(room); !fits) return fits;  // before the graph repeats much of it
  draw_graph();
  if (auto fits = fit(room); !fits) return fits;
  count(now);
  return read_tasks(get, over, room);
}

void Driver::forget() {
  Driver fresh(std::move(endpoints_), user_, std::move(open_));
  fresh.next_endpoint_ = next_endpoint_;
  fresh.base_ = std::move(base_);
  fresh.id_ = std::move(id_);
  fresh.attempt_ = std::move(attempt_);
  fresh.started_ = started_;
  fresh.version_ = std::move(version_);
  fresh.progress_ = progress_;
  *this = std::move(fresh);
}

model::Result<void> Driver::fit(const Room& room) {
  auto fits = room(bytes());
  if (!fits) forget();
  return fits;
}

// Nodes of maps count with what malloc adds.
std::size_t Driver::bytes() const {
  constexpr std::size_t kDriver = 4096;  // texts, each of which has a limit, and an open file
  constexpr std::size_t kStage = 256 + kCopies * (sizeof(model::SparkStage) + 32);
  constexpr std::size_t kRdd = 256;
  const std::size_t name = sizeof(std::string) + names_.longest_bytes();
  const std::size_t task = sizeof(model::SparkTask) + names_.longest_bytes();
  std::map<int, std::size_t> kept_of;  // by stage
  for (const auto& [rdd, by] : cached_by_) ++kept_of[by.second];
  std::size_t sum = kDriver + names_.bytes() + log_.bytes() + graph_bytes_ + attempts_.size() * kStage;
  for (const auto& [id, attempt] : attempts_) {
    const auto kept = kept_of.find(stood_for_by(id.first));
    const std::size_t keepers = kept == kept_of.end() ? 0 : std::min(kept->second, kMostKeepers);
    sum += attempt.tasks.capacity() * sizeof(RestTask) +
           attempt.tasks.size() * kCopies * (task + (keepers > 0 ? 32 + keepers * name : 0));
  }
  for (const auto& stages : jobs_) sum += sizeof(std::vector<int>) + 32 + stages.capacity() * sizeof(int);
  sum += job_of_.capacity() * sizeof(job_of_.front()) + going_on_.capacity() * sizeof(int);
  sum += (kept_.size() + cached_by_.size()) * kRdd;
  for (const auto& [id, kept] : kept_) sum += kept.alone.capacity() * sizeof(kept.alone.front());
  return sum;
}

// The log only adds facts about known stages: an error does not fail the round.
void Driver::read_log(double now) {
  const bool waits = now < log_again_at_ && log_again_at_ - now <= kListAgain_s;
  if (!log_file_ || waits) return;
  const auto done = log_file_->read([this](std::string_view bytes) { log_.take(bytes); });
  log_file_->unread(log_.drop_open());
  log_problem_ = done ? "" : problem_of("event log: ", done.error());
  log_again_at_ = done ? 0 : now + kListAgain_s;
}

}  // namespace berth::spark
