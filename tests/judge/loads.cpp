// SPDX-License-Identifier: Apache-2.0
#include "tests/judge/loads.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace berth::judge {

namespace {

constexpr Time kForEver = 1'000'000 * kSecond;
constexpr Time kLook = 1;                         // ns, of a thread that looks for a request
constexpr std::int64_t kBrings = -1'000'000'000;  // and less: real-time threads, one a service

Time nanoseconds(double seconds) { return std::max<Time>(1, std::llround(seconds * 1e9)); }

double exponential(std::mt19937_64& random, double mean) {
  return std::exponential_distribution<double>(1)(random) * mean;
}

}  // namespace

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  const auto at = static_cast<std::size_t>(std::clamp(std::ceil(q * static_cast<double>(values.size())) - 1,
                                                      0.0, static_cast<double>(values.size() - 1)));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

Simulation::Simulation(std::vector<CpuPlace> places, const Rules& rules, const std::vector<Group>& groups,
                       const std::vector<ServiceLoad>& services, const std::vector<BatchLoad>& batch,
                       std::uint64_t seed, Kernel::Speed speed)
    : kernel_(
          std::move(places), rules, std::move(speed), [this](int thread) { return done(thread); },
          [this](std::int64_t what) { timer(what); }),
      batch_(batch),
      random_(seed * 7919 + 1) {
  for (const Group& group : groups) kernel_.add_group(group);
  for (std::size_t i = 0; i < services.size(); ++i) {
    services_.push_back({.load = services[i],
                         .random = draws_of(seed, i),
                         .idle = {},
                         .coming = {},
                         .queue = {},
                         .answers = {}});
    for (int k = 0; k < services[i].threads; ++k) {
      services_.back().idle.push_back(kernel_.add_thread(services[i].group));
      workers_.push_back({.service = static_cast<int>(i)});
    }
    const double gap_s = services[i].burst * services[i].work_s / services[i].cores;
    kernel_.at(nanoseconds(exponential(services_.back().random, gap_s)), static_cast<std::int64_t>(i));
  }
  for (std::size_t i = 0; i < batch.size(); ++i) {
    for (int k = 0; k < batch[i].threads; ++k) {
      workers_.push_back({.batch = static_cast<int>(i)});
      const int thread = kernel_.add_thread(batch[i].group);
      // They begin one after the other, as programs do.
      kernel_.at(kMicrosecond * (thread + 1), -1 - thread);
    }
  }
}

Time Simulation::draw_work(Service& service) {
  const double mean = service.load.work_s;
  if (service.load.work == ServiceLoad::Work::exponential)
    return nanoseconds(exponential(service.random, mean));
  const double variance = std::log(1 + service.load.spread * service.load.spread);
  std::lognormal_distribution<double> draw(std::log(mean) - variance / 2, std::sqrt(variance));
  return nanoseconds(draw(service.random));
}

void Simulation::arrive(std::size_t number) {
  Service& service = services_[number];
  int count = 1;
  if (service.load.burst > 1)
    count += std::geometric_distribution<int>(1 / service.load.burst)(service.random);
  for (int i = 0; i < count; ++i) {
    const Request request{kernel_.now(), draw_work(service)};
    ++service.answers.arrived;
    if (service.load.bringer < 0) {
      bring(number, request);
      continue;
    }
    service.coming.push_back(request);
    kernel_.take(service.load.bringer, service.load.bringing, kBrings - static_cast<std::int64_t>(number));
  }
  const double gap_s = service.load.burst * service.load.work_s / service.load.cores;
  kernel_.at(kernel_.now() + nanoseconds(exponential(service.random, gap_s)),
             static_cast<std::int64_t>(number));
}

void Simulation::bring(std::size_t number, Request request) {
  Service& service = services_[number];
  service.queue.push_back(request);
  if (service.idle.empty()) return;
  const int thread = service.idle.front();
  service.idle.pop_front();
  kernel_.wake(thread, kLook);
}

std::optional<Time> Simulation::done(int thread) {
  Worker& worker = workers_[thread];
  if (worker.service < 0) {
    const BatchLoad& load = batch_[worker.batch];
    if (load.run_s == 0) return kForEver;
    kernel_.at(kernel_.now() + nanoseconds(exponential(random_, load.pause_s)), -1 - thread);
    return std::nullopt;
  }
  Service& service = services_[worker.service];
  if (worker.arrived && kernel_.now() >= warm_up_)
    service.answers.times_s.push_back(static_cast<double>(kernel_.now() - *worker.arrived) * 1e-9);
  worker.arrived.reset();
  if (service.queue.empty()) {
    service.idle.push_back(thread);
    return std::nullopt;
  }
  const Request request = service.queue.front();
  service.queue.pop_front();
  worker.arrived = request.arrived;
  return request.work;
}

void Simulation::timer(std::int64_t what) {
  const auto services = static_cast<std::int64_t>(services_.size());
  if (what <= kBrings) {
    auto& coming = services_[static_cast<std::size_t>(kBrings - what)].coming;
    const Request request = coming.front();
    coming.pop_front();
    bring(static_cast<std::size_t>(kBrings - what), request);
    return;
  }
  if (what >= services) {
    const Hook& hook = hooks_[static_cast<std::size_t>(what - services)];
    hook.what();
    kernel_.at(kernel_.now() + hook.period, what);
    return;
  }
  if (what >= 0) {
    arrive(static_cast<std::size_t>(what));
    return;
  }
  const int thread = static_cast<int>(-1 - what);
  const BatchLoad& load = batch_[workers_[thread].batch];
  kernel_.wake(thread, load.run_s == 0 ? kForEver : nanoseconds(exponential(random_, load.run_s)));
}

void Simulation::each(Time period, std::function<void()> what) {
  hooks_.push_back({period, std::move(what)});
  kernel_.at(kernel_.now() + period, static_cast<std::int64_t>(services_.size() + hooks_.size() - 1));
}

void Simulation::run(Time length, Time warm_up) {
  warm_up_ = kernel_.now() + warm_up;
  kernel_.run_until(kernel_.now() + length);
}

}  // namespace berth::judge
