// SPDX-License-Identifier: Apache-2.0
// The optimal search: how it works, and why its bound holds.
//
// The search serves all instances together, not one after the other. It minimises score_node, the sum of r
// times the score over all instances, divided by the number of vCPUs. An instance's score grows with the
// pressure on the sibling threads of its vCPUs, and with the pressure in the rest of its domain. So there are
// two questions at once. Who shares a core with whom? Who shares a domain with whom? Both are hard to answer
// exactly: the first one alone is a matching, the second one a partition into sets with the least sum of
// products.
//
// Some places are no question. An instance that was admitted has the place that it was told, and one that is
// grown or near its GPUs does not move. To this search they stand like any other pin.
//
// A round has these steps:
//
//  1. The window search places the new instances. Its placement is the first incumbent, so that the result is
//     never worse. Where it leaves an instance out for which there is room, packing.cpp finds places for all.
//  2. bound.cpp computes a lower bound of the score of every placement of these instances. It relaxes the
//     problem until both questions have an exact answer. It forgets which vCPU is where, and keeps the number
//     of vCPUs of each kind. The price of sharing cores is then at least that of the cheapest pairing of all
//     vCPUs. A dual of a transport problem proves that price: any prices do that no pair exceeds. The price
//     of sharing domains is a sum of products A * S, of what the instances of a domain pay for pressure, and
//     its pressure. A product is a difference of two squares. One is least if all domains are alike, the
//     other one greatest if they differ as much as sorting can make them. bound.cpp has the details.
//  3. round.cpp improves the places of the new instances by exchanges of vCPUs (improve.cpp). The score after
//     an exchange costs as little as the cores that it touches (layout_overlap.cpp, layout_request.cpp). On
//     small nodes branch and bound proves the result, or finds a better one (exact.cpp).
//  4. Standing instances move only if that pays: if the score falls by min_gain. The bound, or what the moves
//     of single instances can gain at most, mostly shows that no move can. Then the round ends here, and
//     costs no more than the score and the bound. So no memory of earlier rounds is needed.
//  5. Pending instances get the best window, one after the other. That is the place that admission tells.
//  6. The window's placement counts instead where it is better. Only pending instances can bring that about.
//
// All of this is deterministic. There is no clock. The budget is an amount of work (work.h), and every loop
// that may be long spends it. The incumbent is a complete placement at every moment, so the search can end at
// any.
#include "model/count_text.h"
#include "policies/vcpus/optimal/bound.h"
#include "policies/vcpus/optimal/improve.h"
#include "policies/vcpus/optimal/packing.h"
#include "policies/vcpus/optimal/round.h"
#include "policies/vcpus/score.h"
#include "policies/vcpus/search.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>

#include <fmt/core.h>

namespace berth::policies {

namespace {

using namespace optimal;  // NOLINT(google-build-using-namespace)

// Shares of the budget.
constexpr double kForPacking = 0.2;
constexpr double kForBound = 0.25;
constexpr double kForProof = 0.2;
constexpr std::size_t kFewNewcomers = 4;

std::string percent(double share) { return fmt::format("{:.3g} %", 100 * share); }

// The kind of cores that a request gets: of its place, else the one with the most capacity that is large
// enough for it.
int kind_for(const Node& node, const PlacementRequest& request, const Tenant& placed) {
  if (placed.region >= 0) return node.kind_of(node.cpu_set(placed.cpus));
  for (int kind = 0; kind < node.kind_count(); ++kind) {
    const model::CpuSet& cpus = node.kind_cpus(kind);
    const std::size_t size = request.allowed ? (cpus & *request.allowed).size() : cpus.size();
    if (std::cmp_greater_equal(size, request.vcpus)) return kind;
  }
  return 0;
}

// On a hybrid processor capacity comes before the score. So each request keeps to the kind of cores that the
// window search finds for it, or on which it stands. nullopt where all cores are alike.
std::optional<PlacementProblem> to_kinds(const PlacementProblem& problem, const Occupancy& by_window) {
  const Node& node = problem.node;
  if (node.kind_count() < 2) return std::nullopt;
  std::optional<PlacementProblem> limited(problem);
  for (std::size_t i = 0; i < limited->requests.size(); ++i) {
    PlacementRequest& request = limited->requests[i];
    const int kind = kind_for(node, request, by_window.tenant(static_cast<int>(i)));
    if (kind < 0) continue;
    request.allowed = request.allowed ? *request.allowed & node.kind_cpus(kind) : node.kind_cpus(kind);
  }
  return limited;
}

class OptimalSearch {
 public:
  explicit OptimalSearch(const PlacementProblem& problem)
      : problem_(problem),
        settings_(problem.settings),
        result_(search_window(problem)),
        limited_(to_kinds(problem, result_.occupancy)),
        ground_(limited_ ? *limited_ : problem),
        budget_(settings_.budget_s * kUnitsPerSecond),
        work_(budget_),
        window_score_(score(result_.occupancy)) {}

  Placement run() {
    const Places start = start_running();
    bound_ = bound_of(start);
    round_ = play_round(ground_, start, newcomers_, movable_, bound_, work_);
    Placement found{.occupancy = ground_.occupancy(round_.result.places),
                    .reasons = std::vector<std::string>(problem_.requests.size()),
                    .lower_bound = {},
                    .gap = {},
                    .summary = {},
                    .moved = round_.moved};
    for (const int i : near_gpus_) found.reasons[i] = result_.reasons[i];
    add_others(found);
    const double scored = score(found.occupancy);
    fell_back_ = window_is_better(found, scored);
    if (!fell_back_) {
      explain(found);
      std::swap(found, result_);
    }
    measure(fell_back_ ? window_score_ : scored);
    return std::move(result_);
  }

 private:
  double score(const Occupancy& occupancy) const {
    return evaluate(occupancy, settings_.weighting, problem_.best_effort).node;
  }

  // The scores of different sets of instances do not compare. Of two sets the one is better that has the
  // first instance, in the order of serving, which the other lacks.
  bool window_is_better(const Placement& found, double scored) const {
    for (int i = 0; i < ground_.tenant_count(); ++i) {
      const bool by_window = result_.occupancy.placed(i);
      if (by_window != found.occupancy.placed(i)) return by_window;
    }
    return scored > window_score_ + kTieTotal / problem_.node.size();
  }

  static Places places_of(const Occupancy& occupancy) {
    Places places;
    for (const Tenant& tenant : occupancy.tenants())
      places.push_back({.region = tenant.region, .cpus = tenant.cpus});
    return places;
  }

  // Places for the running instances: those of the window search, or of a packing that serves more.
  Places start_running() {
    Places places = places_of(result_.occupancy);
    std::vector<int> wanted;
    bool all = true;
    for (int i = 0; i < ground_.tenant_count(); ++i) {
      const PlacementRequest& request = problem_.requests[i];
      if (problem_.standing.placed(i)) {
        if (request.may_move) movable_.push_back(i);
      } else if (request.pending) {
        places[i] = {};
      } else if (request.preferred) {
        near_gpus_.push_back(i);
      } else {
        wanted.push_back(i);
        all = all && places[i].taken();
      }
    }
    if (!all) places = better_served(wanted, std::move(places));
    for (const int i : wanted) {
      if (places[i].taken()) newcomers_.push_back(i);
    }
    return places;
  }

  // The packing, where it serves an instance that the window search left out, and all earlier ones.
  Places better_served(const std::vector<int>& wanted, Places by_window) {
    Work part(kForPacking * budget_);
    Places fixed = ground_.standing();
    for (const int i : near_gpus_) fixed[i] = by_window[i];
    Places packed = pack(ground_, fixed, wanted, part);
    work_.spend(kForPacking * budget_ - part.left());
    for (const int i : wanted) {
      if (packed[i].taken() == by_window[i].taken()) continue;
      return packed[i].taken() ? packed : by_window;
    }
    return by_window;
  }

  double bound_of(const Places& places) {
    Work part(kForBound * budget_);
    // A round with few new instances seldom needs more than to see that nothing has to move.
    const Effort effort = newcomers_.size() > kFewNewcomers ? Effort::thorough : Effort::quick;
    const double bound = lower_bound(ground_, places, effort, part);
    work_.spend(kForBound * budget_ - part.left());
    return bound;
  }

  // Places by window those that the round left out: pending instances, and those that found no room.
  void add_others(Placement& found) {
    for (int i = 0; i < ground_.tenant_count(); ++i) {
      if (found.occupancy.placed(i)) continue;
      WindowChoice choice =
          choose_window(found.occupancy, settings_, problem_.best_effort, problem_.requests[i]);
      found.reasons[i] = std::move(choice.reason);
      if (choice.region < 0) continue;
      found.occupancy.place(i, choice.region, std::move(choice.cpus));
      others_ = true;
    }
  }

  // The bound, and the gap to it. On small nodes the best of all placements is the bound.
  void measure(double scored) {
    Placed best{.places = places_of(result_.occupancy), .total = scored * problem_.node.size()};
    std::vector<int> placed;
    for (int i = 0; i < ground_.tenant_count(); ++i) {
      if (best.places[i].taken()) placed.push_back(i);
    }
    if (others_ || fell_back_) bound_ = bound_of(best.places);
    const bool all_free = placed.size() == newcomers_.size() && round_.proven && !fell_back_;
    bool exact = best.total - bound_ < kTieTotal || all_free;
    if (exact) {
      bound_ = best.total;
    } else if (is_small(ground_, best.places, placed)) {
      Work part(std::min(work_.left(), kForProof * budget_));
      exact = solve_exactly(ground_, placed, best, part);
      if (exact) bound_ = best.total;
    }
    const double lowest = std::min(scored, bound_ / problem_.node.size());
    result_.lower_bound = lowest;
    result_.gap = scored > 0 ? (scored - lowest) / scored : 0.0;
    result_.summary = quality(scored, exact) + "; " + movement();
  }

  std::string quality(double scored, bool exact) const {
    std::string text = fmt::format("score_node {:.4g}, {:.4g} by window", scored, window_score_);
    if (*result_.gap <= 0) return text + ": no placement of these instances has a lower one";
    return text + fmt::format(": no placement has less than {:.4g}{}, so at most {} of it can be saved",
                              *result_.lower_bound, exact ? ", which is the least" : "",
                              percent(*result_.gap));
  }

  // Why standing instances move, or why they do not.
  std::string movement() const {
    if (!result_.moved.empty()) {
      return fmt::format(
          "{} of {} instances that may move do so: score_node falls from {:.4g} to {:.4g} ({})",
          result_.moved.size(), movable_.size(), unmoved(), moved(), percent(gain()));
    }
    if (settings_.max_moves == 0) return "no pinned instance moves, because max_moves is 0";
    if (movable_.empty()) return "no pinned instance may move now";
    const char* known = !round_.searched ? "the bound shows that "
                        : round_.proven  ? ""
                                         : "as far as was searched, ";
    return fmt::format(
        "no pinned instance moves: {}no {} would lower score_node by min_gain ({})", known,
        settings_.max_moves == 1 ? "single move" : fmt::format("{} moves", settings_.max_moves),
        percent(settings_.min_gain));
  }

  double unmoved() const { return round_.unmoved / problem_.node.size(); }
  double moved() const { return round_.result.total / problem_.node.size(); }
  double gain() const { return round_.unmoved > 0 ? 1 - round_.result.total / round_.unmoved : 0.0; }

  void explain(Placement& found) const {
    const NodeScore scores = evaluate(found.occupancy, settings_.weighting, problem_.best_effort);
    const auto place = [&](const Tenant& tenant) {
      return fmt::format("{} of {}", problem_.node.cpu_set(tenant.cpus).to_string(),
                         problem_.node.region(tenant.region).name);
    };
    for (const int i : newcomers_) {
      found.reasons[i] = fmt::format(
          "placed on {}: score {:.4g}, as one of {} whose places together give score_node "
          "{:.4g} against {:.4g} by window (search optimal, weighting {})",
          place(found.occupancy.tenant(i)), scores.tenants[i].score,
          model::count_text(newcomers_.size(), "new instance"), scores.node, window_score_,
          to_string(settings_.weighting));
    }
    for (const int i : found.moved) {
      found.reasons[i] = fmt::format(
          "moved from {} to {}: score_node falls from {:.4g} to {:.4g} ({}, min_gain {}) by {} of at "
          "most {} in a round (search optimal, weighting {})",
          place(problem_.standing.tenant(i)), place(found.occupancy.tenant(i)), unmoved(), moved(),
          percent(gain()), percent(settings_.min_gain), model::count_text(found.moved.size(), "move"),
          settings_.max_moves, to_string(settings_.weighting));
    }
  }

  const PlacementProblem& problem_;
  const InterferenceSettings& settings_;
  Placement result_;                         // the window's, until a better one is found
  std::optional<PlacementProblem> limited_;  // on a hybrid processor: each request to cores of one kind
  Ground ground_;
  double budget_;
  Work work_;
  double window_score_;
  std::vector<int> newcomers_;  // running ones without a standing place that get one
  std::vector<int> movable_;
  std::vector<int> near_gpus_;  // new ones with GPUs: they keep the window's place
  double bound_ = 0;
  Round round_;
  bool others_ = false;     // some instance was placed beside the round
  bool fell_back_ = false;  // the window's placement is better
};

}  // namespace

Placement search_optimal(const PlacementProblem& problem) { return OptimalSearch(problem).run(); }

}  // namespace berth::policies
