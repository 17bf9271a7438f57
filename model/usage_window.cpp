// SPDX-License-Identifier: Apache-2.0
#include "model/usage_window.h"

#include <algorithm>
#include <bit>
#include <type_traits>
#include <utility>

namespace berth::model {

namespace {

// A window of so many stretches gets the memory for as many as it has samples.
constexpr std::size_t kFewStretches = 8;
// Below this, sums of whole numbers of bytes are exact in any order (2^53).
constexpr double kExactBytes = 9007199254740992.0;

// The finalizer of splitmix64: it spreads every bit of a time over the whole number.
std::uint64_t hash_of(double time) {
  auto bits = std::bit_cast<std::uint64_t>(time) + 0x9e3779b97f4a7c15U;
  bits = (bits ^ (bits >> 30U)) * 0xbf58476d1ce4e5b9U;
  bits = (bits ^ (bits >> 27U)) * 0x94d049bb133111ebU;
  return bits ^ (bits >> 31U);
}

std::optional<double> as_number(const Maybe<std::uint64_t>& bytes) {
  if (!bytes) return std::nullopt;
  return static_cast<double>(*bytes);
}

void include(UsageWindow::Figures& figures, const std::optional<double>& value, std::uint32_t count) {
  if (!value) return;
  figures.max = figures.known == 0 ? *value : std::max(figures.max, *value);
  figures.known += count;
  // A product would be rounded otherwise.
  for (std::uint32_t i = 0; *value != 0 && i < count; ++i) figures.sum += *value;
}

// Whether the sum without `value`, its first term, is known to the last bit.
bool subtract(double& sum, double value, bool whole) {
  if (value == 0) return true;
  if (!whole || sum >= kExactBytes) return false;
  sum -= value;
  return true;
}

// 0 and -0 are equal, but a document shows which it was.
template <typename T>
bool same_bits(const T& a, const T& b) {
  using Bits = std::conditional_t<sizeof(T) == sizeof(std::uint32_t), std::uint32_t, std::uint64_t>;
  return std::bit_cast<Bits>(a) == std::bit_cast<Bits>(b);
}

}  // namespace

bool UsageWindow::Stretch::has_figures_of(const UsageSample& sample) const {
  return same_bits(cpu_cores, sample.cpu_cores) && same_bits(memory_bytes, sample.memory_bytes) &&
         same_bits(progress, sample.progress) && same_bits(runq_latency_us, sample.runq_latency_us) &&
         same_bits(runq_latency_p50_us, sample.runq_latency_p50_us) && same_bits(llc_mpki, sample.llc_mpki);
}

const CompactQueue<double> UsageWindow::kNoTimes;

void UsageWindow::Times::push_back(double time) {
  values.push_back(time);
  hash += hash_of(time);
}

void UsageWindow::Times::pop_front() {
  hash -= hash_of(values.front());
  values.pop_front();
}

UsageWindow::UsageWindow(const std::vector<UsageSample>& samples) {
  if (!samples.empty()) own_times(samples.size());
  for (const UsageSample& sample : samples) push_back(sample);
}

UsageSample UsageWindow::operator[](std::size_t index) const {
  const Stretch* stretch = stretches_.begin();
  for (std::size_t passed = stretch->count; passed <= index; passed += stretch->count) ++stretch;
  return stretch->at(times().begin()[index]);
}

// The times, for changing them. They have memory for `room` at least.
UsageWindow::Times& UsageWindow::own_times(std::size_t room) {
  if (times_ == nullptr || times_.use_count() > 1) {
    auto own = std::make_shared<Times>();
    own->values.reserve(std::max(room, size()));
    for (const double time : times()) own->push_back(time);
    times_ = std::move(own);
  }
  times_->values.reserve(room);
  return *times_;
}

// Adds a time, and drops the oldest ones.
void UsageWindow::shift_times(double time, std::size_t dropped, std::size_t most, const UsageWindow* like) {
  if (like != nullptr && like->size() == size() + 1 - dropped) {
    std::uint64_t hash = times_hash() + hash_of(time);
    for (std::size_t i = 0; i < dropped; ++i) hash -= hash_of(times().begin()[i]);
    if (like->times_hash() == hash) {
      times_ = like->times_;
      return;
    }
  }
  Times& own = own_times(most);
  own.push_back(time);
  for (std::size_t i = 0; i < dropped; ++i) own.pop_front();
}

void UsageWindow::append(const UsageSample& sample) {
  if (!stretches_.empty() && stretches_.back().has_figures_of(sample)) {
    ++stretches_.back().count;
    return;
  }
  stretches_.push_back({.cpu_cores = sample.cpu_cores,
                        .memory_bytes = sample.memory_bytes,
                        .progress = sample.progress,
                        .runq_latency_us = sample.runq_latency_us,
                        .runq_latency_p50_us = sample.runq_latency_p50_us,
                        .llc_mpki = sample.llc_mpki});
}

// All of a sample but its time.
void UsageWindow::include_newest(const UsageSample& sample) {
  if (!empty() && stretches_.back().memory_bytes != sample.memory_bytes) ++memory_changes_;
  if (sample.cpu_cores != 0) ++cpu_users_;
  if (sample.progress) ++reports_;
  include(cpu_, sample.cpu_cores, 1);
  include(memory_, as_number(sample.memory_bytes), 1);
  append(sample);
}

void UsageWindow::push_back(const UsageSample& sample) {
  own_times(0).push_back(sample.time);
  include_newest(sample);
}

void UsageWindow::add(const UsageSample& sample, std::size_t most, const UsageWindow* like) {
  const std::size_t dropped = size() + 1 > most ? size() + 1 - most : 0;
  shift_times(sample.time, dropped, most, like);
  // All memory at once: a thousand windows that grow side by side would leave as much memory in holes as they
  // take.
  if (stretches_.size() >= kFewStretches) stretches_.reserve(most);
  include_newest(sample);
  for (std::size_t i = 0; i < dropped; ++i) drop_oldest();
}

void UsageWindow::set_progress(Maybe<double> progress) {
  UsageSample sample = back();
  if (same_bits(sample.progress, progress)) return;
  if (sample.progress) --reports_;
  if (progress) ++reports_;
  sample.progress = progress;
  if (--stretches_.back().count == 0) stretches_.pop_back();
  append(sample);
}

// `value` is the dropped sample's. `whole`: it is a whole number.
template <typename Figure>
void UsageWindow::exclude(Figures& figures, const std::optional<double>& value, bool whole,
                          Figure figure) const {
  if (!value) return;
  --figures.known;
  // With another sample of that size, the maximum is most often still there: of an idle workload always.
  const bool keeps_max = *value < figures.max || (!empty() && figure(stretches_.back()) == value);
  if (keeps_max && subtract(figures.sum, *value, whole)) return;
  figures = {};
  for (const Stretch& stretch : stretches_) include(figures, figure(stretch), stretch.count);
}

// All of a sample but its time.
void UsageWindow::drop_oldest() {
  const Stretch dropped = stretches_.front();
  if (--stretches_.front().count == 0) stretches_.pop_front();
  if (!empty() && stretches_.front().memory_bytes != dropped.memory_bytes) --memory_changes_;
  if (dropped.cpu_cores != 0) --cpu_users_;
  if (dropped.progress) --reports_;
  const auto cpu_of = [](const Stretch& stretch) { return std::optional(stretch.cpu_cores); };
  const auto memory_of = [](const Stretch& stretch) { return as_number(stretch.memory_bytes); };
  exclude(cpu_, cpu_of(dropped), false, cpu_of);
  exclude(memory_, memory_of(dropped), true, memory_of);
}

bool operator==(const UsageWindow& a, const UsageWindow& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

}  // namespace berth::model
