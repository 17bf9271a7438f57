// SPDX-License-Identifier: Apache-2.0
// Let f(m) be the least total with at most m standing tenants moved; newcomers are free to be anywhere. f(0)
// places the newcomers. Then the number of moves is chosen: the one with the largest gain for each move, if
// the gain is at least min_gain. From there on, more moves are added by the same rule, as long as they gain
// enough.
//
// On small nodes f(m) is exact: branch and bound for every set of m tenants. On others, f(m) is the best of
// these: one more tenant moves after the best m - 1 moves, or two more exchange vCPUs after the best m - 2.
#include "policies/vcpus/optimal/round.h"

#include "policies/vcpus/optimal/improve.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

namespace berth::policies::optimal {

namespace {

class RoundPlayer {
 public:
  RoundPlayer(const Ground& ground, const std::vector<int>& newcomers, const std::vector<int>& movable,
              double bound, Work& work)
      : ground_(ground),
        settings_(ground.problem().settings),
        newcomers_(newcomers),
        movable_(movable),
        bound_(bound),
        work_(work),
        layout_(make_layout(ground)),
        exchanges_(*layout_) {}

  Round play(const Places& start) {
    standing_ = start;
    layout_->set(start);
    bool proven = place_newcomers();
    Round round;
    round.unmoved = best_.front().total;
    const int most = std::min(settings_.max_moves, static_cast<int>(movable_.size()));
    round.searched = most > 0 && worthwhile(best_.front().total, bound_) && weigh_gains(most);
    if (round.searched) proven = try_moves(most) && proven;
    round.result = best_[choose()];
    for (const int tenant : movable_) {
      if (moved(tenant, round.result.places)) round.moved.push_back(tenant);
    }
    round.proven = proven;
    return round;
  }

 private:
  // Whether the fall from one total to another is worth moves.
  bool worthwhile(double from, double to) const {
    return from - to > kTieTotal && from - to >= settings_.min_gain * from;
  }

  bool moved(int tenant, const Places& places) const {
    std::vector<int> before = standing_[tenant].cpus;
    std::vector<int> after = places[tenant].cpus;
    std::sort(before.begin(), before.end());
    std::sort(after.begin(), after.end());
    return before != after;
  }

  // Learns the most that the move of each tenant may gain. Newcomers may make way, so all of theirs count.
  // False where no set of moves can gain enough.
  bool weigh_gains(int most) {
    if (!newcomers_.empty()) layout_->set(best_.front().places);
    gains_ = layout_->most_gains();
    std::vector<double> sorted;
    for (const int tenant : movable_) sorted.push_back(gains_[tenant]);
    std::sort(sorted.rbegin(), sorted.rend());
    largest_gains_.assign(1, 0.0);
    for (const int tenant : newcomers_) largest_gains_.front() += gains_[tenant];
    for (int i = 0; i < most; ++i) largest_gains_.push_back(largest_gains_.back() + sorted[i]);
    return may_gain(0, most);
  }

  // Whether moves that gain `gain` at most, `more` others and the newcomers may gain enough together.
  bool may_gain(double gain, int more) const {
    const double from = best_.front().total;
    return worthwhile(from, from - gain - largest_gains_[more]);
  }

  // Finds f(0). True where it is exact.
  bool place_newcomers() {
    for (const int tenant : newcomers_) exchanges_.open(tenant);
    if (!newcomers_.empty()) improve(newcomers_, *layout_, exchanges_, work_);
    best_.push_back({.places = layout_->places(), .total = layout_->total()});
    if (newcomers_.empty() || best_.front().total - bound_ < kTieTotal) return true;
    return prove(newcomers_, best_.front());
  }

  // Branch and bound with these open, with at most a third of the work that is left.
  bool prove(const std::vector<int>& open, Placed& best) {
    if (!is_small(ground_, best.places, open)) return false;
    Work part(work_.left() / 3);
    const double before = part.left();
    const bool proven = solve_exactly(ground_, open, best, part);
    work_.spend(before - part.left());
    return proven;
  }

  // Finds f(1) to f(most). True where all of them are exact.
  bool try_moves(int most) {
    for (int count = 1; count <= most; ++count) {
      Placed next = best_.back();
      move_one_more(best_[static_cast<std::size_t>(count) - 1], most - 1, next);
      if (count > 1) exchange_two_more(best_[static_cast<std::size_t>(count) - 2], most - 2, next);
      best_.push_back(std::move(next));
    }
    bool proven = true;
    for (int count = 1; count <= most && proven; ++count) {
      std::vector<int> open = newcomers_;
      proven = prove_sets(count, 0, open);
    }
    for (std::size_t count = 1; count < best_.size(); ++count) {
      if (best_[count - 1].total < best_[count].total) best_[count] = best_[count - 1];
    }
    return proven;
  }

  // Branch and bound for each set of `count` movable tenants from an index on, and the newcomers.
  bool prove_sets(int count, std::size_t from, std::vector<int>& open) {
    if (count == 0) {
      const std::size_t moves = open.size() - newcomers_.size();
      // The others stay where they stand.
      Placed best{.places = standing_, .total = best_[moves].total};
      for (const int tenant : newcomers_) best.places[tenant] = best_.front().places[tenant];
      const double before = best.total;
      if (!prove(open, best)) return false;
      if (best.total < before) best_[moves] = std::move(best);
      return true;
    }
    for (std::size_t i = from; i + static_cast<std::size_t>(count) <= movable_.size(); ++i) {
      open.push_back(movable_[i]);
      const bool proven = prove_sets(count - 1, i + 1, open);
      open.pop_back();
      if (!proven) return false;
    }
    return true;
  }

  // Opens the tenants that are moved in a placement, and the newcomers; closes all others.
  void reopen(const Places& places) {
    for (const int tenant : movable_) {
      if (moved(tenant, places)) {
        exchanges_.open(tenant);
      } else {
        exchanges_.close(tenant);
      }
    }
  }

  void keep_better(Placed& best) const {
    if (layout_->total() < best.total - kTieTotal)
      best = {.places = layout_->places(), .total = layout_->total()};
  }

  void move_one_more(const Placed& from, int others, Placed& best) {
    layout_->set(from.places);
    reopen(from.places);
    for (const int tenant : movable_) {
      if (moved(tenant, from.places) || !may_gain(gains_[tenant], others) || work_.left() <= 0) continue;
      exchanges_.open(tenant);
      if (descend({tenant}, *layout_, exchanges_, work_)) {
        if (!newcomers_.empty()) descend(newcomers_, *layout_, exchanges_, work_);
        keep_better(best);
        layout_->set(from.places);
      }
      exchanges_.close(tenant);
    }
    close_all();
  }

  // Two that are not moved yet give each other vCPUs, in every way that leaves them whole.
  void exchange_two_more(const Placed& from, int others, Placed& best) {
    layout_->set(from.places);
    reopen(from.places);
    std::vector<Exchange> pairs;
    std::vector<Exchange> best_pairs;
    double least = best.total;
    for (std::size_t i = 0; i < movable_.size(); ++i) {
      if (moved(movable_[i], from.places)) continue;
      exchanges_.open(movable_[i]);
      for (std::size_t j = i + 1; j < movable_.size(); ++j) {
        if (moved(movable_[j], from.places) || ground_.kind(movable_[i]) == ground_.kind(movable_[j]))
          continue;
        if (!may_gain(gains_[movable_[i]] + gains_[movable_[j]], others)) continue;
        exchanges_.open(movable_[j]);
        // Places do not change here: each exchange is taken back.
        for (const int a : from.places[movable_[i]].cpus) {
          for (const int b : from.places[movable_[j]].cpus) {
            if (!exchanges_.bring(a, b, 0, pairs)) continue;
            if (!work_.spend(layout_->cost() * static_cast<double>(pairs.size()))) continue;
            layout_->exchange(pairs);
            if (layout_->total() < least - kTieTotal) {
              least = layout_->total();
              best_pairs = pairs;
            }
            layout_->exchange(pairs);
          }
        }
        exchanges_.close(movable_[j]);
      }
      exchanges_.close(movable_[i]);
    }
    if (!best_pairs.empty()) {
      layout_->exchange(best_pairs);
      reopen(layout_->places());
      std::vector<int> open = newcomers_;
      for (const int tenant : movable_) {
        if (exchanges_.is_open(tenant)) open.push_back(tenant);
      }
      std::sort(open.begin(), open.end());
      descend(open, *layout_, exchanges_, work_);
      keep_better(best);
    }
    close_all();
  }

  void close_all() {
    for (const int tenant : movable_) exchanges_.close(tenant);
  }

  std::size_t choose() const {
    std::size_t at = 0;
    while (true) {
      std::size_t next = at;
      double most = 0;
      for (std::size_t count = at + 1; count < best_.size(); ++count) {
        if (!worthwhile(best_[at].total, best_[count].total)) continue;
        const double gain = (best_[at].total - best_[count].total) / static_cast<double>(count - at);
        if (next != at && gain <= most + kTieTotal) continue;
        next = count;
        most = gain;
      }
      if (next == at) return at;
      at = next;
    }
  }

  const Ground& ground_;
  const InterferenceSettings& settings_;
  const std::vector<int>& newcomers_;
  const std::vector<int>& movable_;
  double bound_;
  Work& work_;
  std::unique_ptr<Layout> layout_;
  Exchanges exchanges_;
  Places standing_;
  std::vector<Placed> best_;           // by number of moves
  std::vector<double> gains_;          // by tenant
  std::vector<double> largest_gains_;  // of newcomers, and of as many of the largest as the index says
};

}  // namespace

Round play_round(const Ground& ground, const Places& start, const std::vector<int>& newcomers,
                 const std::vector<int>& movable, double bound, Work& work) {
  return RoundPlayer(ground, newcomers, movable, bound, work).play(start);
}

}  // namespace berth::policies::optimal
