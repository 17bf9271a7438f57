// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/policies/interference/exhaustive.h"

#include "tests/unit/policies/hosts.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

namespace berth::policies::naive {

namespace {

using Mask = unsigned;  // bit n: the n-th online vCPU

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kClose = 1e-7;

struct Item {
  Request request;
  Mask kept = 0;
  Mask may = 0;
  std::vector<Mask> regions;
  Mask at = 0;  // its place while placements are looked at
};

class Exhaustive {
 public:
  Exhaustive(const model::Snapshot& snapshot, const InterferenceSettings& settings) : settings_(settings) {
    const model::CpuSet given = testing::given_out(snapshot.topology, settings);
    for (const model::Cpu& cpu : snapshot.topology.cpus()) {
      if (!cpu.online) continue;
      if (given.contains(cpu.cpu)) usable_ |= Mask{1} << cpus_.size();
      core_.push_back(cpu.core);
      cpus_.push_back(cpu.cpu);
    }
    for (const model::Workload& w : snapshot.workloads) {
      if (w.workload_class != model::WorkloadClass::best_effort || w.usage.empty()) continue;
      double sum = 0;
      for (const auto& sample : w.usage) sum += sample.cpu_cores;
      be_use_ += sum / static_cast<double>(w.usage.size());
    }
    be_min_ = std::max(1, settings.be_min_cpus);
    for (Request& request : requests(snapshot, settings)) {
      Item item;
      item.kept = mask(request.kept);
      item.may = mask(request.may);
      for (const Cpus& region : request.regions) item.regions.push_back(mask(region));
      item.request = std::move(request);
      items_.push_back(std::move(item));
    }
  }

  Exhausted play_round(double now, double cooldown_s) {
    std::erase_if(items_, [](const Item& it) { return !it.request.runs || it.request.asked <= 0; });
    serve();
    const auto may_move = [&](const Item& it) {
      if (it.kept == 0 || it.request.resized) return false;
      const double age = now - it.request.pinned_at.value_or(kInfinite);
      return !(age >= 0 && age < cooldown_s);
    };
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      items_[i].at = items_[i].kept;
      if (items_[i].kept == 0 || may_move(items_[i])) open.push_back(i);
    }
    const auto most = static_cast<std::size_t>(settings_.max_moves);
    Exhausted result;
    result.least.assign(most + 1, kInfinite);
    std::vector<std::vector<Mask>> best(most + 1);
    each_placement(open, 0, [&] {
      std::size_t moves = 0;
      for (const Item& it : items_) moves += it.kept != 0 && it.at != it.kept ? 1 : 0;
      if (moves > most) return;
      const double total = score();
      if (total >= result.least[moves]) return;
      result.least[moves] = total;
      best[moves].clear();
      for (const Item& it : items_) best[moves].push_back(it.at);
    });
    for (std::size_t m = 1; m <= most; ++m) {
      if (result.least[m - 1] > result.least[m]) continue;
      result.least[m] = result.least[m - 1];
      best[m] = best[m - 1];
    }
    choose(result);
    for (std::size_t i = 0; i < items_.size(); ++i) {
      result.placed[items_[i].request.id] = cpus(best[result.moves][i]);
    }
    return result;
  }

  double least(const std::set<std::string>& ids) {
    std::erase_if(items_, [&](const Item& it) { return !ids.contains(it.request.id); });
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < items_.size(); ++i) open.push_back(i);
    double least = kInfinite;
    each_placement(open, 0, [&] { least = std::min(least, score()); });
    return least;
  }

 private:
  Mask mask(const Cpus& set) const {
    Mask bits = 0;
    for (std::size_t i = 0; i < cpus_.size(); ++i) bits |= set.contains(cpus_[i]) ? Mask{1} << i : 0;
    return bits;
  }
  Cpus cpus(Mask bits) const {
    Cpus set;
    for (std::size_t i = 0; i < cpus_.size(); ++i)
      if ((bits >> i & 1U) != 0) set.insert(cpus_[i]);
    return set;
  }
  static int count(Mask bits) { return std::popcount(bits); }

  Mask taken() const {
    Mask bits = 0;
    for (const Item& it : items_) bits |= it.at;
    return bits;
  }

  // Calls visit() with each way to place the items of `open` from an index on; all others stay.
  void each_placement(const std::vector<std::size_t>& open, std::size_t from,
                      const std::function<void()>& visit) {
    if (from == 0)
      for (const std::size_t i : open) items_[i].at = 0;
    if (from == open.size()) {
      visit();
      return;
    }
    Item& item = items_[open[from]];
    for (const Mask region : item.regions) {
      const Mask free = region & item.may & ~taken();
      // All subsets of the free ones.
      for (Mask some = free;; some = (some - 1) & free) {
        if (count(some) == item.request.asked) {
          item.at = some;
          each_placement(open, from + 1, visit);
          item.at = 0;
        }
        if (some == 0) break;
      }
    }
  }

  // Removes those without a pin for which there is no room beside all earlier ones.
  void serve() {
    std::vector<std::size_t> served;
    for (Item& it : items_) it.at = it.kept;
    int owned = 0;
    for (const Item& it : items_) owned += count(it.kept);
    std::set<std::string> out;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (items_[i].kept != 0) continue;
      served.push_back(i);
      bool room = false;
      if (count(usable_) - owned - items_[i].request.asked >= be_min_)
        each_placement(served, 0, [&] { room = true; });
      if (room) {
        owned += items_[i].request.asked;
      } else {
        served.pop_back();
        out.insert(items_[i].request.id);
      }
    }
    std::erase_if(items_, [&](const Item& it) { return out.contains(it.request.id); });
  }

  void choose(Exhausted& result) const {
    const std::vector<double>& f = result.least;
    while (true) {
      std::size_t next = result.moves;
      double most = 0;
      for (std::size_t m = result.moves + 1; m < f.size(); ++m) {
        const double gain = f[result.moves] - f[m];
        const double spare = gain - settings_.min_gain * f[result.moves];
        if (gain > 0 && std::abs(spare) < kClose) result.close = true;
        if (gain <= kClose / 10 || spare < 0) continue;
        const double each = gain / static_cast<double>(m - result.moves);
        if (next != result.moves && std::abs(each - most) < kClose) result.close = true;
        if (each <= most + kClose / 10) continue;
        next = m;
        most = each;
      }
      if (next == result.moves) return;
      result.moves = next;
    }
  }

  Mask core_of(std::size_t c) const {
    Mask bits = 0;
    for (std::size_t d = 0; d < core_.size(); ++d) bits |= core_[d] == core_[c] ? Mask{1} << d : 0;
    return bits;
  }
  Mask cores_of(Mask bits) const {
    Mask all = 0;
    for (std::size_t c = 0; c < core_.size(); ++c)
      if ((bits >> c & 1U) != 0) all |= core_of(c);
    return all;
  }

  Mask pool() const {
    const Mask rest = usable_ & ~taken();
    const Mask spared = rest & ~cores_of(taken());
    return settings_.be_avoid_siblings && count(spared) >= be_min_ ? spared : rest;
  }

  double score() const {
    double sum = 0;
    for (const Item& it : items_)
      if (it.at != 0)
        sum += count(it.at) * (settings_.weighting == Weighting::request ? request(it) : overlap(it));
    return sum / static_cast<double>(cpus_.size());
  }

  static Mask home(const Item& item) {
    for (const Mask region : item.regions)
      if ((item.at & ~region) == 0) return region;
    return 0;
  }

  double overlap(const Item& item) const {
    const Mask be = pool();
    const double use = std::min(1.0, be_use_ / count(be));
    const auto u = [&](std::size_t c) {
      for (const Item& it : items_)
        if ((it.at >> c & 1U) != 0) return it.request.u;
      return (be >> c & 1U) != 0 ? use : 0.0;
    };
    double sc = 0;
    double ss = 0;
    const Mask outside = home(item) & ~cores_of(item.at);
    for (std::size_t c = 0; c < core_.size(); ++c) {
      if ((outside >> c & 1U) != 0) ss += u(c) / count(outside);
      if ((item.at >> c & 1U) == 0) continue;
      for (std::size_t d = 0; d < core_.size(); ++d)
        if (d != c && core_[d] == core_[c]) sc += u(d) / count(item.at);
    }
    return item.request.k1 * sc + item.request.k2 * ss;
  }

  double request(const Item& item) const {
    double on_core = 0;
    double on_core_weight = 0;
    double near = 0;
    double near_weight = 0;
    for (const Item& other : items_) {
      if (&other == &item || other.at == 0) continue;
      const double weight = count(other.at);
      if ((cores_of(item.at) & other.at) != 0) {
        on_core += weight * other.request.u;
        on_core_weight += weight;
      } else if ((home(item) & other.at) != 0) {
        near += weight * other.request.u;
        near_weight += weight;
      }
    }
    const double sc = on_core_weight > 0 ? on_core / on_core_weight : 0;
    const double ss = near_weight > 0 ? near / near_weight : 0;
    return item.request.k1 * sc + item.request.k2 * ss;
  }

  const InterferenceSettings& settings_;
  std::vector<int> cpus_;
  std::vector<int> core_;
  Mask usable_ = 0;
  double be_use_ = 0;
  int be_min_ = 1;
  std::vector<Item> items_;
};

}  // namespace

Exhausted play_round(const model::Snapshot& snapshot, const InterferenceSettings& settings,
                     double repin_cooldown_s) {
  return Exhaustive(snapshot, settings).play_round(snapshot.time, repin_cooldown_s);
}

double least_score(const model::Snapshot& snapshot, const InterferenceSettings& settings,
                   const std::set<std::string>& ids) {
  return Exhaustive(snapshot, settings).least(ids);
}

}  // namespace berth::policies::naive
