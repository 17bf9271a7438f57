// SPDX-License-Identifier: Apache-2.0
#include "spark/sparkd/interviewer.h"

#include "model/name.h"
#include "os/clock.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace berth::spark {

namespace {

constexpr double kFirstWait_s = 2;

std::string text_of_user(std::optional<uid_t> user) {
  return user ? fmt::format("user {}", *user) : "an unknown user";
}

double mebibytes(std::size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

// Much of it is what the driver said.
std::string short_problem(const std::string& why) {
  return model::shortened(model::to_name(why), DriverFacts::kMostProblemBytes);
}

}  // namespace

Interviewer::Interviewer(Get get, OpenFor open, Clock clock, std::size_t most_bytes)
    : get_(std::move(get)), open_(std::move(open)), clock_(std::move(clock)), budget_(most_bytes) {}

Interviewer::Clock Interviewer::steady_clock() { return os::monotonic_s; }

void Interviewer::take(const Question& question) {
  std::set<ProcessId> alive;
  for (const DriverPlace& place : question.drivers) {
    alive.insert(place.process);
    meet(place, question.now);
  }
  std::erase_if(drivers_, [&](const auto& item) {
    const bool gone = alive.count(item.first) == 0;
    if (gone) budget_.remove(item.first);
    return gone;
  });
}

void Interviewer::meet(const DriverPlace& place, double now) {
  const ProcessId id = place.process;
  const auto known = drivers_.find(id);
  // A driver that has told its application has been found, wherever it listens besides.
  if (known != drivers_.end() && (known->second.place == place || !known->second.driver.app_id().empty()))
    return;
  OpenLog open;
  if (open_) open = [this, id](const std::filesystem::path& path) { return open_(id, path); };
  Known fresh{.driver = Driver(place.endpoints, place.user, std::move(open)),
              .place = place,
              .asked = 0,
              .read_at = 0,
              .ask_at = now,
              .wait_s = 0,
              .problem = {}};
  if (known != drivers_.end()) {
    fresh.asked = known->second.asked;
    fresh.ask_at = known->second.ask_at;
    fresh.wait_s = known->second.wait_s;
    fresh.problem = known->second.problem;
  }
  drivers_.insert_or_assign(id, std::move(fresh));
  budget_.remove(id);
  budget_.add(id, place.user);
}

void Interviewer::ask_one(const ProcessId& id, Known& known, const Question& question, double round_ends) {
  known.asked = ++turns_;
  const double now = question.now;
  const double turn_ends = std::min(clock_() + kTurn_s, round_ends);
  // A driver found by its own process is asked, whatever the others have told.
  std::set<std::string> taken;
  for (const auto& [other, its] : drivers_)
    if (known.place.guessed && other != id && !its.driver.app_id().empty()) taken.insert(its.driver.app_id());
  const auto done = known.driver.read(
      get_, now, taken, [&] { return clock_() >= turn_ends; },
      [&](std::size_t bytes) { return make_room(id, bytes, now); });
  if (!known.wall_ahead_s && !known.driver.app_id().empty()) known.wall_ahead_s = question.wall_ahead_s;
  if (done) {
    known.read_at = now;
    if (known.driver.caught_up()) known.wait_s = 0;  // else one that was refused would soon be refused again
    known.ask_at = now;
    known.problem.clear();
    return;
  }
  if (known.driver.searching()) {
    known.ask_at = now;
    return;
  }
  wait(known, now, done.error().message());
}

void Interviewer::wait(Known& known, double now, const std::string& why) {
  known.wait_s = std::clamp(known.wait_s * 2, kFirstWait_s, kLongestWait_s);
  known.ask_at = now + known.wait_s;
  known.problem = short_problem(why);
}

model::Result<void> Interviewer::make_room(const ProcessId& id, std::size_t bytes, double now) {
  const auto user = drivers_.at(id).place.user;
  auto answer = budget_.take(id, bytes);
  while (!answer.granted && answer.gives_way && *answer.gives_way != id) {
    const ProcessId other = *answer.gives_way;
    Known& its = drivers_.at(other);
    wait(its, now,
         fmt::format(
             "its facts took {:.1f} MiB, and drivers of other users need that memory. berth has forgotten "
             "them, and asks again in {:.0f} s",
             mebibytes(its.driver.bytes()), std::clamp(its.wait_s * 2, kFirstWait_s, kLongestWait_s)));
    its.driver.forget();
    budget_.take(other, 0);
    answer = budget_.take(id, bytes);
  }
  if (answer.granted) return {};
  budget_.take(id, 0);  // it forgets them
  return model::fail(
      model::ErrorKind::refused,
      fmt::format(
          "its facts take {:.1f} MiB. berth keeps {:.1f} MiB for all drivers, {:.1f} MiB of it for each "
          "user; other drivers of {} take {:.1f} MiB. berth has forgotten them, and asks again later. "
          "Lower spark.ui.retainedStages and spark.ui.retainedTasks take less",
          mebibytes(bytes), mebibytes(budget_.most()), mebibytes(budget_.share()), text_of_user(user),
          mebibytes(budget_.taken_by(user))));
}

DriverFacts Interviewer::facts_of(const Known& known, double now) {
  DriverFacts facts;
  facts.process = known.place.process;
  facts.app_id = known.driver.app_id();
  facts.read_at = known.read_at;
  facts.app = known.driver.app(now + known.wall_ahead_s.value_or(0));
  facts.progress = known.driver.progress();
  for (const std::string& problem :
       {known.problem, known.driver.log_problem(), known.driver.cached_problem()}) {
    if (!problem.empty()) facts.problems.push_back(short_problem(problem));
  }
  return facts;
}

Answer Interviewer::ask(const Question& question) {
  take(question);
  const double now = question.now;
  const double round_ends = clock_() + kRound_s;
  std::vector<std::pair<const ProcessId, Known>*> due;
  for (auto& item : drivers_) {
    const double wait_s = item.second.ask_at - now;
    if (wait_s <= 0 || wait_s > kLongestWait_s) due.push_back(&item);
  }
  const auto is_uncertain = [](const Known& known) {
    return known.driver.app_id().empty() || known.wait_s > 0;
  };
  std::sort(due.begin(), due.end(), [&](const auto* a, const auto* b) {
    const auto key = [&](const Known& known) { return std::make_pair(is_uncertain(known), known.asked); };
    return std::make_pair(key(a->second), a->first) < std::make_pair(key(b->second), b->first);
  });
  // Else drivers that answer slowly could keep the others from ever being heard.
  if (++rounds_ % 2 == 0) {
    const auto first =
        std::find_if(due.begin(), due.end(), [&](const auto* item) { return is_uncertain(item->second); });
    if (first != due.end()) std::rotate(due.begin(), first, first + 1);
  }
  for (auto* item : due) {
    if (clock_() >= round_ends) break;
    ask_one(item->first, item->second, question, round_ends);
  }
  Answer answer;
  for (const auto& [id, known] : drivers_) {
    answer.drivers.push_back(facts_of(known, now));
    answer.goes_on = answer.goes_on || known.asked == 0 || known.driver.searching();
  }
  return answer;
}

}  // namespace berth::spark
