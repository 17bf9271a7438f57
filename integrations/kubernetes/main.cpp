// SPDX-License-Identifier: Apache-2.0
// berth-kube(8): publishes the state of this host's berthd in Kubernetes, for as long as it runs.
#include "integrations/berth.h"
#include "integrations/kubernetes/https_api.h"
#include "integrations/kubernetes/options.h"
#include "integrations/kubernetes/publisher.h"
#include "integrations/kubernetes/reporter.h"
#include "model/plain_text.h"
#include "os/clock.h"
#include "os/log.h"

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <exception>
#include <memory>
#include <random>
#include <string>
#include <variant>

#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

namespace berth::kubernetes {

namespace {

// berthd writes its state once a tick, mostly once a second.
constexpr timespec kTurn{.tv_sec = 1, .tv_nsec = 0};
// Taking everything back may last so long, and one request of it. TimeoutStopSec= of the unit is longer.
constexpr std::chrono::milliseconds kWithdrawal{25000};
constexpr std::chrono::milliseconds kLastRequest{5000};

// The journal takes the number as the level of the line. A reader that is gone must not end the program: the
// figures in the cluster would stay.
void say(Level level, const std::string& message) {
  const char* prefix = "";
  if (os::stderr_is_journal()) prefix = level == Level::warning ? "<4>" : "<6>";
  const std::string line =
      fmt::format("{}berth-kube: {}\n", prefix, model::plain_text(message, model::kMostLineBytes));
  std::fputs(line.c_str(), stderr);
}

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

// Whether a signal to stop waits. It is blocked, so it goes on waiting.
bool is_stopped() {
  sigset_t pending;
  return sigpending(&pending) == 0 &&
         (sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1);
}

// Waits; false if another signal to stop came meanwhile.
bool pause(double seconds) {
  const sigset_t signals = stop_signals();
  const auto whole_s = static_cast<time_t>(seconds);
  const timespec time{.tv_sec = whole_s,
                      .tv_nsec = static_cast<long>((seconds - static_cast<double>(whole_s)) * 1e9)};
  return sigtimedwait(&signals, nullptr, &time) < 0;
}

bool withdraw(HttpsApi& api, Publisher& publisher) {
  api.finish_within(kWithdrawal, kLastRequest);
  return publisher.withdraw(std::chrono::duration<double>(kWithdrawal).count(), pause);
}

Surroundings surroundings() {
  std::random_device seed;
  auto engine = std::make_shared<std::mt19937>(seed());
  return {.clock = os::boot_s,
          .random = [engine] { return std::uniform_real_distribution<double>(0, 1)(*engine); },
          .say = say};
}

Berth read_state(const Options& options) {
  return integrations::read_berth(options.state_file, os::epoch_s(), options.max_age_s);
}

ExitStatus dry_run(const Options& options) {
  const Berth berth = read_state(options);
  const Wanted wanted = wanted_of(berth, options.taint);
  if (!berth.silence.empty()) say(Level::warning, berth.silence);
  fmt::print("PATCH {}/api/v1/nodes/{}/status\n{}\n", options.access.server, options.node,
             status_patch(wanted, Names(options.domain)));
  if (options.taint)
    fmt::print("taint {}={}:NoSchedule\n", Names(options.domain).taint,
               wanted.closed.empty() ? "(none)" : wanted.closed);
  return ExitStatus::done;
}

ExitStatus run(const Options& options) {
  if (options.dry_run) return dry_run(options);
  const sigset_t signals = stop_signals();
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  HttpsApi api(options.access, is_stopped);
  Publisher publisher({.node = options.node,
                       .names = Names(options.domain),
                       .interval_s = options.interval_s,
                       .min_change = options.min_change,
                       .taint = options.taint,
                       .once = options.once},
                      api, surroundings());
  if (options.withdraw) {
    const bool done = options.once ? publisher.withdraw() : withdraw(api, publisher);
    return done ? ExitStatus::done : ExitStatus::failed;
  }
  if (options.once) return publisher.turn(read_state(options)) ? ExitStatus::done : ExitStatus::failed;
  Reporter reporter({.node = options.node,
                     .events = options.events,
                     .evict = options.relocate == Relocate::evict,
                     .evict_ended = options.end == Relocate::evict,
                     .evict_after_s = options.relocate_after_s},
                    api, surroundings());
  bool stopped = false;
  while (!stopped) {
    const Berth berth = read_state(options);
    publisher.turn(berth);
    reporter.turn(berth);
    stopped = sigtimedwait(&signals, nullptr, &kTurn) > 0;
  }
  // Nobody keeps the figures true from now on.
  withdraw(api, publisher);
  return ExitStatus::done;
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace

}  // namespace berth::kubernetes

int main(int argc, char** argv) {
  using berth::kubernetes::ExitStatus;
  try {
    const auto parsed = berth::kubernetes::parse_options(argc, argv, berth::kubernetes::host_name());
    const auto* options = std::get_if<berth::kubernetes::Options>(&parsed);
    const auto status = options == nullptr ? std::get<ExitStatus>(parsed) : berth::kubernetes::run(*options);
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return static_cast<int>(status);
    std::fputs("berth-kube: cannot write the output\n", stderr);
  } catch (const std::exception& error) {
    std::fputs(("berth-kube: " + std::string(error.what()) + "\n").c_str(), stderr);
  }
  return static_cast<int>(ExitStatus::failed);
}
