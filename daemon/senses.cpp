// SPDX-License-Identifier: Apache-2.0
#include "daemon/senses.h"

#include "os/clock.h"
#include "os/log.h"
#include "os/resident_memory.h"

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace berth::daemon {

void follow_settings(Observer& observer, const config::Settings& settings) {
  using model::Attribute;
  const policies::PolicySettings& policies = settings.policies;
  observer.set_history(settings.history);
  observer.want(Attribute::memory_nodes, policies.placement.memory_nodes);
  observer.want(Attribute::cpu_idle,
                policies.interference.best_effort_priority != policies::BestEffortPriority::leave);
  observer.want_others(policies.interference.others == policies::Others::confine,
                       policies.interference.isolation);
  observer.want(Attribute::cpu_burst, policies.quota.lift || policies.quota.burst);
}

model::Result<std::unique_ptr<Senses>> Senses::start(const Setup& setup) {
  auto observer = Observer::start(setup.hierarchy, setup.settings.rules, setup.options.proc_root,
                                  setup.options.sys_root, setup.settings.history);
  if (!observer) return model::fail(observer.error());
  return std::unique_ptr<Senses>(new Senses(setup, std::move(*observer)));
}

Senses::Senses(const Setup& setup, std::unique_ptr<Observer> observer)
    : setup_(setup),
      observer_(std::move(observer)),
      pressure_(setup.options.proc_root, setup.settings.pressure_threshold),
      progress_files_(setup.options.proc_root),
      spark_(setup.clock),
      blame_(
          [why = why_kernel_cannot_count(setup),
           log_directory = setup.options.runtime_dir]() -> model::Result<std::unique_ptr<ebpf::Blamer>> {
            if (why) return model::fail(model::ErrorKind::unavailable, *why);
            auto started = ebpf::Blame::start(log_directory);
            if (!started) return model::fail(std::move(started.error()));
            return std::unique_ptr<ebpf::Blamer>(std::move(*started));
          },
          setup.options.proc_root) {
  follow_settings();
}

void Senses::follow_settings() {
  const config::Settings& settings = setup_.settings;
  daemon::follow_settings(*observer_, settings);
  pressure_.set_share(settings.pressure_threshold);
  spark_.keep(setup_.options.proc_root, setup_.options.sparkd_socket,
              settings.spark_watch ? std::optional(settings.spark_interval_s) : std::nullopt);
  blame_.set_always(settings.blame);
  blame_.set_linger(settings.blame_linger_s);
}

void Senses::look(double now) {
  const double cpu_before = os::seconds_of(CLOCK_THREAD_CPUTIME_ID);
  const double wall_ahead_s = setup_.clock.wall_ahead_s();
  if (const double slept_s = suspends_.take(); slept_s > 0) observer_->progress().pass_over(slept_s, now);
  observer_->set_share_of_users(static_cast<std::int64_t>(
      1e9 * budget_.share_of_users_s(setup_.settings.tick_s, setup_.settings.sampling_max_cpu)));
  auto messages = observer_->read(now, wall_ahead_s);
  const auto cost = observer_->kernel().cost();
  budget_.add(os::seconds_of(CLOCK_THREAD_CPUTIME_ID) - cpu_before,
              cost ? static_cast<double>(cost->bpf_ns) * 1e-9 : 0, os::monotonic_s());
  const bool awaited = spark_.awaits_first_look();
  observer_->set_spark(spark_.newest(messages), awaited);
  for (const auto& message : messages) os::log_warning("{}", message);
  for (const auto& message : progress_files_.follow(observer_->found(), observer_->generation(),
                                                    observer_->progress(), now, wall_ahead_s)) {
    os::log_warning("{}", message);
  }
}

std::optional<std::string> Senses::why_kernel_cannot_count(const Setup& setup) {
  const auto& root = setup.hierarchy.root;
  if (!setup.settings.ebpf) return "switched off by sampling.ebpf = false";
  if (!setup.own_host) return root.string() + " is not this kernel's own cgroup tree";
  // Only the root has no type. The programs would count cgroups that cannot be seen here.
  if (std::error_code ignored; std::filesystem::exists(root / "cgroup.type", ignored))
    return root.string() + " is not the root of the cgroup tree";
  return std::nullopt;
}

void Senses::follow_blame(double now) {
  if (!sampling_begun_ || !blame_.is_needed()) return;
  std::vector<std::string> messages;
  blame_.follow(observer_->snapshot().workloads, observer_->kernel().after_switch(), now, messages);
  for (const auto& message : messages) os::log_warning("{}", message);
}

void Senses::begin_sampling() {
  if (const auto why = why_kernel_cannot_count(setup_)) {
    observer_->use(KernelSampling::off(*why));
  } else {
    observer_->use(
        KernelSampling::start(setup_.hierarchy.root, setup_.options.sys_root, setup_.options.runtime_dir));
  }
  sampling_begun_ = true;
  for (const auto& way : observer_->kernel().ways()) {
    if (!way.available) os::log_info("{} by eBPF: {}", way.figure, way.detail);
  }
  // Of the kernel's types, which take some ten MiB, nothing is needed any more.
  os::release_start_memory();
}

void Senses::watch_pressure(sd_event* event, std::function<void()> rose) {
  pressure_.attach(event, [this, rose = std::move(rose)](const std::string& what) {
    os::log_debug("pressure on {}", what);
    if (!std::exchange(woken_, true)) ++woken_by_pressure_;
    rose();
  });
  follow_pressure();  // of the ticks that were
}

void Senses::watch_progress(sd_event* event, std::function<void()> before) {
  progress_files_.attach(event, [this, before = std::move(before)] {
    before();  // what a run that has just begun says is not the one's before
    for (const auto& message : progress_files_.process(observer_->found(), observer_->progress(),
                                                       setup_.clock.now(), setup_.clock.wall_ahead_s())) {
      os::log_warning("{}", message);
    }
  });
}

void Senses::detach() {
  pressure_.detach();
  progress_files_.detach();
}

double Senses::interval_s() const {
  return budget_.interval_s(setup_.settings.tick_s, setup_.settings.sampling_max_cpu);
}

}  // namespace berth::daemon
