// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace berth::model {

// The largest vCPU number accepted anywhere: Linux's own limit on x86 (CONFIG_NR_CPUS 8192).
inline constexpr int kMaxCpu = 8191;

// A set of vCPUs, by the kernel's number. Equal sets compare equal whatever built them.
class CpuSet {
 public:
  CpuSet() = default;
  CpuSet(std::initializer_list<int> cpus);

  // Parses a cpulist as the kernel writes it ("0-3,8", also "0-15:2/4"). White space around it is ignored;
  // empty text is the empty set. Error invalid_input for anything else, a descending range or a number above
  // kMaxCpu.
  static Result<CpuSet> parse(std::string_view cpulist);
  // first..last, both included.
  static CpuSet range(int first, int last);

  // Canonical cpulist: ascending, runs joined ("0-3,8"); "" when empty.
  std::string to_string() const;

  // `cpu` must lie in 0..kMaxCpu.
  void insert(int cpu);
  void erase(int cpu);
  bool contains(int cpu) const;
  bool empty() const;
  // Number of vCPUs.
  std::size_t size() const;
  // Lowest vCPU; -1 when empty.
  int first() const;
  // The next vCPU above `cpu`; -1 when none.
  int next(int cpu) const;
  // Ascending.
  std::vector<int> to_vector() const;

  bool is_subset_of(const CpuSet& other) const;
  bool intersects(const CpuSet& other) const;

  CpuSet& operator|=(const CpuSet& other);
  CpuSet& operator&=(const CpuSet& other);
  CpuSet& operator-=(const CpuSet& other);
  friend CpuSet operator|(CpuSet a, const CpuSet& b) { return a |= b; }
  friend CpuSet operator&(CpuSet a, const CpuSet& b) { return a &= b; }
  friend CpuSet operator-(CpuSet a, const CpuSet& b) { return a -= b; }
  friend bool operator==(const CpuSet&, const CpuSet&) = default;

  // for (int cpu : set): ascending.
  class Iterator {
   public:
    using value_type = int;
    using difference_type = std::ptrdiff_t;
    Iterator() = default;
    Iterator(const CpuSet* set, int cpu) : set_(set), cpu_(cpu) {}
    int operator*() const { return cpu_; }
    Iterator& operator++() {
      cpu_ = set_->next(cpu_);
      return *this;
    }
    Iterator operator++(int) {
      Iterator old = *this;
      ++*this;
      return old;
    }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    const CpuSet* set_ = nullptr;
    int cpu_ = -1;
  };
  Iterator begin() const { return {this, first()}; }
  Iterator end() const { return {this, -1}; }

 private:
  void trim();

  std::vector<std::uint64_t> words_;  // no trailing zero words, so that == is the sets' equality
};

}  // namespace berth::model
