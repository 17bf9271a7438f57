// SPDX-License-Identifier: Apache-2.0
// judge-load [--seconds S] [--seed N]: runs the configurations of two_vcpus.h on this machine's kernel, on
// its first two vCPUs, and prints one JSON line for each, as judge-simulation does with that seed: both serve
// the same requests. It repeats a run in which other programs used the vCPUs, because a few percent of them
// double a p99. judge-load service USE WORK_MS THREADS
// [--seconds S] [--seed N]: such a service alone, on the vCPUs that it may use. judge-load batch THREADS:
// threads without end, until a signal ends them.
//
// Arrivals come from a thread with a real-time priority, as from a network card, so it needs root. A request
// is answered once its thread has had so much CPU time; the answer time counts from the moment at which the
// request was due.
#include "tests/judge/loads.h"
#include "tests/judge/two_vcpus.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <fstream>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/core.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <unistd.h>

namespace berth::judge {

namespace {

double seconds_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void sleep_until(double when) {
  timespec time{};
  time.tv_sec = static_cast<std::time_t>(when);
  time.tv_nsec = static_cast<long>((when - std::floor(when)) * 1e9);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) == EINTR) {
  }
}

constexpr double kWarmUp_s = 1;

void check(int error, const char* what) {
  if (error != 0) throw std::runtime_error(fmt::format("{}: {}", what, std::strerror(error)));
}

// CPU time of all programs since the boot, in seconds.
double busy_s() {
  std::ifstream file("/proc/stat");
  std::string name;
  double user = 0;
  double nice = 0;
  double system = 0;
  if (!(file >> name >> user >> nice >> system) || name != "cpu")
    throw std::runtime_error("/proc/stat: no line of all processors");
  return (user + nice + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

// Of the calling thread; none: where it may run already.
void stay_on(const std::vector<int>& cpus) {
  if (cpus.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(cpu, &set);
  check(pthread_setaffinity_np(pthread_self(), sizeof set, &set), "affinity");
}

void become(int policy, int priority) {
  sched_param param{};
  param.sched_priority = priority;
  check(pthread_setschedparam(pthread_self(), policy, &param), "scheduling policy");
}

// Nothing that a worker holds can delay the arrivals: neither does a network card wait for a program's lock.
// A worker that holds a lock may have to wait for its turn, and its group's idle class may run meanwhile.
class Service {
 public:
  Service(const Configuration& it, std::vector<int> cpus, double seconds, std::uint64_t seed) {
    std::mt19937_64 random = draws_of(seed, 0);
    std::exponential_distribution<double> draw(1);
    const double work_s = it.work_ms * 1e-3;
    for (double due_s = 0; due_s < seconds;) {
      due_s += draw(random) * work_s / it.cores;
      requests_.emplace_back(due_s, draw(random) * work_s);
    }
    if (sem_init(&wanted_, 0, 0) != 0) throw std::runtime_error("semaphore");
    for (int i = 0; i < it.threads; ++i) {
      workers_.emplace_back([this, cpus] {
        stay_on(cpus);
        work();
      });
    }
  }
  ~Service() {
    for (std::size_t i = 0; i < workers_.size(); ++i) sem_post(&wanted_);
    for (std::thread& worker : workers_) worker.join();
    sem_destroy(&wanted_);
  }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // Lets the requests come.
  void serve() {
    began_ = seconds_of(CLOCK_MONOTONIC);
    for (const Request& request : requests_) {
      sleep_until(began_ + request.due_s);
      sem_post(&wanted_);
    }
  }
  // Of those that were due after the warm-up and have been answered.
  double quantile_ms(double q, double warm_up) const {
    std::vector<double> times;
    for (const Request& request : requests_) {
      const double time = request.answered_s.load();
      if (time > 0 && request.due_s + time >= warm_up) times.push_back(time);
    }
    if (times.empty()) throw std::runtime_error("no request was answered");
    return quantile(times, q) * 1e3;
  }

 private:
  struct Request {
    Request(double due, double work) : due_s(due), work_s(work) {}
    double due_s;  // since the start
    double work_s;
    std::atomic<double> answered_s = 0;  // after it was due
  };

  void work() {
    while (true) {
      while (sem_wait(&wanted_) != 0) {
      }
      const std::size_t next = taken_.fetch_add(1);
      if (next >= requests_.size()) return;
      Request& request = requests_[next];
      const double end = seconds_of(CLOCK_THREAD_CPUTIME_ID) + request.work_s;
      while (seconds_of(CLOCK_THREAD_CPUTIME_ID) < end) {
      }
      request.answered_s = seconds_of(CLOCK_MONOTONIC) - began_ - request.due_s;
    }
  }

  std::deque<Request> requests_;
  std::atomic<std::size_t> taken_ = 0;
  std::atomic<double> began_ = 0;
  sem_t wanted_{};
  std::vector<std::thread> workers_;
};

void compute_until(const std::atomic<bool>& over) {
  while (!over.load(std::memory_order_relaxed)) {
  }
}

void serve(Service& service) {
  std::thread arrivals([&] {
    become(SCHED_FIFO, 1);
    service.serve();
  });
  arrivals.join();
}

Outcome run(const Configuration& it, Sharing way, double seconds, std::uint64_t seed) {
  const bool own = way == Sharing::own_vcpu;
  std::atomic<bool> over = false;
  std::atomic<double> used = 0;
  std::vector<std::thread> batch;
  for (int i = 0; way != Sharing::alone && i < kBatchThreads; ++i) {
    batch.emplace_back([&] {
      stay_on(own ? std::vector{1} : std::vector{0, 1});
      if (way == Sharing::idle_class) become(SCHED_IDLE, 0);
      compute_until(over);
      used += seconds_of(CLOCK_THREAD_CPUTIME_ID);
    });
  }
  Outcome outcome;
  {
    Service service(it, own ? std::vector{0} : std::vector{0, 1}, seconds, seed);
    const double others_s = busy_s() - seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    serve(service);
    outcome.others_cores = (busy_s() - seconds_of(CLOCK_PROCESS_CPUTIME_ID) - others_s) / seconds;
    outcome.p99_ms = service.quantile_ms(0.99, kWarmUp_s);
    over = true;
  }
  for (std::thread& thread : batch) thread.join();
  outcome.batch_cores = used / seconds;
  return outcome;
}

Outcome run_undisturbed(const Configuration& it, Sharing way, double seconds, std::uint64_t seed) {
  constexpr double kMostCores = 0.06;
  for (int tries = 0; tries < 10; ++tries) {
    const Outcome outcome = run(it, way, seconds, seed);
    if (outcome.others_cores < kMostCores) return outcome;
    fmt::print(stderr, "judge-load: other programs used {:.2f} vCPUs; once more\n", outcome.others_cores);
  }
  throw std::runtime_error("other programs disturbed each run; use a machine that does nothing else");
}

int all(double seconds, std::uint64_t seed) {
  for (const Configuration& it : kTwoVcpus) {
    const Outcome alone = run_undisturbed(it, Sharing::alone, seconds, seed);
    const Outcome found = run_undisturbed(it, it.way, seconds, seed);
    fmt::print("{}", line_of(it, alone, found));
    std::fflush(stdout);
  }
  return 0;
}

int serve_alone(const Configuration& it, double seconds, std::uint64_t seed) {
  Service service(it, {}, seconds, seed);
  serve(service);
  fmt::print(R"({{"p50_ms": {:.4f}, "p99_ms": {:.4f}}})"
             "\n",
             service.quantile_ms(0.5, kWarmUp_s), service.quantile_ms(0.99, kWarmUp_s));
  return 0;
}

int compute(int threads) {
  const std::atomic<bool> never = false;
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back([&] { compute_until(never); });
  compute_until(never);
  return 0;
}

int usage() {
  fmt::print(stderr,
             "usage: judge-load [service USE WORK_MS THREADS] [--seconds S] [--seed N] | batch THREADS\n");
  return 2;
}

int start(std::vector<std::string> words) {
  double seconds = 20;
  std::uint64_t seed = 1;
  while (words.size() >= 2 && words[words.size() - 2].substr(0, 2) == "--") {
    const std::string& option = words[words.size() - 2];
    if (option != "--seconds" && option != "--seed") return usage();
    if (option == "--seconds") seconds = std::strtod(words.back().c_str(), nullptr);
    if (option == "--seed") seed = std::strtoull(words.back().c_str(), nullptr, 10);
    words.resize(words.size() - 2);
  }
  if (!(seconds > 1)) return usage();
  if (words.empty()) return all(seconds, seed);
  const auto number = [&](std::size_t at) { return std::strtod(words[at].c_str(), nullptr); };
  if (words[0] == "service" && words.size() == 4 && number(1) > 0 && number(2) > 0 && number(3) >= 1)
    return serve_alone({number(1), number(2), static_cast<int>(number(3)), Sharing::alone}, seconds, seed);
  if (words[0] == "batch" && words.size() == 2 && number(1) >= 1) return compute(static_cast<int>(number(1)));
  return usage();
}

}  // namespace

}  // namespace berth::judge

int main(int argc, char** argv) {
  try {
    return berth::judge::start({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    fmt::print(stderr, "judge-load: {}\n", error.what());
    return 1;
  }
}
