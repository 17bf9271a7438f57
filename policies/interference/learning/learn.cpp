// SPDX-License-Identifier: Apache-2.0
#include "policies/interference/learning/learn.h"

#include "policies/interference/learning/sums.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include <fmt/core.h>

namespace berth::policies {

using model::LearnedSums;
using model::Observation;
using model::ProfileKey;
using model::Response;

namespace {

// Time that nothing was observed in does not age what is known, beyond this.
constexpr double kMostAgeing_s = 600;
// A response this many times the mean, or this part of it, is no interference.
constexpr double kStrange = 20;
// So many in a row are a service that has changed.
constexpr double kMostStrange = 100;
// The CUSUM of the model's squared errors, in units of their mean. Where the constant's recent errors are
// larger than usual, so may the model's be: both follow the load. An error counts as at most nine times the
// mean. The sum grows where errors stay above twice the mean.
constexpr double kMostError = 9;
constexpr double kSlack = 2;
constexpr double kAlarm = 50;
// An error below this share of the constant's is as good as none, and its rise to that tells nothing.
constexpr double kLeastShare = 1e-4;
constexpr double kRecent = 50;  // observations
constexpr std::size_t kMostMessages = 100;

std::vector<Row> rows_of(const std::vector<const Observation*>& tick, Response response) {
  std::vector<Row> rows;
  rows.reserve(tick.size());
  bool all_know_llc = true;
  for (const Observation* seen : tick) {
    rows.push_back({.y = seen->y, .sc = seen->sc, .ss = seen->ss, .llc = seen->llc});
    all_know_llc = all_know_llc && seen->llc.has_value();
  }
  if (response != Response::cpu) return rows;
  Row mean;
  double mean_llc = 0;
  const auto count = static_cast<double>(rows.size());
  for (const Row& row : rows) {
    mean.y += row.y / count;
    mean.sc += row.sc / count;
    mean.ss += row.ss / count;
    mean_llc += row.llc.value_or(0) / count;
  }
  for (Row& row : rows) {
    row.y -= mean.y;
    row.sc -= mean.sc;
    row.ss -= mean.ss;
    row.llc = all_know_llc ? std::optional(*row.llc - mean_llc) : std::nullopt;
  }
  return rows;
}

void add(model::RowSums& sums, const Row& row, bool with_llc) {
  const std::array<double, kFeatures> x{row.sc, row.ss, with_llc ? *row.llc : 0};
  sums.n += 1;
  sums.y += row.y;
  sums.yy += row.y * row.y;
  for (std::size_t i = 0; i < kFeatures; ++i) {
    sums.x[i] += x[i];
    sums.xy[i] += x[i] * row.y;
    for (std::size_t j = i; j < kFeatures; ++j) sums.xx[product_of(i, j)] += x[i] * x[j];
  }
}

void add(LearnedSums& sums, const std::vector<Row>& rows, const std::vector<const Observation*>& tick,
         Response response) {
  for (const Row& row : rows) {
    add(sums.rows, row, false);
    if (row.llc) add(sums.llc_rows, row, true);
  }
  for (const Observation* seen : tick) {
    sums.level_u += seen->u;
    sums.level_sc += seen->sc;
    sums.level_ss += seen->ss;
  }
  if (response == Response::cpu) sums.spent += 1;
}

double square(double x) { return x * x; }

// Squared errors of one row.
struct RowErrors {
  double model = 0;
  double constant = 0;
};

// Predicts the rows, and adds the errors.
std::vector<RowErrors> predict(model::ErrorSums& errors, const Predictor& predictor,
                               const std::vector<Row>& rows) {
  std::vector<RowErrors> result;
  result.reserve(rows.size());
  for (const Row& row : rows) {
    const RowErrors own{.model = square(row.y - predictor.model(row)),
                        .constant = square(row.y - predictor.constant())};
    errors.n += 1;
    errors.model += own.model;
    errors.fallback += square(row.y - predictor.fallback(row));
    errors.constant += own.constant;
    if (const auto wide = predictor.with_llc(row)) {
      errors.llc_n += 1;
      errors.llc_without += own.model;
      errors.llc_with += square(row.y - *wide);
    }
    result.push_back(own);
  }
  return result;
}

// Carries the CUSUM on by a tick. Returns whether the service has changed. `known` are the errors before it,
// `free` the rows that do not follow from others.
bool watch(LearnedSums& own, const model::ErrorSums& known, const std::vector<RowErrors>& tick, double free,
           bool accepted) {
  if (own.rise <= 0 && known.constant > 0) {
    own.calm_share = std::max(kLeastShare, known.model / known.constant);
    own.calm_error = own.calm_share * known.constant / known.n;
  }
  double constant = 0;
  for (const RowErrors& row : tick) constant += row.constant / static_cast<double>(tick.size());
  if (!(own.recent_error > 0)) own.recent_error = known.n > 0 ? known.constant / known.n : constant;
  own.recent_error += std::min(1.0, free / kRecent) * (constant - own.recent_error);

  const double usual = std::max(own.calm_error, own.calm_share * own.recent_error);
  if (!(usual > 0) || (own.rise <= 0 && !accepted)) return false;
  double error = 0;
  for (const RowErrors& row : tick)
    error += std::min(kMostError, row.model / usual) / static_cast<double>(tick.size());
  own.rise = std::max(0.0, own.rise + free * (error - kSlack));
  return own.rise > kAlarm;
}

// The sums that a service begins with once it has changed.
LearnedSums forgotten(double time) {
  LearnedSums sums;
  sums.time = time;
  sums.prior_dropped = true;
  sums.forgotten_at = time;
  return sums;
}

// Takes out of the tick what must not be learned.
class Sieve {
 public:
  Sieve(const ProfileKey& key, const LearnedSums& known) : key_(key) {
    if (key.response != Response::cpu && known.rows.n >= kWarmUp) mean_ = known.rows.y / known.rows.n;
  }

  std::vector<const Observation*> pass(const std::vector<Observation>& tick, Learned& result) {
    std::vector<const Observation*> good;
    for (const Observation& seen : tick) {
      if (auto why = fault_of(seen)) {
        result.set_aside.push_back({seen.instance, std::move(*why)});
      } else if (is_strange(seen)) {
        result.set_aside.push_back(
            {seen.instance, fmt::format("{} {:.4g} is far from the mean {:.4g}",
                                        model::to_string(key_.response), seen.y, *mean_)});
        result.sums.strange += 1;
      } else {
        good.push_back(&seen);
      }
    }
    if (!good.empty()) result.sums.strange = 0;
    return good;
  }

 private:
  bool is_strange(const Observation& seen) const {
    return mean_ && !(seen.y <= kStrange * *mean_ && kStrange * seen.y >= *mean_);
  }

  const ProfileKey& key_;
  std::optional<double> mean_;
};

// The time of the tick by its first observation that has one; nullopt where none has.
std::optional<double> time_of(const std::vector<Observation>& tick) {
  for (const Observation& seen : tick) {
    if (!fault_of(seen)) return seen.time;
  }
  return std::nullopt;
}

}  // namespace

Learned learn(const ProfileKey& key, const LearnedSums& sums, const LearnedSums* prior,
              const std::vector<Observation>& tick, const LearningSettings& settings) {
  Learned result{.sums = sums, .set_aside = {}, .changed = {}};
  LearnedSums& own = result.sums;
  const auto time = time_of(tick);
  if (time && own.rows.n > 0 && *time < own.time) {
    for (const Observation& seen : tick)
      result.set_aside.push_back(
          {seen.instance, fmt::format("the clock went back by {:.0f} s", own.time - *time)});
    own.time = *time;
    return result;
  }
  LearnedSums known = with_prior(own, prior, settings.min_samples);
  const auto good = Sieve(key, known).pass(tick, result);
  if (own.strange >= kMostStrange) {
    result.changed = fmt::format("{:.0f} observations in a row were far from the mean", own.strange);
    own = forgotten(time.value_or(own.time));
    return result;
  }
  if (good.empty() || (key.response == Response::cpu && good.size() < 2)) return result;

  const double age_s = own.rows.n > 0 ? std::min(*time - own.time, kMostAgeing_s) : 0;
  scale(own, std::exp2(-age_s / settings.half_life_s));
  own.time = *time;
  const auto rows = rows_of(good, key.response);
  if (known.rows.n >= kWarmUp) {
    const double free = static_cast<double>(rows.size()) - (key.response == Response::cpu ? 1 : 0);
    const auto errors = predict(own.errors, Predictor(known, key.response, settings.default_model), rows);
    if (watch(own, known.errors, errors, free, is_accepted(key, known, settings))) {
      result.changed = fmt::format("its errors stay above {:.2g} times what they were", std::sqrt(kSlack));
      own = forgotten(*time);
    }
  }
  add(own, rows, good, key.response);
  if (key.response != Response::cpu) own.spent = 1;
  return result;
}

LearnedAll learn_all(std::vector<Observation> observations, const LearningSettings& settings) {
  std::stable_sort(observations.begin(), observations.end(),
                   [](const Observation& a, const Observation& b) { return a.time < b.time; });
  std::map<ProfileKey, std::vector<Observation>> by_key;
  for (Observation& seen : observations) {
    const ProfileKey key{seen.service, seen.response};
    by_key[key].push_back(std::move(seen));
  }
  LearnedAll result;
  std::size_t unlisted = 0;
  const auto tell = [&](std::string message) {
    if (result.messages.size() < kMostMessages) {
      result.messages.push_back(std::move(message));
    } else {
      ++unlisted;
    }
  };
  const auto say = [&](const ProfileKey& key, const Observation& at, const std::string& what) {
    tell(fmt::format("{} by {} at {:.3f}: {}", key.service, model::to_string(key.response), at.time, what));
  };
  for (const auto& [key, all] : by_key) {
    LearnedSums sums;
    for (auto begin = all.begin(); begin != all.end();) {
      const auto end =
          std::find_if(begin, all.end(), [&](const Observation& seen) { return seen.time != begin->time; });
      const std::vector<Observation> tick(begin, end);
      auto learned = learn(key, sums, nullptr, tick, settings);
      sums = learned.sums;
      result.learned += tick.size() - learned.set_aside.size();
      for (const SetAside& aside : learned.set_aside)
        say(key, *begin, fmt::format("{} set aside: {}", aside.instance, aside.why));
      if (learned.changed) say(key, *begin, "everything older is forgotten: " + *learned.changed);
      begin = end;
    }
    if (sums != LearnedSums()) {
      result.profiles.emplace(key, sums);
    } else if (key.response == Response::cpu) {
      tell(fmt::format("{} by cpu teaches nothing: there were never two instances in one tick", key.service));
    }
  }
  if (unlisted > 0) result.messages.push_back(fmt::format("and {} more", unlisted));
  return result;
}

}  // namespace berth::policies
