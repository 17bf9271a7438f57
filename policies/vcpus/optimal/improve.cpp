// SPDX-License-Identifier: Apache-2.0
#include "policies/vcpus/optimal/improve.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace berth::policies::optimal {

namespace {

// splitmix64 (Steele, Lea and Flood, 2014).
class Draws {
 public:
  int below(int limit) {
    std::uint64_t value = (state_ += 0x9e3779b97f4a7c15U);
    value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
    value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
    return static_cast<int>((value ^ (value >> 31U)) % static_cast<std::uint64_t>(limit));
  }

 private:
  std::uint64_t state_ = 0x6265727468U;
};

double cost_of(const std::vector<Exchange>& pairs, const Layout& layout) {
  return layout.cost() * static_cast<double>(pairs.size());
}

// Makes the exchange, and takes it back where it does not change the total by less than `most`.
bool accept(const std::vector<Exchange>& pairs, double most, Layout& layout, double& total) {
  layout.exchange(pairs);
  const double after = layout.total();
  if (after - total < most) {
    total = after;
    return true;
  }
  layout.exchange(pairs);
  return false;
}

// One round over all exchanges; whether any helped.
bool descend_once(const std::vector<int>& tenants, const std::vector<int>& available,
                  const std::vector<char>& listed, Layout& layout, Exchanges& exchanges, Work& work) {
  const Places& places = layout.places();
  std::vector<Exchange> pairs;
  double total = layout.total();
  bool helped = false;
  for (const int tenant : tenants) {
    for (std::size_t slot = 0; slot < places[tenant].cpus.size(); ++slot) {
      for (const int to : available) {
        const int from = places[tenant].cpus[slot];
        const int other = layout.owner(to);
        // A pair of which both are in the list is looked at from one side only.
        if (other > tenant && listed[other] != 0 && places[other].cpus.size() == 1) continue;
        if (!exchanges.bring(from, to, 0, pairs)) continue;
        // Whole tenants change places alike, whichever of their vCPUs stands for them.
        if (pairs.size() > 1 && (slot > 0 || (other >= 0 && places[other].cpus.front() != to))) continue;
        if (!work.spend(cost_of(pairs, layout))) return helped;
        helped = accept(pairs, -kTieTotal, layout, total) || helped;
      }
    }
  }
  return helped;
}

}  // namespace

bool descend(const std::vector<int>& tenants, Layout& layout, Exchanges& exchanges, Work& work) {
  const std::vector<int> available = exchanges.available();
  std::vector<char> listed(layout.places().size(), 0);
  for (const int tenant : tenants) listed[tenant] = 1;
  bool helped = false;
  while (work.left() > 0 && descend_once(tenants, available, listed, layout, exchanges, work)) helped = true;
  return helped;
}

void improve(const std::vector<int>& tenants, Layout& layout, Exchanges& exchanges, Work& work) {
  const Node& node = layout.ground().node();
  const std::vector<int> available = exchanges.available();
  std::vector<char> in_reach(static_cast<std::size_t>(node.size()), 0);
  for (const int position : available) in_reach[position] = 1;
  int vcpus = 0;
  for (const int tenant : tenants) vcpus += static_cast<int>(layout.places()[tenant].cpus.size());

  const double before = layout.total();
  const Places start = layout.places();
  const double tries =
      std::min(0.6 * work.left(), 8.0 * layout.cost() * vcpus * static_cast<double>(available.size()));
  const double threshold = 0.3 * before / node.size();
  Draws draws;
  std::vector<Exchange> pairs;
  double total = before;
  Work wandering(tries);
  while (vcpus > 0 && wandering.spend()) {
    const double left = wandering.left() / tries;
    const int tenant = tenants[draws.below(static_cast<int>(tenants.size()))];
    const std::vector<int>& cpus = layout.places()[tenant].cpus;
    const int from = cpus[draws.below(static_cast<int>(cpus.size()))];
    int to = available[draws.below(static_cast<int>(available.size()))];
    if (draws.below(2) == 0) {
      const std::vector<int>& near = node.region(layout.places()[tenant].region).window;
      to = near[draws.below(static_cast<int>(near.size()))];
      if (in_reach[to] == 0) continue;
    }
    if (!exchanges.bring(from, to, draws.below(node.size()), pairs)) continue;
    wandering.spend(cost_of(pairs, layout) - 1);
    accept(pairs, threshold * left * left * left, layout, total);
  }
  work.spend(tries);
  if (layout.total() > before - kTieTotal) layout.set(start);
  descend(tenants, layout, exchanges, work);
}

}  // namespace berth::policies::optimal
