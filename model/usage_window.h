// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/maybe.h"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
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

// A queue in one piece of memory. Dropped values at its beginning are erased several at a time.
template <typename T>
class CompactQueue {
 public:
  // As many dropped values are erased at once.
  static constexpr std::size_t kSlack = 8;

  const T* begin() const { return values_.data() + first_; }
  const T* end() const { return values_.data() + values_.size(); }
  std::size_t size() const { return values_.size() - first_; }
  bool empty() const { return size() == 0; }
  const T& front() const { return values_[first_]; }
  const T& back() const { return values_.back(); }
  T& front() { return values_[first_]; }
  T& back() { return values_.back(); }

  void push_back(const T& value) { values_.push_back(value); }
  void pop_back() { values_.pop_back(); }
  void pop_front() {
    if (++first_ < kSlack && first_ < values_.size()) return;
    values_.erase(values_.begin(), values_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }
  // Makes room for so many values, with one allocation.
  void reserve(std::size_t count) { values_.reserve(count + kSlack); }

 private:
  std::vector<T> values_;
  std::size_t first_ = 0;  // dropped values at the beginning of values_
};

// The samples of a workload, oldest first. Policies ask for sums and maxima of the whole window at every
// tick. The window keeps these figures up to date as samples come and go. Each figure has the very value
// that a loop over the samples would have, to the last bit. An idle workload costs no such loop.
//
// A *stretch* of samples with equal figures takes the memory of one. Windows with the same times can share
// these: a copy shares them with its original, and add() with its neighbour. The samples are put together as
// they are asked for, so they come by value.
class UsageWindow {
  // The times of all samples, oldest first. A window changes them only while no other has them.
  struct Times {
    CompactQueue<double> values;
    std::uint64_t hash = 0;  // the sum of their hashes

    void push_back(double time);
    void pop_front();
  };
  // Samples that follow each other and differ in time alone.
  struct Stretch {
    double cpu_cores = 0;
    Maybe<std::uint64_t> memory_bytes;
    Maybe<double> progress;
    Maybe<float> runq_latency_us;
    Maybe<float> runq_latency_p50_us;
    Maybe<float> llc_mpki;
    std::uint32_t count = 1;  // samples

    UsageSample at(double time) const {
      return {time, cpu_cores, memory_bytes, progress, runq_latency_us, runq_latency_p50_us, llc_mpki};
    }
    bool has_figures_of(const UsageSample& sample) const;
  };

 public:
  class const_iterator {
   public:
    using iterator_category = std::bidirectional_iterator_tag;
    using value_type = UsageSample;
    using difference_type = std::ptrdiff_t;
    using reference = UsageSample;
    struct pointer {
      UsageSample sample;
      const UsageSample* operator->() const { return &sample; }
    };

    const_iterator() = default;
    UsageSample operator*() const { return stretch_->at(*time_); }
    pointer operator->() const { return {**this}; }
    const_iterator& operator++() {
      ++time_;
      if (++passed_ == stretch_->count) {
        ++stretch_;
        passed_ = 0;
      }
      return *this;
    }
    const_iterator operator++(int) {
      const_iterator before = *this;
      ++*this;
      return before;
    }
    const_iterator& operator--() {
      if (passed_ == 0) passed_ = (--stretch_)->count;
      --passed_;
      --time_;
      return *this;
    }
    const_iterator operator--(int) {
      const_iterator before = *this;
      --*this;
      return before;
    }
    friend bool operator==(const const_iterator& a, const const_iterator& b) { return a.time_ == b.time_; }

   private:
    friend class UsageWindow;
    const_iterator(const double* time, const Stretch* stretch) : time_(time), stretch_(stretch) {}

    const double* time_ = nullptr;
    const Stretch* stretch_ = nullptr;
    std::uint32_t passed_ = 0;  // samples of the stretch
  };
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

  const_iterator begin() const { return {times().begin(), stretches_.begin()}; }
  const_iterator end() const { return {times().end(), stretches_.end()}; }
  const_reverse_iterator rbegin() const { return const_reverse_iterator(end()); }
  const_reverse_iterator rend() const { return const_reverse_iterator(begin()); }
  std::size_t size() const { return times().size(); }
  bool empty() const { return stretches_.empty(); }
  UsageSample front() const { return stretches_.front().at(times().front()); }
  UsageSample back() const { return stretches_.back().at(times().back()); }
  // Goes through the stretches before it.
  UsageSample operator[](std::size_t index) const;
  // Of each sample.
  const CompactQueue<double>& times() const { return times_ ? times_->values : kNoTimes; }

  void push_back(const UsageSample& sample);
  // Adds the newest sample and drops the oldest ones, so that `most` (1 or more) stay. Takes the times of
  // `like` (may be null) if they are the same then.
  void add(const UsageSample& sample, std::size_t most, const UsageWindow* like = nullptr);
  // Of the newest sample. There must be one.
  void set_progress(Maybe<double> progress);
  void clear() { *this = {}; }

  const Figures& cpu() const { return cpu_; }
  const Figures& memory() const { return memory_; }
  // Whether no sample shows any CPU use.
  bool without_cpu() const { return cpu_users_ == 0; }
  // Whether no sample knows a progress.
  bool without_progress() const { return reports_ == 0; }
  // Whether all samples know the same amount of memory.
  bool with_steady_memory() const { return memory_changes_ == 0 && memory_.known == size(); }
  // Whether both have samples of the same times. Times are compared by sums of hashes of 64 bits.
  bool at_times_of(const UsageWindow& other) const {
    return times_ == other.times_ || (times_hash() == other.times_hash() && size() == other.size());
  }
  // A number that is the same for all windows with samples of the same times.
  std::uint64_t times_hash() const { return times_ ? times_->hash : 0; }

  friend bool operator==(const UsageWindow& a, const UsageWindow& b);

 private:
  static const CompactQueue<double> kNoTimes;

  Times& own_times(std::size_t room);
  void shift_times(double time, std::size_t dropped, std::size_t most, const UsageWindow* like);
  void append(const UsageSample& sample);
  void include_newest(const UsageSample& sample);
  void drop_oldest();
  template <typename Figure>
  void exclude(Figures& figures, const std::optional<double>& value, bool whole, Figure figure) const;

  std::shared_ptr<Times> times_;  // null: none
  CompactQueue<Stretch> stretches_;
  Figures cpu_;
  Figures memory_;
  std::uint32_t cpu_users_ = 0;       // samples
  std::uint32_t memory_changes_ = 0;  // samples that differ from the one before
  std::uint32_t reports_ = 0;         // samples with a progress
};

}  // namespace berth::model
