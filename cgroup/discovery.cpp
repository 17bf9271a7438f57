// SPDX-License-Identifier: Apache-2.0
#include "cgroup/discovery.h"

#include "cgroup/discovery_tree.h"
#include "model/glob.h"
#include "os/clock.h"
#include "os/file_descriptor.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <utility>

#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace berth::cgroup {

namespace {

// Pause between two walks of a tree that cannot be watched, or whose events overflow: this long, or longer,
// so that walking takes 2 % of the time.
constexpr double kRescanInterval_s = 10;
constexpr double kRescanShare = 0.02;

model::Result<void> add_to_epoll(int epoll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
    return model::fail(model::Error::from_errno(errno, "waiting for cgroup events"));
  }
  return {};
}

}  // namespace

struct Discovery::State {
  State(const Hierarchy& hierarchy, Watcher watcher) : tree(hierarchy, std::move(watcher)) {}

  Tree tree;
  os::FileDescriptor epoll;
  os::FileDescriptor timer;
  bool timer_runs = false;
  double next_walk_s = 0;  // monotonic; not before

  model::Result<void> walk() {
    const double begin = os::monotonic_s();
    auto result = tree.rescan();
    const double end = os::monotonic_s();
    next_walk_s = end + std::max(kRescanInterval_s, (end - begin) / kRescanShare);
    return result;
  }

  void start_timer(double delay_s) {
    itimerspec spec{};
    spec.it_value.tv_sec = static_cast<time_t>(delay_s);
    spec.it_value.tv_nsec =
        std::max(1L, static_cast<long>((delay_s - static_cast<double>(spec.it_value.tv_sec)) * 1e9));
    timer_runs = timerfd_settime(timer.get(), 0, &spec, nullptr) == 0;
  }

  void take_timer() {
    std::uint64_t times = 0;
    if (read(timer.get(), &times, sizeof times) == sizeof times) timer_runs = false;
  }

  Changes finish() {
    if (tree.needs_walk() && !timer_runs) start_timer(std::max(0.0, next_walk_s - os::monotonic_s()));
    return tree.take_changes();
  }
};

Discovery::Discovery(std::unique_ptr<State> state) : state_(std::move(state)) {}
Discovery::~Discovery() = default;

model::Result<std::unique_ptr<Discovery>> Discovery::start(const Hierarchy& hierarchy,
                                                           std::vector<model::WorkloadRule> rules) {
  for (const model::WorkloadRule& rule : rules) {
    if (const auto checked = model::check_glob(rule.match); !checked) {
      return model::fail(checked.error().context(rule.origin));
    }
  }
  auto watcher = Watcher::create();
  if (!watcher) return model::fail(watcher.error());
  auto state = std::make_unique<State>(hierarchy, std::move(*watcher));
  state->epoll = os::FileDescriptor(epoll_create1(EPOLL_CLOEXEC));
  state->timer = os::FileDescriptor(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  if (!state->epoll || !state->timer) {
    return model::fail(model::Error::from_errno(errno, "waiting for cgroup events"));
  }
  for (const int fd : {state->tree.watcher().fd(), state->timer.get()}) {
    if (const auto added = add_to_epoll(state->epoll.get(), fd); !added) return model::fail(added.error());
  }
  state->tree.set_rules(std::move(rules));
  if (const auto walked = state->walk(); !walked) return model::fail(walked.error());
  state->start_timer(0);  // what was found is to be fetched
  return std::unique_ptr<Discovery>(new Discovery(std::move(state)));
}

int Discovery::fd() const { return state_->epoll.get(); }

void Discovery::look_at(std::string_view path) { state_->tree.look_at(path); }

Discovery::Changes Discovery::process() {
  state_->take_timer();
  state_->tree.take_events();
  if (state_->tree.needs_walk() && os::monotonic_s() >= state_->next_walk_s) {
    // An error here is the root's. It was reported before, and the next walk tries again.
    static_cast<void>(state_->walk());
  }
  return state_->finish();
}

Discovery::Changes Discovery::set_rules(std::vector<model::WorkloadRule> rules) {
  std::vector<std::string> warnings;
  std::erase_if(rules, [&](const model::WorkloadRule& rule) {
    const auto checked = model::check_glob(rule.match);
    if (!checked)
      warnings.push_back(checked.error().context(rule.origin).message() + "; the rule is left out");
    return !checked;
  });
  state_->tree.set_rules(std::move(rules));
  Changes changes = state_->finish();
  changes.warnings.insert(changes.warnings.begin(), warnings.begin(), warnings.end());
  return changes;
}

const std::map<std::string, FoundWorkload>& Discovery::workloads() const { return state_->tree.workloads(); }
std::vector<std::string> Discovery::trusted_groups(bool containers) const {
  return state_->tree.trusted_groups(containers);
}
std::vector<std::uint64_t> Discovery::crowds(std::size_t most_of_user, std::size_t most_of_users) const {
  return state_->tree.crowds(most_of_user, most_of_users);
}
std::vector<UnusedRule> Discovery::unused_rules() const { return state_->tree.unused_rules(); }
std::optional<std::string> Discovery::why_ignored(std::string_view name) const {
  return state_->tree.why_ignored(name);
}

std::map<std::string, FoundWorkload> Discovery::best_effort_groups(
    const std::function<bool(const std::string& id)>& counts) {
  return state_->tree.best_effort_groups(counts);
}
std::map<std::string, OtherGroup> Discovery::other_groups(const AboutOthers& about, std::size_t most,
                                                          std::size_t& more) {
  return state_->tree.other_groups(about, most, more);
}
std::uint64_t Discovery::groups_version() const { return state_->tree.groups_version(); }
void Discovery::look_at_processes(std::string_view path) { state_->tree.look_at_processes(path); }
void Discovery::look_at_processes() { state_->tree.look_at_processes(); }

}  // namespace berth::cgroup
