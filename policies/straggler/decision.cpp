// SPDX-License-Identifier: Apache-2.0
#include "policies/straggler/decision.h"

#include "policies/share.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

namespace berth::policies {

namespace {

std::vector<std::size_t> indices(std::size_t count) {
  std::vector<std::size_t> list(count);
  std::iota(list.begin(), list.end(), std::size_t{0});
  return list;
}

template <typename Key>
std::vector<std::size_t> sorted_by(std::size_t count, Key key) {
  std::vector<std::size_t> list = indices(count);
  std::sort(list.begin(), list.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  return list;
}

// Takes from redundant sources until nothing is missing. Returns the amount still missing.
double reclaim(double missing, const std::vector<Source>& sources, std::vector<Taken>& taken) {
  const auto order = sorted_by(
      sources.size(), [&](std::size_t i) { return std::tuple(-sources[i].reclaimable, sources[i].id); });
  for (const std::size_t i : order) {
    if (missing <= kNothing || sources[i].reclaimable <= 0) break;
    const double amount = std::min(missing, sources[i].reclaim_most);
    if (amount <= kNothing) continue;
    taken.push_back({.source = i, .amount = amount, .preempted = false});
    missing -= amount;
  }
  return missing;
}

void preempt(double missing, const std::vector<Source>& sources, std::vector<Taken>& taken) {
  std::vector<double> reclaimed(sources.size(), 0.0);
  std::vector<char> preempted(sources.size(), 0);
  for (const Taken& it : taken) reclaimed[it.source] = it.amount;
  const auto left = [&](std::size_t i) { return sources[i].preempt_most - reclaimed[i]; };
  const auto order = sorted_by(sources.size(), [&](std::size_t i) {
    return std::tuple(sources[i].priority, -left(i), sources[i].id);
  });
  for (const std::size_t i : order) {
    if (missing <= kNothing) break;
    const double amount = std::min(missing, left(i));
    if (amount <= kNothing) continue;
    taken.push_back({.source = i, .amount = reclaimed[i] + amount, .preempted = true});
    preempted[i] = 1;
    missing -= amount;
  }
  // A source that lent its spare part above gives all of it by preemption instead.
  std::erase_if(taken, [&](const Taken& it) { return !it.preempted && preempted[it.source] != 0; });
}

// The most that all sources together can give.
double obtainable(const std::vector<Source>& sources) {
  double sum = 0;
  for (const Source& source : sources) sum += std::max(source.reclaim_most, source.preempt_most);
  return sum;
}

// Serves the claims out of `left`, and returns what remains.
double serve(double left, const std::vector<Claim>& claims, std::vector<double>& grants) {
  const auto order =
      sorted_by(claims.size(), [&](std::size_t i) { return std::tuple(claims[i].deadline, claims[i].id); });
  for (const std::size_t i : order) {
    const double missing = claims[i].extension - left;
    // Sums of cores are rounded: a lack that comes from rounding alone does not count.
    double grant = missing <= kNothing ? claims[i].extension : std::max(0.0, left);
    if (claims[i].whole) grant = std::floor(grant + kNothing);
    if (grant < claims[i].least) grant = 0;
    grants[i] = grant;
    left -= grant;
  }
  return std::max(0.0, left);
}

}  // namespace

Division divide(double idle, double pending, const std::vector<Claim>& claims,
                const std::vector<Source>& sources) {
  Division result;
  result.grants.assign(claims.size(), 0.0);
  double extensions = 0;
  for (const Claim& claim : claims) extensions += claim.extension;
  result.needed = extensions + pending;
  if (result.needed <= 0) return result;
  // A claim may use less than its part. The sources give only the amounts that are granted.
  const double rest = serve(idle + obtainable(sources), claims, result.grants);
  const double granted = std::accumulate(result.grants.begin(), result.grants.end(), 0.0);
  const double missing = granted + std::min(pending, rest) - idle;
  if (missing > 0) preempt(reclaim(missing, sources, result.taken), sources, result.taken);
  result.left = idle - granted;
  for (const Taken& it : result.taken) result.left += it.amount;
  result.left = std::max(0.0, result.left);
  return result;
}

}  // namespace berth::policies
