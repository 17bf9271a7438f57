// SPDX-License-Identifier: Apache-2.0
#include "tests/judge/hindsight.h"

#include "tests/judge/berth.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <utility>

namespace berth::judge {

namespace {

// EMU that a share of windows in violation costs: the search goes on from the best by each.
constexpr double kPrices[] = {0.6, 2};
constexpr int kRounds = 2;

class Trials {
 public:
  Trials(const Host& host, const Alone& alone, const Rules& rules, Time length, std::uint64_t seed)
      : host_(host), alone_(alone), rules_(rules), length_(length), seed_(seed) {
    for (int cpu = 0; cpu < host.cpus(); ++cpu) {
      const auto domain = static_cast<std::size_t>(host.places[cpu].domain);
      if (domains_.size() <= domain) domains_.resize(domain + 1);
      domains_[domain].push_back(cpu);
    }
  }

  int most() const { return static_cast<int>(domains_.front().size()); }
  int step() const { return most() > 8 && domains_.size() > 1 ? 4 : 2; }
  std::vector<int> all_the_same(int vcpus) const {
    return std::vector<int>(domains_.size() * host_.batch.size(), vcpus);
  }

  const Figures& figures(const std::vector<int>& vcpus) {
    auto found = known_.find(vcpus);
    if (found == known_.end())
      found = known_.emplace(vcpus, judge(host_, way(vcpus), alone_, rules_, length_, seed_)).first;
    return found->second;
  }

  void climb(std::vector<int> vcpus, double price) {
    const auto value = [&](const std::vector<int>& it) {
      return figures(it).emu - price * figures(it).violations;
    };
    for (int round = 0; round < kRounds; ++round) {
      for (int& number : vcpus) {
        for (const int by : {2 * step(), step(), -step(), -2 * step()}) {
          for (;;) {
            const double now = value(vcpus);
            const int before = std::exchange(number, number + by);
            if (number >= 0 && number <= most() && value(vcpus) > now) continue;
            number = before;
            break;
          }
        }
      }
    }
  }

  std::vector<FixedPins> take() const {
    std::vector<FixedPins> all;
    for (const auto& [vcpus, figures] : known_) all.push_back({.vcpus = vcpus, .figures = figures});
    return all;
  }

 private:
  Way way(const std::vector<int>& vcpus) const {
    const std::size_t groups = host_.batch.size();
    std::vector<CpuMask> masks(groups);
    for (std::size_t i = 0; i < vcpus.size(); ++i) {
      const std::vector<int>& domain = domains_[i / groups];
      for (int k = 0; k < vcpus[i]; ++k)
        masks[i % groups].set(static_cast<std::size_t>(domain[domain.size() - 1 - k]));
    }
    for (CpuMask& mask : masks) {
      if (mask.none()) mask.set(static_cast<std::size_t>(host_.cpus()) - 1);
    }
    return {.name = "fixed pins",
            .begin = same_priority,
            .period = kSecond,
            .make = [masks](const Host& host) -> Way::Change {
              const auto berth = std::make_shared<Berth>(host, policies::InterferenceSettings());
              berth->pin_batch(masks);
              return [berth](Kernel& kernel, const std::vector<Reading>& readings) {
                berth->decide(kernel, readings);
              };
            }};
  }

  const Host& host_;
  const Alone& alone_;
  Rules rules_;
  Time length_;
  std::uint64_t seed_;
  std::vector<std::vector<int>> domains_;  // their vCPUs
  std::map<std::vector<int>, Figures> known_;
};

}  // namespace

std::vector<FixedPins> try_fixed_pins(const Host& host, const Alone& alone, const Rules& rules, Time length,
                                      std::uint64_t seed) {
  Trials trials(host, alone, rules, length, seed);
  for (const double price : kPrices) {
    std::vector<int> best;
    double most = 0;
    for (int vcpus = trials.step(); vcpus <= trials.most(); vcpus += trials.step()) {
      const Figures& it = trials.figures(trials.all_the_same(vcpus));
      if (!best.empty() && it.emu - price * it.violations <= most) continue;
      most = it.emu - price * it.violations;
      best = trials.all_the_same(vcpus);
    }
    trials.climb(best, price);
  }
  return trials.take();
}

}  // namespace berth::judge
