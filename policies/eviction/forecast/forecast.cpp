// SPDX-License-Identifier: Apache-2.0
// How the forecast is made, and why (tests/bench/README.md has the measurements):
//
// A step that is over says nothing of what comes next. So the trend is taken from the series without its
// steps, and errors of earlier forecasts do not count what a step added. A ramp looks like a step at first;
// after some 15 s it fills the windows, and is a trend.
//
// The garbage collector's saw-tooth looks like a ramp until it falls. After one fall, a trend ends at the
// peak that the demand fell from. After two, the past answers directly: the instants at which the demand
// was most like now, and how far it climbed after them.
#include "policies/eviction/forecast/forecast.h"

#include "policies/eviction/forecast/series.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace berth::policies {

namespace {

constexpr double kShort_s = 30;        // the window of a trend that has just changed
constexpr double kLong_s = 60;         // the window of a steady one
constexpr double kChanged = 4;         // deviations between both that make it a changed one
constexpr double kCaution = 1;         // deviations that a slope is lowered by
constexpr double kAccelerates = 1;     // deviations between two short windows that are an acceleration
constexpr std::size_t kLevel = 5;      // readings whose median is the level
constexpr std::size_t kOrigins = 300;  // readings at which an earlier forecast is judged, at most
constexpr std::size_t kJudged = 40;    // of them
constexpr std::size_t kLeastErrors = 10;
constexpr std::size_t kNewestErrors = 15;
constexpr std::size_t kFirstOrigin = 10;  // readings before the first forecast that is judged
constexpr double kNoiseMargin = 2;        // deviations of noise
constexpr std::size_t kCycles = 2;        // peaks until the past answers
constexpr std::size_t kAlikeInCycle = 5;
constexpr std::size_t kLeastAlike = 10;
constexpr std::size_t kDirection = 3;  // readings that tell where demand goes
constexpr double kDirectionWeight = 1.5;
constexpr double kAboveCeiling = 0.05;  // of the range: demand above the peaks is not in the cycle
constexpr double kMedian = 0.5;

// By how much demand is expected to rise within the horizon, and the slope of that.
struct Rise {
  double bytes = 0;
  double slope = 0;
};

Rise rise_of(const DemandSeries& series, std::size_t i, double horizon_s) {
  const DemandSeries::Trend recent = series.trend(i, kShort_s);
  DemandSeries::Trend trend = series.trend(i, kLong_s);
  if (std::abs(recent.slope - trend.slope) > kChanged * recent.deviation) trend = recent;
  const double slope = trend.slope - kCaution * trend.deviation;
  if (slope <= 0) return {};
  Rise rise{.bytes = slope * horizon_s, .slope = slope};
  const std::size_t before = series.begin_of_window(i, kShort_s);
  const DemandSeries::Trend earlier = series.trend(before, kShort_s);
  const double faster = recent.slope - earlier.slope;
  const double passed_s = series.time(i) - series.time(before);
  if (passed_s > 0 && earlier.slope > -earlier.deviation &&
      faster > kAccelerates * (recent.deviation + earlier.deviation)) {
    rise = {.bytes = recent.slope * horizon_s + faster / passed_s * horizon_s * horizon_s / 2,
            .slope = recent.slope};
  }
  return rise;
}

// The median of the last readings since a step, each carried on along the trend.
double level_at(const DemandSeries& series, std::size_t i, double slope) {
  std::vector<double> levels;
  for (std::size_t j = i + 1; j-- > 0 && levels.size() < kLevel;) {
    levels.push_back(series.bytes(j) + slope * (series.time(i) - series.time(j)));
    if (series.is_step(j)) break;
  }
  return quantile(levels, kMedian);
}

struct Extended {
  double peak = 0;
  double slope = 0;
};

// Level and trend, up to the ceiling of the peaks so far.
Extended extend(const DemandSeries& series, std::size_t i, double horizon_s) {
  const Rise rise = rise_of(series, i, horizon_s);
  const double level = level_at(series, i, rise.slope);
  double peak = level + rise.bytes;
  if (series.peaks(i) > 0) peak = std::max(level, std::min(peak, series.ceiling(i)));
  return {.peak = peak, .slope = rise.slope};
}

// What earlier forecasts of this horizon were too low by, at some readings whose horizon is over. Nothing is
// known of a horizon without a reading: the interval of sampling may be longer.
std::vector<double> errors_of(const DemandSeries& series, double horizon_s) {
  std::vector<double> errors;
  const std::size_t now = series.size() - 1;
  const std::size_t stride = std::max<std::size_t>(1, std::min(series.size(), kOrigins) / kJudged);
  std::size_t seen = 0;
  for (std::size_t i = now; i-- > kFirstOrigin && seen < kOrigins;) {
    if (series.time(now) - series.time(i) < horizon_s || !series.has_after(i, horizon_s)) continue;
    ++seen;
    if ((now - i) % stride != 0) continue;
    errors.push_back(series.most_after(i, horizon_s) - extend(series, i, horizon_s).peak);
  }
  return errors;
}

// The errors with the newest first. A change of long ago, such as the begin of a ramp that is over, does not
// keep the margin up.
double margin_of(std::vector<double>& errors, double confidence) {
  const auto count = static_cast<std::ptrdiff_t>(std::min(errors.size(), kNewestErrors));
  std::vector<double> newest(errors.begin(), errors.begin() + count);
  return std::min(quantile(errors, confidence), quantile(newest, confidence));
}

// How different two instants are: in demand, and in where it goes.
double difference(const DemandSeries& series, std::size_t a, std::size_t b) {
  const double direction_a = series.bytes(a) - series.bytes(a - kDirection);
  const double direction_b = series.bytes(b) - series.bytes(b - kDirection);
  return std::abs(series.bytes(a) - series.bytes(b)) + kDirectionWeight * std::abs(direction_a - direction_b);
}

// How far demand climbed after the instants that were most like now. Empty where it has no cycles, or is
// above them.
std::vector<double> rises_of_alike(const DemandSeries& series, double horizon_s) {
  const std::size_t now = series.size() - 1;
  if (now <= kDirection || series.peaks(now) < kCycles) return {};
  if (series.bytes(now) > series.ceiling(now) + kAboveCeiling * series.range()) return {};
  std::vector<std::pair<double, std::size_t>> known;
  for (std::size_t i = kDirection; i < now && series.time(i) + horizon_s <= series.time(now); ++i)
    if (series.has_after(i, horizon_s)) known.emplace_back(difference(series, i, now), i);
  const std::size_t alike = std::max(kLeastAlike, kAlikeInCycle * series.peaks(now));
  if (known.size() < 2 * alike) return {};
  std::nth_element(known.begin(), known.begin() + static_cast<std::ptrdiff_t>(alike), known.end());
  known.resize(alike);
  std::vector<double> rises;
  rises.reserve(known.size());
  for (const auto& [unlike, i] : known)
    rises.push_back(std::max(0.0, series.most_after(i, horizon_s) - series.bytes(i)));
  return rises;
}

}  // namespace

std::optional<Forecast> forecast_memory(std::span<const model::MemoryReading> readings, double horizon_s,
                                        double confidence) {
  if (readings.empty()) return std::nullopt;
  const DemandSeries series(readings.last(std::min(readings.size(), model::kMostMemoryReadings)));
  const std::size_t now = series.size() - 1;
  Forecast forecast;
  if (auto rises = rises_of_alike(series, horizon_s); !rises.empty()) {
    const double usual = quantile(rises, kMedian);
    forecast.shape = ForecastShape::cycle;
    forecast.peak_bytes = series.bytes(now) + usual;
    forecast.margin_bytes = quantile(rises, confidence) - usual;
    forecast.errors = rises.size();
    return forecast;
  }
  const Extended extended = extend(series, now, horizon_s);
  forecast.peak_bytes = extended.peak;
  forecast.slope_bytes_per_s = extended.slope;
  forecast.margin_bytes = kNoiseMargin * series.noise(now);
  if (series.size() > kFirstOrigin) forecast.shape = ForecastShape::trend;
  if (auto errors = errors_of(series, horizon_s); errors.size() >= kLeastErrors) {
    forecast.errors = errors.size();
    forecast.margin_bytes = margin_of(errors, confidence);
  }
  return forecast;
}

double horizon_of(std::span<const double> durations_s, double unknown_s) {
  constexpr double kPercentile = 0.9;
  constexpr double kLeast_s = 10;
  constexpr double kMost_s = 300;  // half of the readings, so that earlier forecasts can be judged
  if (durations_s.empty()) return unknown_s;
  std::vector<double> sorted(durations_s.begin(), durations_s.end());
  std::sort(sorted.begin(), sorted.end());
  const double rank = std::ceil(kPercentile * static_cast<double>(sorted.size()));
  return std::clamp(sorted[static_cast<std::size_t>(rank) - 1], kLeast_s, kMost_s);
}

}  // namespace berth::policies
