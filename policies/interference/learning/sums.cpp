// SPDX-License-Identifier: Apache-2.0
#include "policies/interference/learning/sums.h"

#include <algorithm>
#include <cstddef>

namespace berth::policies {

namespace {

constexpr double kMostPriorShare = 10;  // of min_samples

void add_scaled(model::RowSums& into, const model::RowSums& other, double factor) {
  into.n += factor * other.n;
  into.y += factor * other.y;
  into.yy += factor * other.yy;
  for (std::size_t i = 0; i < into.x.size(); ++i) into.x[i] += factor * other.x[i];
  for (std::size_t i = 0; i < into.xy.size(); ++i) into.xy[i] += factor * other.xy[i];
  for (std::size_t i = 0; i < into.xx.size(); ++i) into.xx[i] += factor * other.xx[i];
}

void add_scaled(model::ErrorSums& into, const model::ErrorSums& other, double factor) {
  into.n += factor * other.n;
  into.model += factor * other.model;
  into.fallback += factor * other.fallback;
  into.constant += factor * other.constant;
  into.llc_n += factor * other.llc_n;
  into.llc_without += factor * other.llc_without;
  into.llc_with += factor * other.llc_with;
}

void add_scaled(model::LearnedSums& into, const model::LearnedSums& other, double factor) {
  add_scaled(into.rows, other.rows, factor);
  add_scaled(into.llc_rows, other.llc_rows, factor);
  add_scaled(into.errors, other.errors, factor);
  into.level_u += factor * other.level_u;
  into.level_sc += factor * other.level_sc;
  into.level_ss += factor * other.level_ss;
  into.spent += factor * other.spent;
}

}  // namespace

void scale(model::LearnedSums& sums, double factor) { add_scaled(sums, sums, factor - 1); }

void merge(model::LearnedSums& into, const model::LearnedSums& other) {
  add_scaled(into, other, 1);
  into.time = std::max(into.time, other.time);
}

void merge(model::Profiles& into, const model::Profiles& others) {
  for (const auto& [key, sums] : others) {
    const auto [place, fresh] = into.try_emplace(key, sums);
    if (!fresh) merge(place->second, sums);
  }
}

model::LearnedSums with_prior(const model::LearnedSums& own, const model::LearnedSums* prior,
                              int min_samples) {
  model::LearnedSums both = own;
  if (prior == nullptr || own.prior_dropped || !(prior->rows.n > 0)) return both;
  add_scaled(both, *prior, std::min(1.0, kMostPriorShare * min_samples / prior->rows.n));
  return both;
}

}  // namespace berth::policies
