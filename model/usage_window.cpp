// SPDX-License-Identifier: Apache-2.0
#include "model/usage_window.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace berth::model {

namespace {

// As many dropped samples are erased at once.
constexpr std::size_t kSlack = 8;
// Below this, sums of whole numbers of bytes are exact in any order (2^53).
constexpr double kExactBytes = 9007199254740992.0;

// The finalizer of splitmix64: it spreads every bit of a time over the whole number.
std::uint64_t hash_of(double time) {
  auto bits = std::bit_cast<std::uint64_t>(time) + 0x9e3779b97f4a7c15U;
  bits = (bits ^ (bits >> 30U)) * 0xbf58476d1ce4e5b9U;
  bits = (bits ^ (bits >> 27U)) * 0x94d049bb133111ebU;
  return bits ^ (bits >> 31U);
}

std::optional<double> cpu_of(const UsageSample& sample) { return sample.cpu_cores; }

std::optional<double> memory_of(const UsageSample& sample) {
  if (!sample.memory_bytes) return std::nullopt;
  return static_cast<double>(*sample.memory_bytes);
}

void include(UsageWindow::Figures& figures, const std::optional<double>& value) {
  if (!value) return;
  figures.max = figures.known == 0 ? *value : std::max(figures.max, *value);
  figures.sum += *value;
  ++figures.known;
}

// Whether the sum without `value`, its first term, is known to the last bit.
bool subtract(double& sum, double value, bool whole) {
  if (value == 0) return true;
  if (!whole || sum >= kExactBytes) return false;
  sum -= value;
  return true;
}

template <typename Figure>
void exclude(UsageWindow::Figures& figures, const UsageWindow& rest, const std::optional<double>& value,
             bool whole, Figure figure) {
  if (!value) return;
  --figures.known;
  // With another sample of that size, the maximum is most often still there: of an idle workload always.
  const bool keeps_max = value < figures.max || (!rest.empty() && figure(rest.back()) == value);
  if (keeps_max && subtract(figures.sum, *value, whole)) return;
  figures = {};
  for (const UsageSample& sample : rest) include(figures, figure(sample));
}

}  // namespace

UsageWindow::UsageWindow(const std::vector<UsageSample>& samples) {
  samples_.reserve(samples.size());
  for (const UsageSample& sample : samples) push_back(sample);
}

void UsageWindow::push_back(const UsageSample& sample) {
  if (!empty() && back().memory_bytes != sample.memory_bytes) ++memory_changes_;
  if (sample.cpu_cores != 0) ++cpu_users_;
  times_ += hash_of(sample.time);
  include(cpu_, cpu_of(sample));
  include(memory_, memory_of(sample));
  samples_.push_back(sample);
}

void UsageWindow::add(const UsageSample& sample, std::size_t most) {
  // All memory at once: a thousand windows that grow side by side would leave as much memory in holes as they
  // take.
  samples_.reserve(most + kSlack);
  push_back(sample);
  while (size() > most) drop_oldest();
}

void UsageWindow::drop_oldest() {
  const UsageSample dropped = samples_[first_];
  ++first_;
  if (first_ >= kSlack) {
    samples_.erase(samples_.begin(), samples_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }
  if (!empty() && front().memory_bytes != dropped.memory_bytes) --memory_changes_;
  if (dropped.cpu_cores != 0) --cpu_users_;
  times_ -= hash_of(dropped.time);
  exclude(cpu_, *this, cpu_of(dropped), false, cpu_of);
  exclude(memory_, *this, memory_of(dropped), true, memory_of);
}

bool operator==(const UsageWindow& a, const UsageWindow& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

}  // namespace berth::model
