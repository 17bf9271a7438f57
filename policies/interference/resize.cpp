// SPDX-License-Identifier: Apache-2.0
#include "policies/interference/resize.h"

#include "model/count_text.h"
#include "policies/vcpus/candidate_score.h"
#include "policies/vcpus/marks.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/core.h>

namespace berth::policies {

namespace {

struct Best {
  int region = -1;
  std::vector<int> cpus;
  double score = 0;
  int candidates = 0;
};

class Resizer {
 public:
  Resizer(const std::vector<Resize>& resizes, const std::vector<PlacementRequest>& requests,
          const InterferenceSettings& settings, const BestEffortDemand& demand, Occupancy& occupancy)
      : requests_(requests),
        settings_(settings),
        demand_(demand),
        occupancy_(occupancy),
        node_(occupancy.node()),
        claimed_(static_cast<std::size_t>(node_.size()), 0) {
    for (const Resize& resize : resizes) {
      for (const int position : resize.held) claimed_[position] = 1;
      owed_ += size_until_placed(resize);
    }
  }

  static int size_until_placed(const Resize& resize) {
    return std::min(resize.vcpus, static_cast<int>(resize.held.size()));
  }

  std::string place(const Resize& resize) {
    for (const int position : resize.held) claimed_[position] = 0;
    owed_ -= size_until_placed(resize);
    Best best = resize.region < 0 ? shrink(resize) : grow(resize);
    std::string text = describe(resize, best);
    occupancy_.place(resize.tenant, best.region, std::move(best.cpus));
    return text;
  }

 private:
  // Tries `base` with each window of `width` out of `choice`.
  void try_windows(const Resize& resize, int region, const std::vector<int>& base,
                   const std::vector<int>& choice, std::ptrdiff_t width, Best& best) {
    const auto scorer =
        make_scorer(occupancy_, settings_.weighting, demand_, occupancy_.tenant(resize.tenant), region);
    for (std::ptrdiff_t at = 0; at + width <= std::ssize(choice); ++at) {
      std::vector<int> cpus = base;
      cpus.insert(cpus.end(), choice.begin() + at, choice.begin() + at + width);
      const double score = scorer->score(cpus);
      ++best.candidates;
      if (best.region < 0 || score < best.score - kTie) {
        best.region = region;
        best.cpus = std::move(cpus);
        best.score = score;
      }
    }
  }

  Best shrink(const Resize& resize) {
    occupancy_.ask(resize.tenant, resize.vcpus);
    Best best;
    Marks held(node_.size());
    for (const int position : resize.held) held.mark(position);
    // keep_standing() only lets requests through whose size has regions.
    const auto regions = node_.regions_for(resize.vcpus, settings_.allow_cross_socket);
    for (const int region : *regions) {
      std::vector<int> own;
      for (const int position : node_.region(region).window)
        if (held.marked(position)) own.push_back(position);
      if (std::ssize(own) >= resize.vcpus) try_windows(resize, region, {}, own, resize.vcpus, best);
    }
    return best;
  }

  Best grow(const Resize& resize) {
    const auto& allowed = requests_[resize.tenant].allowed;
    Marks held(node_.size());
    for (const int position : resize.held) held.mark(position);
    std::vector<int> free;
    for (const int position : node_.region(resize.region).window) {
      const int cpu = node_.cpu(position);
      if (held.marked(position) || claimed_[position] != 0 || occupancy_.owner(position) >= 0) continue;
      // An instance has cores of one kind.
      if (node_.kind(position) != node_.kind(resize.held.front())) continue;
      if (settings_.reserved_cpus.contains(cpu) || (allowed && !allowed->contains(cpu))) continue;
      free.push_back(position);
    }
    const int present = static_cast<int>(resize.held.size());
    const int left = occupancy_.unowned_count() - owed_ - present - demand_.min_cpus;
    const int more = std::max(0, std::min({resize.vcpus - present, static_cast<int>(free.size()), left}));
    occupancy_.ask(resize.tenant, present + more);
    Best best;
    if (more == 0) free.clear();
    try_windows(resize, resize.region, resize.held, free, more, best);
    return best;
  }

  std::string describe(const Resize& resize, const Best& best) const {
    const bool shrinks = resize.region < 0;
    std::string text =
        fmt::format("{} from {} to {} in place: score_domain {:.4g}, the best of {} (weighting {})",
                    shrinks ? "shrinks" : "grows", node_.cpu_set(resize.held).to_string(),
                    node_.cpu_set(best.cpus).to_string(), best.score,
                    model::count_text(best.candidates, "candidate"), to_string(settings_.weighting));
    if (static_cast<int>(best.cpus.size()) < resize.vcpus) {
      text += fmt::format("; it asks {}, and {} has no more for it", model::count_text(resize.vcpus, "vCPU"),
                          node_.region(best.region).name);
    }
    return text;
  }

  const std::vector<PlacementRequest>& requests_;
  const InterferenceSettings& settings_;
  const BestEffortDemand& demand_;
  Occupancy& occupancy_;
  const Node& node_;
  std::vector<char> claimed_;  // by position: held by a resize that is not placed yet
  int owed_ = 0;               // vCPUs that those will own at least
};

}  // namespace

int owned_by(const std::vector<Resize>& resizes) {
  int sum = 0;
  for (const Resize& resize : resizes) sum += Resizer::size_until_placed(resize);
  return sum;
}

std::vector<std::string> resize_pins(const std::vector<Resize>& resizes,
                                     const std::vector<PlacementRequest>& requests,
                                     const InterferenceSettings& settings, const BestEffortDemand& demand,
                                     Occupancy& occupancy) {
  Resizer resizer(resizes, requests, settings, demand, occupancy);
  std::vector<std::string> texts(resizes.size());
  for (const bool shrinking : {true, false}) {
    for (std::size_t i = 0; i < resizes.size(); ++i) {
      if ((resizes[i].region < 0) == shrinking) texts[i] = resizer.place(resizes[i]);
    }
  }
  return texts;
}

}  // namespace berth::policies
