// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/maybe.h"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <vector>

namespace berth::model {

// One reading of a workload, averaged since the one before. An unknown figure is nullopt, never 0.
struct UsageSample {
  double time = 0;                    // epoch seconds
  double cpu_cores = 0;               // mean cores used
  Maybe<std::uint64_t> memory_bytes;  // memory.current
  Maybe<double> progress;             // 0..1
  // How long threads that were ready waited for a vCPU: the 99th percentile and the median of all waits.
  Maybe<float> runq_latency_us;
  Maybe<float> runq_latency_p50_us;
  Maybe<float> llc_mpki;  // LLC misses per kilo instruction

  friend bool operator==(const UsageSample&, const UsageSample&) = default;
};

// The samples of a workload, oldest first. Policies ask for sums and maxima of the whole window at every
// tick. The window keeps these figures up to date as samples come and go. Each figure has the very value
// that a loop over the samples would have, to the last bit. An idle workload costs no such loop.
class UsageWindow {
 public:
  using const_iterator = std::vector<UsageSample>::const_iterator;
  using const_reverse_iterator = std::reverse_iterator<const_iterator>;

  // Of the samples that know the figure; cores or bytes.
  struct Figures {
    std::size_t known = 0;
    double sum = 0;  // added from the oldest to the newest
    double max = 0;  // 0 where none knows it

    std::optional<double> mean() const {
      return known > 0 ? std::optional(sum / static_cast<double>(known)) : std::nullopt;
    }
    friend bool operator==(const Figures&, const Figures&) = default;
  };

  UsageWindow() = default;
  UsageWindow(const std::vector<UsageSample>& samples);
  UsageWindow(std::initializer_list<UsageSample> samples) : UsageWindow(std::vector(samples)) {}

  const_iterator begin() const { return samples_.begin() + static_cast<std::ptrdiff_t>(first_); }
  const_iterator end() const { return samples_.end(); }
  const_reverse_iterator rbegin() const { return const_reverse_iterator(end()); }
  const_reverse_iterator rend() const { return const_reverse_iterator(begin()); }
  std::size_t size() const { return samples_.size() - first_; }
  bool empty() const { return size() == 0; }
  const UsageSample& front() const { return samples_[first_]; }
  const UsageSample& back() const { return samples_.back(); }
  const UsageSample& operator[](std::size_t index) const { return samples_[first_ + index]; }

  void push_back(const UsageSample& sample);
  // Adds the newest sample and drops the oldest ones, so that `most` (1 or more) stay.
  void add(const UsageSample& sample, std::size_t most);
  // Of the newest sample. There must be one.
  void set_progress(Maybe<double> progress) { samples_.back().progress = progress; }
  void clear() { *this = {}; }

  const Figures& cpu() const { return cpu_; }
  const Figures& memory() const { return memory_; }
  // Whether no sample shows any CPU use.
  bool without_cpu() const { return cpu_users_ == 0; }
  // Whether all samples know the same amount of memory.
  bool with_steady_memory() const { return memory_changes_ == 0 && memory_.known == size(); }
  // Whether both have samples of the same times. Times are compared by sums of hashes of 64 bits.
  bool at_times_of(const UsageWindow& other) const {
    return times_ == other.times_ && size() == other.size();
  }
  // A number that is the same for all windows with samples of the same times.
  std::uint64_t times() const { return times_; }

  friend bool operator==(const UsageWindow& a, const UsageWindow& b);

 private:
  void drop_oldest();

  std::vector<UsageSample> samples_;
  // Dropped samples at the beginning of samples_. They are erased several at a time.
  std::size_t first_ = 0;
  Figures cpu_;
  Figures memory_;
  std::uint64_t times_ = 0;
  std::uint32_t cpu_users_ = 0;       // samples
  std::uint32_t memory_changes_ = 0;  // samples that differ from the one before
};

}  // namespace berth::model
