// SPDX-License-Identifier: Apache-2.0
// Services and batch work on a simulated host.
#pragma once

#include "tests/judge/kernel.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <random>
#include <vector>

namespace berth::judge {

// The draws of a service's requests: in turn, the time until the next one and its work.
inline std::mt19937_64 draws_of(std::uint64_t seed, std::size_t service) {
  return std::mt19937_64(seed * 7919 + 17 * (service + 2));
}

// Requests come by themselves, whether the former ones are answered or not. They wait in one queue. A request
// wakes the thread that has slept longest, as a condition variable does (futex_wake follows the order of
// those that wait). A thread takes a request when it runs, and another one may have taken it until then.
struct ServiceLoad {
  int group = 0;
  double cores = 0.4;    // the mean use
  double work_s = 1e-3;  // the mean of a request, alone
  int threads = 1;
  // Of the work of a request: the standard deviation over the mean of a log-normal distribution; 1:
  // exponential; 0: always the same.
  enum class Work { exponential, lognormal } work = Work::exponential;
  double spread = 1;
  double burst = 1;  // the mean number of requests that come at once
  // A real-time thread on this vCPU brings the requests, in so much time for each; -1: none, they are there.
  int bringer = -1;
  Time bringing = 0;
};

// Threads that compute without end, or in stretches with pauses.
struct BatchLoad {
  int group = 0;
  int threads = 1;
  double run_s = 0;  // the mean of a stretch, exponential; 0: without end
  double pause_s = 0;
};

// The answer times of a service, in seconds, in order of the arrivals' ends.
struct Answers {
  std::vector<double> times_s;
  std::uint64_t arrived = 0;
};
// The value that the share `q` of the values does not exceed; 0 of none.
double quantile(std::vector<double> values, double q);

class Simulation {
 public:
  // `speed`: see Kernel. Loads refer to the groups by their order.
  Simulation(
      std::vector<CpuPlace> places, const Rules& rules, const std::vector<Group>& groups,
      const std::vector<ServiceLoad>& services, const std::vector<BatchLoad>& batch, std::uint64_t seed,
      Kernel::Speed speed = [](int, int, int) { return 1.0; });
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  // Calls `what` each `period` from now on.
  void each(Time period, std::function<void()> what);
  // Answers that come before `warm_up` are not counted.
  void run(Time length, Time warm_up = 0);
  const Answers& answers(std::size_t service) const { return services_[service].answers; }
  Kernel& kernel() { return kernel_; }
  const Kernel& kernel() const { return kernel_; }

 private:
  struct Request {
    Time arrived;
    Time work;
  };
  struct Service {
    ServiceLoad load;
    std::mt19937_64 random;  // of its own, so that its requests are the same beside any other load
    std::deque<int> idle;    // threads; the one that has slept longest is woken first
    std::deque<Request> coming;
    std::deque<Request> queue;
    Answers answers;
  };
  struct Worker {
    int service = -1;  // -1: batch
    int batch = -1;
    std::optional<Time> arrived{};  // of the request that it works on
  };

  Time draw_work(Service& service);
  void arrive(std::size_t service);
  void bring(std::size_t service, Request request);
  std::optional<Time> done(int thread);
  void timer(std::int64_t what);

  Kernel kernel_;
  std::vector<Service> services_;
  std::vector<BatchLoad> batch_;
  std::mt19937_64 random_;
  std::vector<Worker> workers_;  // by thread
  struct Hook {
    Time period;
    std::function<void()> what;
  };
  std::vector<Hook> hooks_;
  Time warm_up_ = 0;
};

}  // namespace berth::judge
