// SPDX-License-Identifier: Apache-2.0
#include "policies/eviction/forecast/series.h"

#include <algorithm>
#include <cmath>

namespace berth::policies {

namespace {

constexpr std::size_t kBack = 20;     // readings that tell how demand moves, before a reading
constexpr std::size_t kAhead = 10;    // and after it
constexpr std::size_t kBlock = 4;     // so many neighbours share these
constexpr double kStep = 4;           // deviations that make a step
constexpr double kPartOfStep = 2;     // and that make its neighbour a part of it
constexpr double kLeastShare = 1e-3;  // of the demand: smaller movements are noise
constexpr double kFall = 0.25;        // of the range: a fall from a peak
constexpr double kLeastFall = 0.01;   // of the demand
constexpr std::size_t kPeaks = 2;
constexpr std::size_t kLeastInTrend = 6;
constexpr double kNormal = 1.48;  // standard deviation / median absolute deviation

struct Moves {
  double middle = 0;
  double deviation = 0;
};

// Median and deviation of the rises from `first` up to, not including, `last`.
Moves moves_of(const std::vector<double>& bytes, std::size_t first, std::size_t last,
               std::vector<double>& scratch) {
  scratch.clear();
  for (std::size_t i = first; i < last; ++i) scratch.push_back(bytes[i] - bytes[i - 1]);
  Moves moves{.middle = quantile(scratch, 0.5)};
  for (double& rise : scratch) rise = std::abs(rise - moves.middle);
  moves.deviation = kNormal * quantile(scratch, 0.5);
  return moves;
}

}  // namespace

double quantile(std::vector<double>& values, double share) {
  if (values.empty()) return 0;
  const auto count = static_cast<double>(values.size());
  const double rank = std::clamp(std::ceil((count + 1) * share), 1.0, count);
  const auto place = values.begin() + static_cast<std::ptrdiff_t>(rank) - 1;
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

DemandSeries::DemandSeries(std::span<const model::MemoryReading> readings) {
  times_.reserve(readings.size());
  bytes_.reserve(readings.size());
  for (const model::MemoryReading& reading : readings) {
    times_.push_back(reading.time);
    bytes_.push_back(static_cast<double>(reading.bytes));
  }
  if (readings.size() > 1) gap_s_ = (times_.back() - times_.front()) / static_cast<double>(size() - 1);
  find_steps();
  find_peaks();
}

void DemandSeries::find_steps() {
  steps_.assign(size(), 0);
  noise_.assign(size(), 0);
  gentle_ = bytes_;
  std::vector<double> middles(size(), 0);
  std::vector<double> strangeness(size(), 0);
  std::vector<double> scratch;
  Moves moves;
  for (std::size_t i = 1; i < size(); ++i) {
    if ((size() - 1 - i) % kBlock == 0 || i == 1)
      moves = moves_of(bytes_, i > kBack ? i - kBack : 1, std::min(size(), i + kAhead + 1), scratch);
    const double deviation = std::max({moves.deviation, kLeastShare * bytes_[i], 1.0});
    noise_[i] = deviation / std::sqrt(2.0);
    middles[i] = moves.middle;
    strangeness[i] = (bytes_[i] - bytes_[i - 1] - moves.middle) / deviation;
    steps_[i] = std::abs(strangeness[i]) > kStep ? 1 : 0;
  }
  // A step may take several readings, of which the first and the last show a part.
  const auto joins = [&](std::size_t i, std::size_t neighbour) {
    return steps_[neighbour] != 0 && strangeness[i] * strangeness[neighbour] > 0 &&
           std::abs(strangeness[i]) > kPartOfStep;
  };
  for (std::size_t i = 2; i < size(); ++i)
    if (joins(i, i - 1)) steps_[i] = 1;
  for (std::size_t i = size(); i-- > 2;)
    if (joins(i - 1, i)) steps_[i - 1] = 1;
  for (std::size_t i = 1; i < size(); ++i)
    gentle_[i] = gentle_[i - 1] + (steps_[i] != 0 ? middles[i] : bytes_[i] - bytes_[i - 1]);
}

void DemandSeries::find_peaks() {
  peaks_.assign(size(), 0);
  ceilings_.assign(size(), 0);
  if (size() == 0) return;
  const auto [least, most] = std::minmax_element(bytes_.begin(), bytes_.end());
  range_ = *most - *least;
  const double fall = std::max(kFall * range_, kLeastFall * *most);
  std::vector<double> found;
  bool climbs = true;
  bool climbed = false;  // by as much as a fall
  double peak = bytes_[0];
  double trough = bytes_[0];
  for (std::size_t i = 0; i < size(); ++i) {
    if (climbs) {
      peak = std::max(peak, bytes_[i]);
      climbed = climbed || bytes_[i] - trough > fall;
      if (peak - bytes_[i] > fall) {
        if (climbed) found.push_back(peak);
        climbs = false;
        trough = bytes_[i];
      } else if (!climbed) {
        trough = std::min(trough, bytes_[i]);
      }
    } else {
      trough = std::min(trough, bytes_[i]);
      if (bytes_[i] - trough > fall) {
        climbs = climbed = true;
        peak = bytes_[i];
      }
    }
    peaks_[i] = found.size();
    for (std::size_t k = found.size() - std::min(kPeaks, found.size()); k < found.size(); ++k)
      ceilings_[i] = std::max(ceilings_[i], found[k]);
  }
}

std::size_t DemandSeries::begin_of_window(std::size_t i, double window_s) const {
  const double long_s = std::max(window_s, window_s / 2 * gap_s_);
  std::size_t begin = i;
  while (begin > 0 && times_[begin - 1] >= times_[i] - long_s) --begin;
  return begin;
}

DemandSeries::Trend DemandSeries::trend(std::size_t i, double window_s) const {
  const std::size_t begin = begin_of_window(i, window_s);
  const std::size_t count = i + 1 - begin;
  if (count < kLeastInTrend) return {};
  double mean_time = 0;
  double mean_bytes = 0;
  for (std::size_t j = begin; j <= i; ++j) {
    mean_time += (times_[j] - times_[i]) / static_cast<double>(count);
    mean_bytes += (gentle_[j] - gentle_[i]) / static_cast<double>(count);
  }
  double squares = 0;
  double products = 0;
  for (std::size_t j = begin; j <= i; ++j) {
    const double off = times_[j] - times_[i] - mean_time;
    squares += off * off;
    products += off * (gentle_[j] - gentle_[i] - mean_bytes);
  }
  if (squares <= 0) return {};
  return {.slope = products / squares, .deviation = noise_[i] / std::sqrt(squares)};
}

double DemandSeries::most_after(std::size_t i, double horizon_s) const {
  double most = i + 1 < size() ? 0 : bytes_[i];
  double added = 0;
  for (std::size_t j = i + 1; j < size() && times_[j] <= times_[i] + horizon_s; ++j) {
    if (steps_[j] != 0) added += std::max(0.0, bytes_[j] - bytes_[j - 1]);
    most = std::max(most, bytes_[j] - added);
  }
  return most;
}

}  // namespace berth::policies
