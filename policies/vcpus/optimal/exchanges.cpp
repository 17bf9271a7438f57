// SPDX-License-Identifier: Apache-2.0
#include "policies/vcpus/optimal/exchanges.h"

#include <algorithm>

namespace berth::policies::optimal {

Exchanges::Exchanges(const Layout& layout)
    : layout_(layout),
      ground_(layout.ground()),
      node_(ground_.node()),
      open_(static_cast<std::size_t>(ground_.tenant_count()), 0),
      taken_marks_(node_.size()) {}

std::vector<int> Exchanges::available() const {
  std::vector<int> positions;
  for (int position = 0; position < node_.size(); ++position) {
    const int owner = layout_.owner(position);
    if (owner < 0 ? ground_.givable(position) : is_open(owner)) positions.push_back(position);
  }
  return positions;
}

// Whether the tenant may own this position instead of one of its own.
bool Exchanges::stays_whole(int tenant, int position) const {
  if (tenant < 0) return true;
  const Place& place = layout_.places()[tenant];
  const int region = ground_.region_at(tenant, position);
  return region >= 0 && (place.cpus.size() == 1 || region == place.region);
}

bool Exchanges::bring(int from, int to, int start, std::vector<Exchange>& pairs) {
  const int mover = layout_.owner(from);
  const int other = layout_.owner(to);
  if (mover == other || node_.core(from) == node_.core(to)) return false;
  if (!ground_.may_have(mover, to) || (other >= 0 && !ground_.may_have(other, from))) return false;
  const Places& places = layout_.places();
  if (stays_whole(mover, to) && stays_whole(other, from)) {
    const bool alike = other >= 0 && ground_.kind(mover) == ground_.kind(other);
    if (alike && places[mover].cpus.size() == 1) return false;
    pairs.assign(1, {.a = from, .b = to});
    return true;
  }
  const bool other_is_larger = other >= 0 && places[other].cpus.size() > places[mover].cpus.size();
  return other_is_larger ? whole(other, from, start, pairs) : whole(mover, to, start, pairs);
}

bool Exchanges::whole(int mover, int target, int start, std::vector<Exchange>& pairs) {
  const Place& place = layout_.places()[mover];
  const int region = ground_.region_at(mover, target);
  if (region < 0 || region == place.region) return false;
  const int owner = layout_.owner(target);
  if (owner >= 0 && ground_.kind(owner) == ground_.kind(mover)) return false;
  taken_.clear();
  taken_marks_.clear();
  if (!take(mover, target)) return false;
  const bool complete = collect(mover, region, start, false) || collect(mover, region, start, true);
  if (!complete || !displaced_fit(place.cpus)) return false;
  pairs.clear();
  for (std::size_t i = 0; i < taken_.size(); ++i) pairs.push_back({.a = place.cpus[i], .b = taken_[i]});
  return true;
}

// Goes on taking positions of the region: free ones, or those of owners. True once there are enough.
bool Exchanges::collect(int mover, int region, int start, bool owned) {
  const std::vector<int>& window = node_.region(region).window;
  const std::size_t wanted = layout_.places()[mover].cpus.size();
  for (std::size_t i = 0; i < window.size() && taken_.size() < wanted; ++i) {
    const int position = window[(i + static_cast<std::size_t>(start)) % window.size()];
    if ((layout_.owner(position) >= 0) == owned) take(mover, position);
  }
  return taken_.size() == wanted;
}

// Takes a free position, or all positions of its owner.
bool Exchanges::take(int mover, int position) {
  const int owner = layout_.owner(position);
  const std::vector<int> single{position};
  const std::vector<int>& cpus = owner < 0 ? single : layout_.places()[owner].cpus;
  const std::size_t wanted = layout_.places()[mover].cpus.size();
  if (owner == mover || (owner >= 0 && !is_open(owner)) || taken_.size() + cpus.size() > wanted) return false;
  for (const int cpu : cpus) {
    if (taken_marks_.marked(cpu) || !ground_.may_have(mover, cpu)) return false;
    if (ground_.region_at(mover, cpu) != ground_.region_at(mover, position)) return false;
  }
  for (const int cpu : cpus) {
    taken_marks_.mark(cpu);
    taken_.push_back(cpu);
  }
  return true;
}

// Whether each displaced tenant may have the positions that it gets, all of them in one region.
bool Exchanges::displaced_fit(const std::vector<int>& old) const {
  for (std::size_t i = 0; i < taken_.size(); ++i) {
    const int owner = layout_.owner(taken_[i]);
    if (owner < 0) continue;
    if (!ground_.may_have(owner, old[i])) return false;
    // The positions of one owner were taken one after the other.
    const bool first = i == 0 || layout_.owner(taken_[i - 1]) != owner;
    const int region = ground_.region_at(owner, old[i]);
    if (region < 0 || (!first && region != ground_.region_at(owner, old[i - 1]))) return false;
  }
  return true;
}

}  // namespace berth::policies::optimal
