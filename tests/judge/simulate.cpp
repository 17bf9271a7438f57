// SPDX-License-Identifier: Apache-2.0
// judge-simulation two-vcpus [--seconds S] [--seeds N] [--cfs]: simulates the configurations of two_vcpus.h,
// and prints one JSON line for each.
#include "tests/judge/loads.h"
#include "tests/judge/two_vcpus.h"

#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include <fmt/core.h>

namespace berth::judge {

namespace {

struct Options {
  double seconds = 60;
  std::uint64_t seeds = 5;
  Version version = Version::eevdf;
};

struct Outcome {
  double p99_ms = 0;       // the mean of the seeds
  double batch_cores = 0;  // likewise
};

Outcome simulate(const Configuration& it, Way way, const Options& options) {
  const auto places = shape(1, 1, 2, 1);
  Group service;
  service.per_thread = true;
  service.mask.set(0).set(1);
  Group batch = service;
  batch.idle = way == Way::idle_class;
  if (way == Way::own_vcpu) {
    service.mask.reset(1);
    batch.mask.reset(0);
  }
  Rules rules;
  rules.version = options.version;
  std::vector<BatchLoad> others;
  if (way != Way::alone) others.push_back({.group = 1, .threads = kBatchThreads});
  ServiceLoad load;
  load.cores = it.cores;
  load.work_s = it.work_ms * 1e-3;
  load.threads = it.threads;
  Outcome mean;
  for (std::uint64_t seed = 1; seed <= options.seeds; ++seed) {
    Simulation run(places, rules, {service, batch}, {load}, others, seed);
    run.run(static_cast<Time>(options.seconds * 1e9), kSecond);
    const auto seeds = static_cast<double>(options.seeds);
    mean.p99_ms += quantile(run.answers(0).times_s, 0.99) * 1e3 / seeds;
    mean.batch_cores += run.kernel().used(1).cpu_s / options.seconds / seeds;
  }
  return mean;
}

int two_vcpus(const Options& options) {
  for (const Configuration& it : kTwoVcpus) {
    const Outcome alone = simulate(it, Way::alone, options);
    const Outcome found = simulate(it, it.way, options);
    fmt::print(
        R"({{"use": {}, "work_ms": {}, "threads": {}, "way": "{}", "p99_ms": {:.4f}, "alone_ms": {:.4f}, "batch_cores": {:.3f}}})"
        "\n",
        it.cores, it.work_ms, it.threads, to_string(it.way), found.p99_ms, alone.p99_ms, found.batch_cores);
  }
  return 0;
}

int usage() {
  fmt::print(stderr, "usage: judge-simulation two-vcpus [--seconds S] [--seeds N] [--cfs]\n");
  return 2;
}

}  // namespace

}  // namespace berth::judge

int main(int argc, char** argv) {
  using namespace berth::judge;
  Options options;
  if (argc < 2 || std::string_view(argv[1]) != "two-vcpus") return usage();
  for (int i = 2; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--cfs") {
      options.version = Version::cfs;
    } else if (word == "--seconds" && i + 1 < argc) {
      options.seconds = std::strtod(argv[++i], nullptr);
    } else if (word == "--seeds" && i + 1 < argc) {
      options.seeds = std::strtoull(argv[++i], nullptr, 10);
    } else {
      return usage();
    }
  }
  if (!(options.seconds > 1) || options.seeds == 0) return usage();
  return two_vcpus(options);
}
